//===- Expected.cpp - What was expected of a step before it had buffers -----------===//
#include "Expected.h"

#include "ds/Passes/Residency.h"
#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

Expected::Expected(ModuleOp module) {
  auto residency = module->getAttrOfType<DictionaryAttr>(kResidencyAttr);
  if (!residency)
    return;
  bytes = residency.getAs<IntegerAttr>("expected_bytes").getInt();
  seconds = residency.getAs<FloatAttr>("expected_seconds").getValueAsDouble();
  fits = residency.getAs<BoolAttr>("fits").getValue();
  slowCalls = residency.getAs<IntegerAttr>("attention_in_f32").getInt();
  double more = 0;
  for (auto group : residency.getAs<ArrayAttr>("again").getAsRange<DictionaryAttr>())
    more += std::max(0.0, group.getAs<FloatAttr>("more_seconds").getValueAsDouble());
  hasPaid = more > kWorthTime * seconds;
}

int64_t mlir::ds::arenaBytes(ModuleOp planned) {
  return static_cast<int64_t>(ArenaOp::lookup(planned, Space::Device).getBytes());
}
