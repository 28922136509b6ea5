//===- ShardingParts.cpp - What a rank does in the place of an op ------------------===//
#include "ShardingRules.h"

using namespace mlir;
using namespace mlir::ds;

/// Position of this rank times `factor`, in every element of `type`: this rank's of the positions of all.
static Value rankTimes(OpEmitter &emit, CutRanks ranks, int64_t factor, RankedTensorType type) {
  OpBuilder &builder = emit.getBuilder();
  auto ofAll = RankedTensorType::get({ranks.count}, builder.getI64Type());
  Value positions = builder.create<IotaOp>(emit.getLoc(), ofAll, 0, 0, factor);
  Value own = emit.reshape(takePart(builder, emit.getLoc(), positions, Cut{0}, ranks), {});
  return emit.broadcast(emit.convert(own, type.getElementType()), {}, type.getShape());
}

Value mlir::ds::onFirstRank(OpBuilder &builder, Location loc, Value value, CutRanks ranks) {
  OpEmitter emit(builder, loc);
  RankedTensorType type = tensorType(value);
  auto index = RankedTensorType::get(type.getShape(), builder.getI64Type());
  Value isFirst = emit.compare(Predicate::EQ, rankTimes(emit, ranks, 1, index), emit.splat(index, 0));
  return emit.select(isFirst, value, emit.splat(type, 0));
}

SmallVector<Value> mlir::ds::localizePlainly(Operation *op, OpBuilder &builder, ValueRange operands,
                                             TypeRange types, const LocalPart &part) {
  SmallVector<Value> read(operands);
  for (auto [value, place] : llvm::zip_equal(read, part.factor.operands))
    if (!place.has() && place.lack == FactorDim::Lack::Once)
      value = onFirstRank(builder, op->getLoc(), value, part.ranks);
  Operation *own =
      Operation::create(op->getLoc(), op->getName(), types, read, op->getDiscardableAttrDictionary(),
                        op->getPropertiesStorage(), BlockRange(), /*numRegions=*/0);
  builder.insert(own);
  return llvm::to_vector_of<Value>(own->getResults());
}

SmallVector<Value> mlir::ds::localizeOp(ConstantOp op, OpBuilder &builder, ValueRange, TypeRange types,
                                        const LocalPart &) {
  auto splat = cast<DenseElementsAttr>(op.getValue());
  return {builder.create<ConstantOp>(op.getLoc(), splat.resizeSplat(cast<ShapedType>(types.front())))};
}

SmallVector<Value> mlir::ds::localizeOp(IotaOp op, OpBuilder &builder, ValueRange operands, TypeRange types,
                                        const LocalPart &part) {
  SmallVector<Value> own = localizePlainly(op, builder, operands, types, part);
  if (part.factor.results[0].dim != static_cast<int64_t>(op.getDim()))
    return own;
  OpEmitter emit(builder, op.getLoc());
  auto type = cast<RankedTensorType>(types.front());
  const int64_t step = op.getStep() * type.getDimSize(op.getDim());
  return {emit.binary<AddOp>(own.front(), rankTimes(emit, part.ranks, step, type))};
}

/// The offsets of a window among a rank's: along the dimension that is cut they are its share of it.
static SmallVector<int64_t> localOffsets(ArrayRef<int64_t> offsets, int64_t dim, int64_t ranks) {
  SmallVector<int64_t> own(offsets);
  own[dim] /= ranks;
  return own;
}

SmallVector<Value> mlir::ds::localizeOp(SliceOp op, OpBuilder &builder, ValueRange operands, TypeRange types,
                                        const LocalPart &part) {
  const auto offsets = localOffsets(op.getOffsets(), part.factor.operands[0].dim, part.ranks.count);
  return {builder.create<SliceOp>(op.getLoc(), types.front(), operands.front(), offsets, op.getStrides())};
}

SmallVector<Value> mlir::ds::localizeOp(PadOp op, OpBuilder &builder, ValueRange operands, TypeRange types,
                                        const LocalPart &part) {
  const auto offsets = localOffsets(op.getOffsets(), part.factor.results[0].dim, part.ranks.count);
  return {builder.create<PadOp>(op.getLoc(), types.front(), operands.front(), offsets, op.getStrides())};
}

SmallVector<Value> mlir::ds::localizeOp(ReduceOp op, OpBuilder &builder, ValueRange operands, TypeRange types,
                                        const LocalPart &part) {
  SmallVector<Value> own = localizePlainly(op, builder, operands, types, part);
  if (part.factor.kind == FactorKind::Max || part.factor.kind == FactorKind::Min)
    own.front() = combineAll(builder, op.getLoc(), op.getKind(), own.front(), part.ranks);
  return own;
}

