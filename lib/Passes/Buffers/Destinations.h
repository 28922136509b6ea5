//===- Destinations.h - Where a value is made so that it need not be moved ---------------===//
//
// A value that becomes a state is made in the state's place once its old value is read no more, a part of a
// concatenation in its window of the whole, a shard that is gathered in its part of the gathered state. With
// a state whose old value op 7 reads last, a new value that op 9 makes goes to the state's place, and one
// that op 5 makes gets memory of its own and is copied in the end.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_BUFFERS_DESTINATIONS_H
#define DS_LIB_PASSES_BUFFERS_DESTINATIONS_H

#include "BufferEmitter.h"

namespace mlir::ds {

/// Where a value is to be made.
using Destination = std::optional<Value>;

/// True when the kernel of `result`'s region reads `value`, if at all, no later than it writes `result`'s
/// element.
bool readsWhereItWrites(OpResult result, Value value);

class Destinations {
public:
  /// `gradients` are told from other values by the category of their memory.
  Destinations(func::FuncOp func, BufferTable &table, BufferEmitter &emitter, DenseSet<Value> gradients)
      : func(func), table(table), emitter(emitter), gradients(std::move(gradients)) {}

  /// Where `value` should be made; its memory will be written by its maker.
  Destination find(Value value);
  /// A buffer for `result`: its destination, or new.
  Value makeBuffer(Value result);
  /// The buffer of a concatenation, which is made if no part of it was yet; written from position `now` on.
  Value concatBuffer(ConcatOp concat, unsigned now);
  /// True when `value`, written from position `now` on, may be made in `target`, a window of the state's
  /// place.
  bool mayReplaceState(FlatSymbolRefAttr state, Value value, unsigned now, Value target) const;
  AllocCategory categoryOf(Value value) const {
    return gradients.contains(value) ? AllocCategory::Gradients : AllocCategory::Activations;
  }

private:
  Destination find(Value value, unsigned now);
  /// Where this rank's part of `gather`'s result lies in the state that the result becomes.
  Destination gatherPart(AllGatherOp gather, Value shard, unsigned now);
  /// Where `input` lies in the concatenation.
  Value concatPart(ConcatOp concat, Value input, unsigned now);
  Value lastInPlaceOf(Value value);

  func::FuncOp func;
  BufferTable &table;
  BufferEmitter &emitter;
  DenseSet<Value> gradients;            ///< tensors that are a parameter's gradient
  DenseMap<Value, Value> lastInPlace;   ///< answers of lastInPlaceOf
  DenseMap<Operation *, Value> concats; ///< concatenation -> its buffer, once a part of it was made
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_BUFFERS_DESTINATIONS_H
