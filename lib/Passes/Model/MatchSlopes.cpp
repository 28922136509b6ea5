//===- MatchSlopes.cpp - Addends that grow with the distance --------------------===//
//
// ALiBi (arXiv 2108.12409) adds slopes[h] * (s - t), slopes[h] * s or -slopes[h] * |t - s| to scores. Stored,
// that is a number for each score. ds.attention forms slopes[h] * (s - t) in f32 for all three: in a row they
// differ by a number that a softmax takes off, and the model's own rounding of a product that is as large as
// s does not come into it.
//
//===----------------------------------------------------------------------------===//
#include "MatchSlopes.h"
#include "MaskElements.h"
#include "MatchAttention.h"
#include "ds/Dialect/Emitter.h"

using namespace mlir;
using namespace mlir::ds;

/// More products than this of positions are not examined.
static constexpr int64_t kMaxElements = 1 << 26;

/// A sum of more is not taken apart.
static constexpr size_t kMaxAddends = 8;

/// A dimension of size 1 that is none of the scores'.
static constexpr int64_t kNone = -1;
/// Batch and heads in one, of scores [B * H, T, S].
static constexpr int64_t kFolded = -2;
/// The heads, of scores [B, H, T, S].
static constexpr int64_t kHeads = 1;

/// For each dimension of `from` the one of `to` in which its elements lie, where the reshape only adds or
/// takes away dimensions of size 1; kNone for those.
static std::optional<ScoreDims> matchOnes(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  ScoreDims dims(from.size(), kNone);
  size_t at = 0;
  for (auto [index, size] : llvm::enumerate(from)) {
    if (size == 1)
      continue;
    while (at < to.size() && to[at] == 1)
      ++at;
    if (at == to.size() || to[at] != size)
      return std::nullopt;
    dims[index] = at++;
  }
  return dims;
}

/// For each dimension of the operand of `op` the dimension of its result that it runs along, if it is one of
/// those ops that repeat or rename.
static std::optional<ScoreDims> operandDims(Operation *op) {
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return ScoreDims(broadcast.getDims());
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return matchOnes(tensorType(reshape.getInput()).getShape(), tensorType(reshape.getResult()).getShape());
  return std::nullopt;
}

/// The dimensions of the input [B, H, ...] of a reshape to [B * H, ...], whose dimensions are `dims`.
static std::optional<ScoreDims> unfoldedDims(Operation *op, const ScoreDims &dims) {
  auto reshape = dyn_cast<ReshapeOp>(op);
  if (!reshape || dims.empty() || dims.front() != kFolded)
    return std::nullopt;
  ArrayRef<int64_t> from = tensorType(reshape.getInput()).getShape(),
                    to = tensorType(reshape.getResult()).getShape();
  if (from.size() != to.size() + 1 || from.drop_front(2) != to.drop_front())
    return std::nullopt;
  ScoreDims inner = {0, kHeads};
  inner.append(dims.begin() + 1, dims.end());
  return inner;
}

/// The operand of an op that repeats or renames, with its dimensions; null for other ops.
static Addend stepInside(const Addend &addend) {
  Operation *op = addend.value.getDefiningOp();
  if (!op)
    return {};
  if (std::optional<ScoreDims> inner = unfoldedDims(op, addend.dims))
    return {op->getOperand(0), *inner};
  std::optional<ScoreDims> inner = operandDims(op);
  if (!inner)
    return {};
  for (int64_t &dim : *inner)
    dim = dim < 0 ? kNone : addend.dims[dim];
  return {op->getOperand(0), *inner};
}

void mlir::ds::splitAddends(Value mask, SmallVectorImpl<Addend> &addends) {
  const int64_t rank = tensorType(mask).getRank();
  if (rank != 3 && rank != 4)
    return;
  SmallVector<Addend> left = {{mask, rank == 4 ? ScoreDims{0, kHeads, 2, 3} : ScoreDims{kFolded, 2, 3}}};
  while (!left.empty()) {
    Addend addend = left.pop_back_val();
    for (Addend inner = stepInside(addend); inner.value; inner = stepInside(addend))
      addend = inner;
    auto sum = addend.value.getDefiningOp<AddOp>();
    if (!sum || addends.size() + left.size() >= kMaxAddends) {
      addends.push_back(addend);
      continue;
    }
    left.push_back({sum.getRhs(), addend.dims});
    left.push_back({sum.getLhs(), addend.dims});
  }
}

