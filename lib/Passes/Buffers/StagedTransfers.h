//===- StagedTransfers.h - Copies between spaces, through pieces of host memory -----------===//
//
// Storage is reached in two legs, for a disk moves whole units from and to memory of the host alone: one on
// the stream of storage, one on that of copies. What is large goes in pieces, through two pieces of host
// memory in turn, so that the second leg of a piece runs beside the first of the next:
//
//   storage     %m[0..] to %slot0     %m[n..] to %slot1     (waits) %m[2n..] to %slot0
//   to_device                         %slot0 to %x[0..]     %slot1 to %x[n..]     ...
//
// With pieces of 8192 bytes, 5000 floats are moved as 2048, 2048 and 904 of them, through slots of 8192
// bytes. The two pieces are a function's, whatever it moves; the order of commands is that of the events of
// their use.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_BUFFERS_STAGEDTRANSFERS_H
#define DS_LIB_PASSES_BUFFERS_STAGEDTRANSFERS_H

#include "BufferEmitter.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::ds {

class StagedTransfers {
public:
  /// What moves between storage and the device goes through pieces of host memory of `stagingBytes` bytes.
  StagedTransfers(func::FuncOp func, BufferTable &table, BufferEmitter &emitter, int64_t stagingBytes)
      : func(func), table(table), emitter(emitter), stagingBytes(stagingBytes) {}

  void transfer(Value from, Value to, Location loc);
  /// The pieces of host memory that transfers have used.
  DenseSet<Operation *> getSlots() const;
  /// Leaves staging memory as large as its largest piece, in whole units.
  void trim();

private:
  /// Pieces of host memory that take turns, and how many elements of them are used.
  struct Staging {
    SmallVector<AllocOp> slots;
    unsigned next = 0;
    int64_t elements = 0;
  };

  int64_t mostElements(Type element) const;
  void transferPiece(Value from, Value to, Location loc);
  Value nextStaging(RankedTensorType type, Location loc);

  func::FuncOp func;
  BufferTable &table;
  BufferEmitter &emitter;
  int64_t stagingBytes;
  llvm::MapVector<Type, Staging> staging; ///< by element type
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_BUFFERS_STAGEDTRANSFERS_H
