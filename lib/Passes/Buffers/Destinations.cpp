//===- Destinations.cpp - Where a value is made so that it need not be moved -------===//
#include "Destinations.h"

#include "ds/Codegen/KernelClass.h"
#include "ds/Dialect/Collectives.h"

using namespace mlir;
using namespace mlir::ds;

bool mlir::ds::readsWhereItWrites(OpResult result, Value value) {
  auto fused = dyn_cast<FusedOp>(result.getOwner());
  if (!fused)
    return false;
  for (auto [index, input] : llvm::enumerate(fused.getInputs()))
    if (input == value && !mayShareMemory(fused.getBody().front(), index, result.getResultNumber()))
      return false;
  return true;
}

bool Destinations::mayReplaceState(FlatSymbolRefAttr state, Value value, unsigned now, Value target) const {
  std::optional<unsigned> read = table.lastReadOf(state);
  if (!read || *read < now)
    return true;
  // The maker itself may be the last reader, if it reads no further than it has written.
  Operation *maker = value.getDefiningOp();
  if (*read != now || table.positionOf(maker) != now)
    return false;
  auto isTied = [&](OpOperand &operand) {
    auto library = dyn_cast<LibraryOpInterface>(maker);
    return library && llvm::any_of(library.getLibraryCall().inPlace, [&](auto pair) {
             return pair.second == operand.getOperandNumber() && maker->getResult(pair.first) == value;
           });
  };
  return llvm::all_of(maker->getOpOperands(), [&](OpOperand &operand) {
    Value buffer = table.lookup(operand.get());
    if (!buffer || table.rootOf(buffer) != table.ofState(state))
      return true;
    return isSameWindow(buffer, target) &&
           (isTied(operand) || readsWhereItWrites(cast<OpResult>(value), operand.get()));
  });
}

Value Destinations::concatBuffer(ConcatOp concat, unsigned now) {
  if (Value known = concats.lookup(concat))
    return known;
  Value buffer;
  if (Destination destination = find(concat.getResult(), now))
    buffer = *destination;
  else
    buffer = emitter.allocate(concat.getType(), categoryOf(concat.getResult()), concat.getLoc());
  concats[concat] = buffer;
  table.bind(concat.getResult(), buffer);
  return buffer;
}

Value Destinations::concatPart(ConcatOp concat, Value input, unsigned now) {
  Value whole = concatBuffer(concat, now);
  int64_t rank = tensorType(input).getRank();
  SmallVector<int64_t> offsets(rank, 0), steps(rank, 1);
  for (Value before : concat.getInputs()) {
    if (before == input)
      break;
    offsets[concat.getDim()] += tensorType(before).getShape()[concat.getDim()];
  }
  StridedView part = sliceView(viewOf(bufferType(whole)), offsets, steps, tensorType(input).getShape());
  return emitter.createView(whole, part, input.getLoc());
}

/// What the only reader of `value` makes in its place; null where it does not.
static Value madeInPlaceOf(Value value) {
  auto library = value.hasOneUse() ? dyn_cast<LibraryOpInterface>(*value.user_begin()) : LibraryOpInterface();
  if (!library)
    return {};
  for (auto [result, operand] : library.getLibraryCall().inPlace)
    if (operand == value.use_begin()->getOperandNumber())
      return library->getResult(result);
  return {};
}

/// What is made in the place of `value` by those that add to it one after the other, the last of them.
Value Destinations::lastInPlaceOf(Value value) {
  SmallVector<Value> chain;
  for (Value next = value; next; next = madeInPlaceOf(value)) {
    value = next;
    if (Value known = lastInPlace.lookup(value)) {
      value = known;
      break;
    }
    chain.push_back(value);
  }
  for (Value link : chain)
    lastInPlace[link] = value;
  return value;
}

Destination Destinations::find(Value value, unsigned now) {
  const Value made = value;
  value = lastInPlaceOf(value); // a gradient that all layers add to goes to where the last leaves it
  if (FlatSymbolRefAttr state = becomesState(func, value))
    if (mayReplaceState(state, made, now, table.ofState(state)))
      return table.ofState(state);
  for (OpOperand &use : value.getUses()) {
    if (auto concat = dyn_cast<ConcatOp>(use.getOwner()))
      if (llvm::count(concat.getInputs(), value) == 1)
        return concatPart(concat, value, now);
    if (auto gather = dyn_cast<AllGatherOp>(use.getOwner()))
      if (Destination part = gatherPart(gather, value, now))
        return part;
    // Through a reshape: the destination of the reshaped value, seen in this shape.
    auto reshape = dyn_cast<ReshapeOp>(use.getOwner());
    Destination target = reshape ? find(reshape.getResult(), now) : std::nullopt;
    if (!target)
      continue;
    if (std::optional<StridedView> view =
            reshapeView(viewOf(bufferType(*target)), tensorType(value).getShape()))
      return emitter.createView(*target, *view, value.getLoc());
    emitter.hasCopied = true; // strides of a part cannot say the other shape
  }
  return std::nullopt;
}

Value Destinations::makeBuffer(Value result) {
  if (Destination destination = find(result))
    return *destination;
  return emitter.allocate(tensorType(result), categoryOf(result), result.getLoc());
}

Destination Destinations::gatherPart(AllGatherOp gather, Value shard, unsigned now) {
  FlatSymbolRefAttr state = becomesState(func, gather.getResult());
  if (!state)
    return std::nullopt;
  Value whole = table.ofState(state);
  Value part = emitter.createView(whole,
                                  shardView(viewOf(bufferType(whole)), tensorType(shard).getShape(),
                                            MeshOp::lookup(gather), gather.getAxes()),
                                  shard.getLoc());
  if (mayReplaceState(state, shard, now, part))
    return part;
  return std::nullopt;
}

Destination Destinations::find(Value value) { return find(value, table.positionOf(value.getDefiningOp())); }
