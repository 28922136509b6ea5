//===- FunctionBufferizer.h - Buffers for the tensors of one function ------------===//
//
// Walks a function in issue order and gives every tensor a buffer: the state's own, a window of another
// value's, an operand's that dies here, or a new one. What it asks for each stands alone:
//
//   PrepareFunction   what is put in order ahead of the walk
//   BufferTable       where each tensor lies, and until when
//   Destinations      where a value should be made so that it need not be moved
//   DyingOperands     which operand a result may overwrite
//   StagedTransfers   copies between spaces
//   BufferEmitter     allocations, views and copies
//
// A region of ops that run on the host dissolves before the walk: stored values become tensors that are known
// to be on the host, and its ops work on them like others, on a stream of their own.
//
// The price of a single walk: a value whose state is still read later is made elsewhere and copied at the
// end: %new = %w - %g that is made at op 3, while op 7 reads %w, takes memory of its own for a copy at op 8.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_BUFFERS_FUNCTIONBUFFERIZER_H
#define DS_LIB_PASSES_BUFFERS_FUNCTIONBUFFERIZER_H

#include "Destinations.h"
#include "KernelTable.h"
#include "StagedTransfers.h"

namespace mlir::ds {

/// What a function looks like with buffers.
struct Bufferized {
  /// All values lie where they are read or returned: none had to be packed, or put into its state at the end,
  /// by a copy of its own.
  bool isWithoutCopies = true;
  DenseSet<Operation *> staging; ///< the pieces of host memory through which storage is reached
};

/// A method for each kind of op that has buffers; others say what values lie where.
class FunctionBufferizer {
public:
  /// Of `func`, whose regions of the host are dissolved, with values that are `elsewhere` than on the device.
  /// What moves between storage and the device goes through pieces of host memory of `stagingBytes` bytes.
  FunctionBufferizer(func::FuncOp func, DenseMap<Value, Space> elsewhere, SymbolTable &symbols,
                     KernelTable &kernels, int64_t stagingBytes);

  /// Rewrites the function; fails with a diagnostic at the op that has no lowering.
  FailureOr<Bufferized> run();

private:
  LogicalResult bufferize(Operation *op);
  LogicalResult bufferizeReturn(func::ReturnOp op);
  void bufferizeFused(FusedOp op);
  LogicalResult bufferizeCall(LibraryOpInterface op);
  /// Binds each result of a call to a buffer: an operand's, a destination that the callee can write, or a new
  /// one.
  SmallVector<Value> placeResults(LibraryOpInterface op, const LibraryCall &call);
  Value makeCallResult(OpResult result, const LibraryCall &call);
  Value matmulOperand(Value buffer, int64_t rank, bool isResult, Location loc);
  void bufferizeCollective(CollectiveOpInterface op);
  /// Where a collective puts its result.
  Value placeCollective(CollectiveOpInterface op);
  void bufferizeLocalShard(LocalShardOp op);
  void bufferizeStore(StoreOp op);
  void bufferizeLoad(LoadOp op);
  void bufferizeMove(MoveOp op);
  void bufferizePresume(PresumeOp op);
  void bufferizeConcat(ConcatOp op);
  void bufferizePad(PadOp op);
  void bufferizeSplit(SplitOp op);
  /// Makes `result` a view of `source`, through a packed copy where strides cannot say it.
  void bufferizeView(Value source, Value result,
                     function_ref<std::optional<StridedView>(const StridedView &)> make);

  func::FuncOp func;
  SymbolTable &symbols;
  KernelTable &kernels;
  BufferTable table;
  BufferEmitter emitter;     ///< writes to `table`
  Destinations destinations; ///< by both
  StagedTransfers staged;    ///< likewise
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_BUFFERS_FUNCTIONBUFFERIZER_H
