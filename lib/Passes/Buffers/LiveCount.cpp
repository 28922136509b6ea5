//===- LiveCount.cpp - What a function holds, counted before and behind its buffers -===//
#include "LiveCount.h"

#include "Resident/SegmentMemory.h"
#include "ds/Passes/CommandMemory.h"

using namespace mlir;
using namespace mlir::ds;

int64_t mlir::ds::countValues(func::FuncOp func, const SymbolTable &symbols) {
  const OpenRegions none;
  const RecomputeRules rules = RecomputeRules::nothing();
  const std::vector<int64_t> live = SegmentMemory(func, none, rules, symbols).getLiveBytes();
  return live.empty() ? 0 : *llvm::max_element(live);
}

int64_t mlir::ds::countAllocations(func::FuncOp func) {
  return getMemory(func, LivesUntil::Touched).mostBytes(uint32_t(Space::Device));
}
