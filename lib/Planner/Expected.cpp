//===- Expected.cpp - What was expected of a step before it had buffers -----------===//
#include "Expected.h"

#include "ds/Dialect/Decisions.h"
#include "ds/Dialect/Machine.h"
#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

Expected::Expected(ModuleOp module) {
  const std::optional<Residency> residency = getDecisions(module).residency;
  if (!residency)
    return;
  bytes = residency->expectedBytes;
  seconds = residency->expectedSeconds;
  fits = residency->fits;
  slowCalls = residency->attentionInF32;
  double more = 0;
  for (const RecomputedKind &kind : residency->again)
    more += std::max(0.0, kind.moreSeconds);
  hasPaid = more > kWorthTime * seconds;
}

int64_t mlir::ds::limitOf(ModuleOp module) { return getMachine(module).memory.device.value_or(0); }

int64_t mlir::ds::arenaBytes(ModuleOp planned) {
  return static_cast<int64_t>(ArenaOp::lookup(planned, Space::Device).getBytes());
}