/// Number of each of a rank's elements in the whole, of which `cut`, in equal blocks, leaves it `type`:
/// counted in the shape in which the cut dimension is apart.
static Value numbersInWhole(OpEmitter &emit, RankedTensorType whole, RankedTensorType type, const Cut &cut,
                            CutRanks ranks) {
  OpBuilder &builder = emit.getBuilder();
  SmallVector<int64_t> apart, strides;
  int64_t stride = 1, ofBlock = 1;
  for (int64_t dim = whole.getRank() - 1; dim >= 0; --dim) {
    if (dim == cut.dim) {
      ofBlock = stride * (type.getDimSize(dim) / cut.blocks.outer);
      apart.push_back(type.getDimSize(dim) / cut.blocks.outer);
      strides.push_back(stride);
      apart.push_back(cut.blocks.outer);
      strides.push_back(ofBlock * ranks.count);
    } else {
      apart.push_back(type.getDimSize(dim));
      strides.push_back(stride);
    }
    stride *= whole.getDimSize(dim);
  }
  std::reverse(apart.begin(), apart.end());
  std::reverse(strides.begin(), strides.end());
  auto counted = RankedTensorType::get(apart, builder.getI64Type());
  Value numbers = rankTimes(emit, ranks, ofBlock, counted);
  for (auto [dim, step] : llvm::enumerate(strides))
    numbers = emit.binary<AddOp>(numbers, builder.create<IotaOp>(emit.getLoc(), counted, dim, 0, step));
  return emit.reshape(numbers, type.getShape());
}

SmallVector<Value> mlir::ds::localizeOp(RandomUniformOp op, OpBuilder &builder, ValueRange operands,
                                        TypeRange types, const LocalPart &part) {
  if (op.getNumbers())
    return localizePlainly(op, builder, operands, types, part);
  OpEmitter emit(builder, op.getLoc());
  auto type = cast<RankedTensorType>(types.front());
  Value numbers = numbersInWhole(emit, tensorType(op.getResult()), type,
                                 cutOf(part.factor.results[0], part.blocks), part.ranks);
  auto own = builder.create<RandomUniformOp>(op.getLoc(), type, operands.front(), op.getId(), op.getFirst(),
                                             numbers);
  return {own.getResult()};
}

//===----------------------------------------------------------------------===//
// Attention with fewer key heads than ranks
//===----------------------------------------------------------------------===//

/// Of keys [B, S, G, D] the head that a rank's queries read, [B, S, 1, D]: several ranks in a row read one.
static Value ownKeyHead(OpEmitter &emit, Value keys, CutRanks ranks) {
  SmallVector<int64_t> shape(tensorType(keys).getShape());
  const int64_t repeats = ranks.count / shape[2];
  if (repeats > 1) {
    keys = emit.broadcast(emit.reshape(keys, {shape[0], shape[1], shape[2], 1, shape[3]}), {0, 1, 2, 3, 4},
                          {shape[0], shape[1], shape[2], repeats, shape[3]});
    keys = emit.reshape(keys, {shape[0], shape[1], ranks.count, shape[3]});
  }
  return takePart(emit.getBuilder(), emit.getLoc(), keys, Cut{2}, ranks);
}

/// The inverse for gradients: [B, S, 1, D] at this rank's head of [B, S, G, D], and zeros at the others.
static Value atOwnKeyHead(OpEmitter &emit, Value gradient, int64_t heads, CutRanks ranks) {
  OpBuilder &builder = emit.getBuilder();
  SmallVector<int64_t> shape(tensorType(gradient).getShape());
  shape[2] = heads;
  auto index = RankedTensorType::get({heads}, builder.getI64Type());
  Value numbers = builder.create<IotaOp>(emit.getLoc(), index, 0, 0, 1);
  Value each = emit.reshape(emit.broadcast(numbers, {0}, {heads, ranks.count / heads}), {ranks.count});
  Value own = takePart(builder, emit.getLoc(), each, Cut{0}, ranks);
  Value isOwn = emit.compare(Predicate::EQ, numbers, emit.broadcast(own, {0}, {heads}));
  Value all = emit.broadcast(gradient, {0, 1, 2, 3}, shape);
  return emit.select(emit.broadcast(isOwn, {2}, shape), all, emit.splat(tensorType(all), 0));
}

