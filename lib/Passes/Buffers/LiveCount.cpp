//===- LiveCount.cpp - What a function holds, counted before and behind its buffers -===//
#include "LiveCount.h"

#include "Resident/SegmentMemory.h"
#include "ds/Passes/CommandMemory.h"

using namespace mlir;
using namespace mlir::ds;

static LiveBytes mostOf(const ::ds::analysis::StepMemory &memory) {
  LiveBytes most;
  for (uint32_t space = 0; space < most.size(); ++space)
    most[space] = memory.mostBytes(space);
  return most;
}

LiveBytes mlir::ds::countValues(func::FuncOp func, const DenseMap<Value, Space> &elsewhere,
                                const SymbolTable &symbols) {
  const OpenRegions none;
  const RecomputeRules rules = RecomputeRules::nothing();
  auto commands = std::make_shared<SegmentCommands>(func, none, elsewhere);
  return mostOf(SegmentMemory(std::move(commands), rules, symbols).getMemory());
}

LiveBytes mlir::ds::countAllocations(func::FuncOp func, const DenseSet<Operation *> &staging) {
  return mostOf(getMemory(func, LivesUntil::Touched, staging));
}
