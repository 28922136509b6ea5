//===- WordOrNumber.cpp - Requests of passes as words or numbers ---------------------===//
#include "ds/Passes/WordOrNumber.h"

#include "ds/Dialect/Machine.h"

using namespace mlir;
using namespace mlir::ds;

std::optional<int64_t> mlir::ds::bytesWithin(MemoryLimit limit, ModuleOp module) {
  if (limit.is(MemoryWord::Machine))
    return getMachine(module).memory.device;
  return limit.getNumber().value_or(0); // least: whatever needs room by choice has none
}
