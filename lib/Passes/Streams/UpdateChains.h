//===- UpdateChains.h - Launches on the host that go over the same elements ---------===//
//
// What ds-split-updates may cut: which launches belong together, by memory that only they and transfers
// touch, and whether windows of them may run one after the other. Nothing is changed here. For example
//
//   ds.transfer %m to %a on storage                  2500 elements, NVMe to host
//   ds.launch @update ins(%a, %g) outs(%a) extent 2500 on host
//   ds.transfer %a to %m on storage
//
// is one chain of 2500 elements and three commands that owns %a, 10,000 bytes of the host; %g, a state of the
// host, is read where it lies and is nobody's own.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_STREAMS_UPDATECHAINS_H
#define DS_LIB_PASSES_STREAMS_UPDATECHAINS_H

#include "ds/Passes/BufferAccess.h"

namespace mlir::ds {

/// Whether `op` is a launch on the host that may run over windows of its buffers. What is launched early and
/// maybe again stays whole.
bool isUniformUpdate(Operation *op);

/// Launches that go over the same elements one after the other, and what brings and takes them.
struct UpdateChain {
  int64_t elements = 0;
  SmallVector<Operation *> commands; ///< in issue order
  SmallVector<Value> own;            ///< allocations that nothing else touches

  auto launches() const { return llvm::make_filter_range(commands, isUniformUpdate); }
  /// Whether storage gives or takes what it updates.
  bool movesStorage() const;
  /// Whether it lies in a ring: nothing but the device is given what it makes.
  bool passesOn() const;
};

/// The chains of one function, whose commands must stay as they are while this is asked.
class UpdateChains {
public:
  explicit UpdateChains(func::FuncOp func);

  /// All chains, in the order of their first commands.
  SmallVector<UpdateChain> find() const;
  /// Whether the chain's commands may stand together where its last launch does, and each window come after
  /// all that is done to the one before: nothing in between may touch what they do, and what one of them
  /// writes no other may see through another window.
  bool canMove(const UpdateChain &chain) const;

private:
  Block &body;
  SmallVector<Operation *> commands; ///< in issue order
  std::vector<SmallVector<BufferAccess>> accesses;
  DenseMap<Operation *, size_t> position; ///< of a command among them
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STREAMS_UPDATECHAINS_H
