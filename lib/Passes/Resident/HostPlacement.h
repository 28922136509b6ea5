//===- HostPlacement.h - Which ops of a step run on the host's cores ------------------===//
//
// Problem: states that live on the host, or in storage, are to be updated on the host, but the arithmetic
// between a gradient and a new parameter has no natural cut: each op that moves takes some values along and
// leaves others behind.
// Idea: ops go where what they read lives, then the cut is moved to where fewest bytes cross it:
//
//   forward   an op of the update that reads a tensor of the host runs there; so does one that adds to a
//             gradient there, in whatever work;
//   up        an op that only the host reads follows, where that sends no more bytes: a gradient is converted
//             and clipped behind the link, not before it;
//   norm      a sum over tensors runs where most of their bytes are;
//   back      an op that makes a device's state of a device's state and one tensor of the host stays on the
//             device: an fp32 parameter is not sent there and back, only what is subtracted from it comes;
//             with it stays what only it reads of the device, such as a parameter that has decayed;
//   twice     an op that both sides read, of what both have, is done by both.
//
// Constants and what repeats a scalar belong to nobody: each side has its own.
// Price: greedy; ops that are not elementwise stay where they are, apart from sums.
//
//===---------------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_HOSTPLACEMENT_H
#define DS_LIB_PASSES_RESIDENT_HOSTPLACEMENT_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::ds {

class HostPlacement {
public:
  HostPlacement(func::FuncOp func, const SymbolTable &symbols);

  /// Copies, for the host, ops that both sides read the results of and have the operands of.
  void repeatShared();

  bool empty() const { return onHost.empty(); }
  bool isOnHost(Operation *op) const { return onHost.contains(op); }
  /// Whether `value` is a tensor that the host has made, or a state that does not live on the device.
  bool isHostValue(Value value) const;

  /// Whether each side may have a copy of `op` for nothing: constants, and scalars that are repeated.
  static bool isFree(Operation *op);
  /// Calls `visit` for each op that reads `value`, directly or through free ones.
  static void forEachReader(Value value, llvm::function_ref<void(Operation *)> visit);

private:
  bool goesWithOperands(Operation *op) const;
  bool goesWithReaders(Operation *op) const;
  bool goesWithSummands(Operation *op) const;
  bool servesAlone(Operation *op, Operation *reader) const;
  bool staysWithState(Operation *op) const;
  bool staysWithReader(Operation *op) const;
  bool isRepeated(Operation *op) const;
  bool isReadByHost(Operation *op) const;
  Value repeatMakers(Value value, OpBuilder &builder);
  void repeat(Operation *op);

  Block &block;
  DenseSet<Value> states;    ///< arguments that live on the host or in storage
  DenseSet<Value> gradients; ///< those of them that gradients add up in
  DenseSet<Operation *> onHost;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_HOSTPLACEMENT_H
