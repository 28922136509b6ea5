//===- FunctionBufferizer.h - Buffers for the tensors of one function ------------===//
//
// Walks a function in issue order and gives every tensor a buffer: the state's own, a window of another
// value's, an operand's that dies here, or a new one. Three questions are answered ahead of the walk or on
// demand:
//
//   lastUse       at which op a value, or a view of it, is read for the last time;
//   destination   where a value should be made so that it need not be moved: the state it becomes, the part
//   of
//                 a concatenation that it is;
//   root          the allocation, state or input behind a buffer, whose last use is that of all values in it.
//
// A region of ops that run on the host dissolves before the walk: stored values become tensors that are known
// to be on the host, and its ops work on them like others, on a stream of their own.
//
// The price of a single walk: a value whose state is still read later is made elsewhere and copied at the
// end.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_BUFFERS_FUNCTIONBUFFERIZER_H
#define DS_LIB_PASSES_BUFFERS_FUNCTIONBUFFERIZER_H

#include "KernelTable.h"
#include "StridedView.h"
#include "ds/Dialect/Work.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::ds {

/// The tensor type of `value`.
inline RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The buffer type of `value`.
inline BufferType bufferType(Value value) { return cast<BufferType>(value.getType()); }

/// A method for each kind of op, over tables of buffers, views and last uses.
/// Size: where one value is made depends on where all others are; one memory model is to replace it
/// whole; parts that it were cut into now would go with it.
class FunctionBufferizer {
public:
  /// What moves between storage and the device goes through pieces of host memory of `stagingBytes` bytes.
  FunctionBufferizer(func::FuncOp func, SymbolTable &symbols, KernelTable &kernels, int64_t stagingBytes);

  /// Rewrites the function; fails with a diagnostic at the op that has no lowering.
  LogicalResult run();

private:
  /// Root buffer -> how many values lie in it.
  using Sharers = DenseMap<Value, unsigned>;
  /// Where a value is to be made.
  using Destination = std::optional<Value>;

  void inlineHostRegions();
  void privatizeConstants();
  void computeLastUses();
  void makeArguments();
  void assignCategories();
  void addGradient(Value value);
  LogicalResult bufferize(Operation *op);
  LogicalResult bufferizeReturn(func::ReturnOp op);
  void bufferizeFused(FusedOp op);
  LogicalResult bufferizeCall(LibraryOpInterface op);
  /// Binds each result of a call to a buffer: an operand's, a destination that the callee can write, or a new
  /// one.
  SmallVector<Value> placeResults(LibraryOpInterface op, const LibraryCall &call);
  Value makeCallResult(OpResult result, const LibraryCall &call);
  void bufferizeCollective(CollectiveOpInterface op);
  /// Where a collective puts its result.
  Value placeCollective(CollectiveOpInterface op);
  void bufferizeLocalShard(LocalShardOp op);
  void bufferizeStore(StoreOp op);
  void bufferizeLoad(LoadOp op);
  void bufferizeMove(MoveOp op);
  void bufferizePresume(PresumeOp op);
  /// Has storage reach `alloc`: it begins at a unit, and has room for whole ones.
  static void alignToUnit(AllocOp alloc);
  void transfer(Value from, Value to, Location loc);
  void transferPiece(Value from, Value to, Location loc);
  Value nextStaging(RankedTensorType type, Location loc);
  void trimStaging();
  void bufferizeConcat(ConcatOp op);
  void bufferizePad(PadOp op);
  void bufferizeSplit(SplitOp op);
  /// Makes `result` a view of `source`, through a packed copy where strides cannot say it.
  void bufferizeView(Value source, Value result,
                     function_ref<std::optional<StridedView>(const StridedView &)> make);