/// Whether ranks read one key head each, and not parts of their own.
static bool readsOneKeyHead(const LocalPart &part) {
  constexpr unsigned kKey = 1;
  return !part.factor.operands[kKey].has();
}

/// Lets attention drop what its heads drop in the whole, of which this rank has some in a row.
template <typename OpT>
static void numberHeads(OpT own, OpT whole, int64_t heads, Value firstHead) {
  if (!whole.getRng())
    return;
  own.getFirstHeadMutable().assign(firstHead);
  own.setHeads(heads);
}

/// The number of a rank's first head, where `lse` is that of all heads; null where nothing is drawn.
template <typename OpT>
static Value firstHead(OpT op, OpEmitter &emit, CutRanks ranks) {
  if (!op.getRng())
    return {};
  const int64_t own = tensorType(op.getLse()).getDimSize(1) / ranks.count;
  return rankTimes(emit, ranks, own, RankedTensorType::get({}, emit.getBuilder().getI64Type()));
}

SmallVector<Value> mlir::ds::localizeOp(AttentionOp op, OpBuilder &builder, ValueRange operands,
                                        TypeRange types, const LocalPart &part) {
  OpEmitter emit(builder, op.getLoc());
  SmallVector<Value> read(operands);
  if (readsOneKeyHead(part))
    for (Value &keys : MutableArrayRef(read).slice(1, 2))
      keys = ownKeyHead(emit, keys, part.ranks);
  Value first = firstHead(op, emit, part.ranks);
  SmallVector<Value> results = localizePlainly(op, builder, read, types, part);
  numberHeads(results.front().getDefiningOp<AttentionOp>(), op, tensorType(op.getLse()).getDimSize(1), first);
  return results;
}

SmallVector<Value> mlir::ds::localizeOp(AttentionGradOp op, OpBuilder &builder, ValueRange operands,
                                        TypeRange types, const LocalPart &part) {
  OpEmitter emit(builder, op.getLoc());
  SmallVector<Value> read(operands);
  SmallVector<Type> own(types);
  const bool readsOne = readsOneKeyHead(part);
  for (unsigned index : {1u, 2u})
    if (readsOne) {
      read[index] = ownKeyHead(emit, read[index], part.ranks);
      own[index] = read[index].getType();
    }
  Value first = firstHead(op, emit, part.ranks);
  SmallVector<Value> results = localizePlainly(op, builder, read, own, part);
  numberHeads(results.front().getDefiningOp<AttentionGradOp>(), op, tensorType(op.getLse()).getDimSize(1),
              first);
  const int64_t heads = tensorType(op.getKey()).getDimSize(2);
  for (Value &gradient : MutableArrayRef(results).drop_front())
    if (readsOne)
      gradient = atOwnKeyHead(emit, gradient, heads, part.ranks);
  return results;
}

//===----------------------------------------------------------------------===//
// Tables of which each rank has some rows
//===----------------------------------------------------------------------===//

/// `ids` counted from this rank's first row of `rows` on: those of other ranks lie outside.
static Value ownIds(OpEmitter &emit, Value ids, int64_t rows, CutRanks ranks) {
  return emit.binary<SubOp>(ids, rankTimes(emit, ranks, rows, tensorType(ids)));
}

SmallVector<Value> mlir::ds::localizeOp(EmbeddingOp op, OpBuilder &builder, ValueRange operands,
                                        TypeRange types, const LocalPart &part) {
  if (part.factor.operands[0].dim != 0)
    return localizePlainly(op, builder, operands, types, part);
  OpEmitter emit(builder, op.getLoc());
  const int64_t rows = tensorType(operands[0]).getDimSize(0);
  Value ids = ownIds(emit, operands[1], rows, part.ranks);
  auto own =
      builder.create<EmbeddingOp>(op.getLoc(), types.front(), operands[0], ids, /*part=*/true, IntegerAttr());
  return {own.getResult()};
}

SmallVector<Value> mlir::ds::localizeOp(EmbeddingGradOp op, OpBuilder &builder, ValueRange operands,
                                        TypeRange types, const LocalPart &part) {
  SmallVector<Value> read(operands);
  if (part.factor.results[0].dim == 0) {
    OpEmitter emit(builder, op.getLoc());
    read[0] = ownIds(emit, read[0], cast<RankedTensorType>(types.front()).getDimSize(0), part.ranks);
  }
  return localizePlainly(op, builder, read, types, part);
}