/// The dimensions along which elements of `value` may differ, as bits.
static unsigned varyingDims(Value value) {
  RankedTensorType type = tensorType(value);
  unsigned all = 0, some = 0;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    all |= size > 1 ? 1u << dim : 0;
  Operation *op = value.getDefiningOp();
  if (!op)
    return all;
  if (auto iota = dyn_cast<IotaOp>(op))
    return 1u << iota.getDim();
  if (isa<ConstantOp>(op))
    return getSplatValue(value) ? 0 : all;
  if (std::optional<ScoreDims> dims = operandDims(op)) {
    unsigned inner = varyingDims(op->getOperand(0));
    for (auto [index, dim] : llvm::enumerate(*dims))
      some |= dim >= 0 && (inner >> index & 1) ? 1u << dim : 0;
    return some & all;
  }
  if (!isa<AddOp, SubOp, MulOp, DivOp, NegOp, AbsOp, ConvertOp, CompareOp, SelectOp>(op))
    return all;
  for (Value operand : op->getOperands())
    some |= varyingDims(operand);
  return some;
}

/// How much `positions` grow from key to key; `dims` are its dimensions among the scores', whose last two
/// have `queries` and `keys` elements.
static std::optional<double> growth(Value positions, const ScoreDims &dims, int64_t queries, int64_t keys,
                                    bool isCausal) {
  MaskElements elements;
  ElementLine line{SmallVector<int64_t, 4>(dims.size(), 0), std::nullopt};
  std::optional<size_t> row;
  for (auto [index, dim] : llvm::enumerate(dims)) {
    if (tensorType(positions).getDimSize(index) == 1)
      continue;
    if (dim == 3)
      line.dim = index;
    if (dim == 2)
      row = index;
  }
  if (!line.dim || keys < 2 || queries * keys > kMaxElements)
    return std::nullopt;
  std::optional<double> step;
  for (int64_t t = queries - 1; t >= 0; --t) {
    if (row)
      line.first[*row] = t;
    std::optional<std::vector<double>> values = elements.at(positions, line, keys);
    if (!values || values->size() == 1)
      return std::nullopt;
    step = step.value_or((*values)[keys - 1] - (*values)[keys - 2]);
    const int64_t end = isCausal ? t + keys - queries + 1 : keys;
    for (int64_t s = 1; s < end; ++s)
      if ((*values)[s] - (*values)[s - 1] != *step)
        return std::nullopt;
    if (!row)
      break; // all rows are this one
  }
  return step;
}

/// The tensor of `count` elements that `value` repeats.
static Value stripToHeads(Value value, int64_t count) {
  while (tensorType(value).getNumElements() != count &&
         isa_and_nonnull<BroadcastOp, ReshapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return tensorType(value).getNumElements() == count ? value : Value();
}

std::optional<HeadSlopes> mlir::ds::matchSlopes(Addend addend, int64_t queries, int64_t keys, bool isCausal) {
  double factor = 1;
  addend.value = stripScale(addend.value, factor);
  while (Operation *op = addend.value.getDefiningOp()) {
    Addend inner = stepInside(addend);
    if (!inner.value && !isa<NegOp>(op))
      break;
    factor = isa<NegOp>(op) ? -factor : factor;
    addend = inner.value ? inner : Addend{op->getOperand(0), addend.dims};
    addend.value = stripScale(addend.value, factor);
  }
  auto product = addend.value.getDefiningOp<MulOp>();
  if (!product)
    return std::nullopt;
  const auto isHeads = [](int64_t dim) { return dim == kHeads || dim == kFolded; };
  auto isWithin = [&](Value operand, auto &&allows) {
    unsigned varying = varyingDims(operand);
    return llvm::all_of(llvm::enumerate(addend.dims),
                        [&](auto entry) { return !(varying >> entry.index() & 1) || allows(entry.value()); });
  };
  int64_t heads = 1;
  for (auto [dim, size] : llvm::zip_equal(addend.dims, tensorType(addend.value).getShape()))
    heads = isHeads(dim) ? size : heads;
  for (bool swapped : {false, true}) {
    Value slopes = product->getOperand(swapped), positions = product->getOperand(!swapped);
    if (!isWithin(slopes, isHeads) || !isWithin(positions, [](int64_t dim) { return dim == 2 || dim == 3; }))
      continue;
    Value perHead = stripToHeads(slopes, heads);
    std::optional<double> step = growth(positions, addend.dims, queries, keys, isCausal);
    if (perHead && step)
      return HeadSlopes{perHead, factor * *step};
  }
  return std::nullopt;
}