  /// A buffer for `result`: its destination, or new.
  Value makeBuffer(Value result);
  /// Memory in the space of the op that is bufferized, or in `space`.
  Value allocate(RankedTensorType type, AllocCategory category, Location loc) {
    return allocate(type, category, loc, space);
  }
  Value allocate(RankedTensorType type, AllocCategory category, Location loc, Space space);
  Space spaceOf(Value value) const { return spaces.lookup(value); } // Device is 0
  /// The stream that works on what lies in `space`.
  static StreamKind streamFor(Space space) {
    return space == Space::Device ? StreamKind::Compute : StreamKind::Host;
  }
  /// Where `value` should be made so that it need not be moved; its memory will be written from position
  /// `now` on (that of its maker, or of the first part of a concatenation).
  Destination findDestination(Value value, unsigned now);
  Destination findDestination(Value value);
  /// True when `value`, written from position `now` on, may be made in `target`, a window of the state's
  /// place.
  bool mayReplaceState(FlatSymbolRefAttr state, Value value, unsigned now, Value target);
  /// Where this rank's part of `gather`'s result lies in the state that the result becomes.
  Destination gatherPart(AllGatherOp gather, Value shard, unsigned now);
  /// Where `input` lies in the concatenation, whose buffer is made if there is none yet.
  Value concatPart(ConcatOp concat, Value input, unsigned now);
  Value concatBuffer(ConcatOp concat, unsigned now);
  /// The state that `value` becomes, or null.
  FlatSymbolRefAttr becomesState(Value value);

  /// True when writing over `operand`'s buffer at `op` destroys nothing that is still needed.
  bool diesAt(Value operand, Operation *op);
  /// True when `operand` dies at its op and no other operand of the op lies in the same memory.
  bool diesAlone(OpOperand &operand);
  /// An operand whose buffer may hold `result`, for results that are written where the operand was just read.
  /// `sharers` are those of `op`.
  Value findDyingOperand(FusedOp op, unsigned result, const Sharers &sharers);
  Value lastInPlaceOf(Value value);
  /// How many operands of `op` lie in each root buffer: regions can have hundreds, and as many results.
  Sharers countSharers(FusedOp op);
  unsigned rankOf(Value input, OpResult result);
  Value findVacated(StoreOp op);

  Value createView(Value source, const StridedView &view, Location loc);
  /// Whether `a` and `b` are the same elements of the same memory, in the same shape.
  static bool isSameWindow(Value a, Value b);
  Value toContiguous(Value buffer, Location loc);
  /// A contiguous copy of `buffer` in memory of its own.
  Value toPrivate(Value buffer, Location loc);
  void copy(Value from, Value to, Location loc);
  void bind(Value value, Value buffer);
  Value rootOf(Value buffer);
  AllocCategory categoryOf(Value value) const {
    return gradients.contains(value) ? AllocCategory::Gradients : AllocCategory::Activations;
  }
  Value matmulOperand(Value buffer, int64_t rank, bool isResult, Location loc);

  func::FuncOp func;
  SymbolTable &symbols;
  KernelTable &kernels;
  WorkListener listener; ///< commands say what the op that they run says
  OpBuilder builder;
  Space space = Space::Device;   ///< of what the current op works on
  DenseMap<Value, Space> spaces; ///< of the values that are not on the device
  DenseMap<Operation *, unsigned> position;
  DenseMap<Value, unsigned> lastUse;     ///< tensor -> position of its last reader
  DenseMap<Value, Value> buffers;        ///< tensor -> buffer
  DenseMap<Value, unsigned> rootLastUse; ///< root buffer -> last position at which any of its values is read
  DenseMap<Value, Value> views;          ///< view -> root
  DenseMap<Value, Value> lastInPlace;    ///< answers of lastInPlaceOf
  DenseMap<Attribute, Value> stateBuffers;     ///< state symbol -> argument
  DenseMap<Attribute, unsigned> stateLastRead; ///< state symbol -> last reader of the old value
  DenseSet<Value> gradients;                   ///< tensors that are a parameter's gradient
  int64_t stagingBytes;
  /// Pieces of host memory that take turns, and how many elements of them are used.
  struct Staging {
    SmallVector<AllocOp> slots;
    unsigned next = 0;
    int64_t elements = 0;
  };
  llvm::MapVector<Type, Staging> staging; ///< by element type
  DenseMap<Operation *, Value> concats;   ///< concatenation -> its buffer, once a part of it was made
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_BUFFERS_FUNCTIONBUFFERIZER_H
