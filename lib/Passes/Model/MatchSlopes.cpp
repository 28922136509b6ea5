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

/// Of each dimension of a value, which of the scores it is; -1 for one of size 1 that is none.
using Dims = SmallVector<int64_t, 4>;

/// For each dimension of `from` the one of `to` in which its elements lie, where the reshape only adds or
/// takes away dimensions of size 1; -1 for those.
static std::optional<Dims> matchOnes(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  Dims dims(from.size(), -1);
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
static std::optional<Dims> operandDims(Operation *op) {
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return Dims(broadcast.getDims());
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return matchOnes(tensorType(reshape.getInput()).getShape(), tensorType(reshape.getResult()).getShape());
  return std::nullopt;
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
  if (std::optional<Dims> dims = operandDims(op)) {
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
static std::optional<double> growth(Value positions, const Dims &dims, int64_t queries, int64_t keys,
                                    bool isCausal) {
  MaskElements elements;
  ElementLine line{SmallVector<int64_t, 4>(dims.size(), 0)};
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

std::optional<HeadSlopes> mlir::ds::matchSlopes(Value addend, bool isCausal) {
  ArrayRef<int64_t> scores = tensorType(addend).getShape();
  if (scores.size() != 4)
    return std::nullopt;
  double factor = 1;
  Dims dims = {0, 1, 2, 3};
  Value value = stripScale(addend, factor);
  while (Operation *op = value.getDefiningOp()) {
    std::optional<Dims> inner = operandDims(op);
    if (!inner && !isa<NegOp>(op))
      break;
    if (inner)
      for (int64_t &dim : *inner)
        dim = dim < 0 ? -1 : dims[dim];
    dims = inner.value_or(dims);
    factor = isa<NegOp>(op) ? -factor : factor;
    value = stripScale(op->getOperand(0), factor);
  }
  auto product = value.getDefiningOp<MulOp>();
  if (!product)
    return std::nullopt;
  auto isWithin = [&](Value operand, int64_t first, int64_t last) {
    unsigned varying = varyingDims(operand);
    return llvm::all_of(llvm::enumerate(dims), [&](auto entry) {
      return !(varying >> entry.index() & 1) || (entry.value() >= first && entry.value() <= last);
    });
  };
  for (bool swapped : {false, true}) {
    Value slopes = product->getOperand(swapped), positions = product->getOperand(!swapped);
    if (!isWithin(slopes, 1, 1) || !isWithin(positions, 2, 3))
      continue;
    Value heads = stripToHeads(slopes, scores[1]);
    std::optional<double> step = growth(positions, dims, scores[2], scores[3], isCausal);
    if (heads && step)
      return HeadSlopes{heads, factor * *step};
  }
  return std::nullopt;
}
