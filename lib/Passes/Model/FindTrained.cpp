//===- FindTrained.cpp - Which parameter a value depends on ---------------------===//
#include "FindTrained.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::ds;

StateOp mlir::ds::findTrained(func::FuncOp func, const SymbolTable &symbols, Value value) {
  SetVector<Value> slice;
  slice.insert(value);
  for (unsigned index = 0; index < slice.size(); ++index) {
    if (Operation *op = slice[index].getDefiningOp()) {
      slice.insert(op->operand_begin(), op->operand_end());
      continue;
    }
    unsigned number = cast<BlockArgument>(slice[index]).getArgNumber();
    auto name = func.getArgAttrOfType<FlatSymbolRefAttr>(number, DsDialect::kStateAttr);
    auto state = name ? symbols.lookup<StateOp>(name.getValue()) : StateOp();
    if (state && state.getTrainable())
      return state;
  }
  return {};
}
