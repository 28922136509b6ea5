//===- DyingOperands.cpp - Which operand a result may overwrite --------------------===//
#include "DyingOperands.h"
#include "Destinations.h"

#include <array>

using namespace mlir;
using namespace mlir::ds;

DyingOperands::DyingOperands(FusedOp op, const BufferTable &table) : op(op), table(table) {
  for (Value input : DenseSet<Value>(op.getInputs().begin(), op.getInputs().end()))
    ++sharers[table.rootOf(table.at(input))];
}

/// Whether a window of type `part` is all of `root`, in whatever shape.
static bool isWhole(BufferType part, BufferType root) {
  return part.isContiguous() && part.getSizeInBytes() == root.getSizeInBytes();
}

Value DyingOperands::find(OpResult result) const {
  RankedTensorType type = tensorType(result);
  // What storage takes begins at a unit, and a state anywhere.
  bool isMoved = llvm::any_of(result.getUsers(), llvm::IsaPred<MoveOp>);
  std::array<SmallVector<Value>, 4> inputs; // by rank
  for (Value input : FusedOp(op).getInputs())
    if (input.getType() == type)
      inputs[rankOfPlace(input, isa<BlockArgument>(table.rootOf(table.at(input))), result)].push_back(input);
  for (Value input : llvm::concat<Value>(inputs[0], inputs[1], inputs[2], inputs[3])) {
    Value buffer = table.at(input), root = table.rootOf(buffer);
    if (table.diesAt(input, op) && isWhole(bufferType(buffer), bufferType(root)) &&
        sharers.lookup(root) == 1 && !(isMoved && isa<BlockArgument>(root)) &&
        readsWhereItWrites(result, input))
      return buffer;
  }
  return {};
}

Value mlir::ds::findVacated(StoreOp op, const BufferTable &table) {
  Value value = op->getOperand(0);
  while (Operation *maker = value.getDefiningOp()) {
    if (auto load = dyn_cast<LoadOp>(maker)) {
      Value place = table.at(load->getOperand(0));
      bool fits = bufferType(place) ==
                  BufferType::getContiguous(tensorType(op->getOperand(0)), table.spaceOf(op->getResult(0)));
      return fits && isa<BlockArgument>(place) && table.diesAt(load->getOperand(0), op) ? place : Value();
    }
    auto library = dyn_cast<LibraryOpInterface>(maker);
    if (!library)
      return {};
    LibraryCall call = library.getLibraryCall();
    auto tied = llvm::find_if(call.inPlace, [&](auto pair) { return maker->getResult(pair.first) == value; });
    if (tied == call.inPlace.end())
      return {};
    value = maker->getOperand(tied->second);
  }
  return {};
}
