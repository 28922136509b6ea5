//===- RaiseAttention.cpp - Spelled-out attention becomes one op ----------------===//
//
// Every spelling of attention stores a T x S matrix per head, which ds.attention does not. Heads are put last
// but one, as ds.attention wants them, which is where models have them before they transpose: the
// transpositions cancel. Where a model never had them there, heads count as batch instead, so that no
// transposition is ever added for a tensor that had none.
//
//===----------------------------------------------------------------------------===//
#include "FindTrained.h"
#include "MatchAttention.h"
#include "Support/StraightLine.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_RAISEATTENTION
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Undoes a repetition of key heads: x = reshape(broadcast(z)) where heads H at `dim` are G heads, each
/// repeated H / G times side by side. Returns z with G heads, or null.
static Value stripHeadRepetition(Emitter &emit, Value x, int64_t dim) {
  auto reshape = x.getDefiningOp<ReshapeOp>();
  auto broadcast = reshape ? reshape.getInput().getDefiningOp<BroadcastOp>() : BroadcastOp();
  if (!broadcast || tensorType(broadcast.getResult()).getRank() != 5)
    return {};
  SmallVector<int64_t> shape(tensorType(x).getShape());
  ArrayRef<int64_t> repeated = tensorType(broadcast.getResult()).getShape();
  shape[dim] = repeated[dim];
  SmallVector<int64_t> expected(shape);
  expected.insert(expected.begin() + dim + 1, repeated[dim + 1]);
  if (ArrayRef<int64_t>(expected) != repeated)
    return {};
  // All dimensions but the repeated one are the source's own.
  RankedTensorType source = tensorType(broadcast.getInput());
  if (source.getNumElements() * repeated[dim + 1] != ShapedType::getNumElements(repeated))
    return {};
  for (auto [size, target] : llvm::zip_equal(source.getShape(), broadcast.getDims()))
    if (target == dim + 1 && size != 1)
      return {};
  return emit.reshape(broadcast.getInput(), shape);
}

namespace {
/// One of query, key and value: [B, H, N, D], or [B, H, D, N] when `swapped`; or with B and H in one
/// dimension.
struct Operand {
  Value value;
  bool swapped;
};

/// Emits a ds.attention for a match.
class Raiser {
public:
  Raiser(OpBuilder &builder, AttentionMatch match)
      : match(match), scale(match.scale), emit(builder, this->match.result.getLoc()) {
    operands = {Operand{this->match.scores.getLhs(), match.scores.getTransposeLhs()},
                Operand{match.scores.getRhs(), !match.scores.getTransposeRhs()},
                Operand{match.result.getRhs(), match.result.getTransposeRhs()}};
    operands[0].value = stripScale(operands[0].value, scale);
    operands[1].value = stripScale(operands[1].value, scale);
  }

  /// The value that replaces the last product; null where heads that count as batch have slopes beside a
  /// mask.
  Value raise();

private:
  bool findHeads();
  Value unfold(Value value) const;
  bool isTokensFirst(const Operand &operand) const;
  Value tokensFirst(Operand operand, bool mayBeShared);
  Value headsAsBatch(Operand operand);
  Value shapeMask(bool asBatch);
  Value buildAttention(ArrayRef<Value> inputs, Value mask);

  AttentionMatch match;
  double scale;
  Emitter emit;
  SmallVector<Operand> operands;
  int64_t batch = 0, heads = 0;
};
} // namespace

/// Finds B and H: of a rank-4 product they are its leading sizes, of a rank-3 one those that were folded into
/// one.
bool Raiser::findHeads() {
  for (Value value : {operands[0].value, operands[1].value, operands[2].value}) {
    Value unfolded = tensorType(value).getRank() == 4 ? value : stripLeadingReshape(value);
    if (!unfolded || tensorType(unfolded).getRank() != 4)
      continue;
    batch = tensorType(unfolded).getDimSize(0);
    heads = tensorType(unfolded).getDimSize(1);
    return true;
  }
  return false;
}

/// The value with B and H apart.
Value Raiser::unfold(Value value) const {
  if (tensorType(value).getRank() == 4)
    return value;
  Value unfolded = stripLeadingReshape(value);
  return unfolded && tensorType(unfolded).getShape().take_front(2) == ArrayRef<int64_t>{batch, heads}
             ? unfolded
             : Value();
}

/// True when the value is a transposition of [B, N, H, D].
bool Raiser::isTokensFirst(const Operand &operand) const {
  Value value = unfold(operand.value);
  auto transpose = value ? value.getDefiningOp<TransposeOp>() : TransposeOp();
  return transpose && transpose.getPerm() ==
                          (operand.swapped ? ArrayRef<int64_t>{0, 2, 3, 1} : ArrayRef<int64_t>{0, 2, 1, 3});
}

/// The operand as [B, N, H, D]; keys and values with fewer heads where theirs were repeated.
Value Raiser::tokensFirst(Operand operand, bool mayBeShared) {
  SmallVector<int64_t> shape(tensorType(operand.value).getShape());
  Value value = unfold(operand.value);
  if (!value) {
    shape.erase(shape.begin());
    shape.insert(shape.begin(), {batch, heads});
    value = emit.reshape(operand.value, shape);
  }
  if (mayBeShared && !operand.swapped)
    if (Value shared = stripHeadRepetition(emit, value, 1))
      value = shared;
  static constexpr int64_t kFromSwapped[] = {0, 3, 1, 2}, kFromHeadsFirst[] = {0, 2, 1, 3};
  ArrayRef<int64_t> perm = operand.swapped ? kFromSwapped : kFromHeadsFirst;
  auto transpose = value.getDefiningOp<TransposeOp>();
  bool cancels = transpose && llvm::all_of(llvm::seq<int64_t>(0, 4), [&](int64_t dim) {
                   return transpose.getPerm()[perm[dim]] == dim;
                 });
  value = cancels ? transpose.getInput()
                  : emit.getBuilder().create<TransposeOp>(emit.getLoc(), value, perm).getResult();
  if (mayBeShared)
    if (Value shared = stripHeadRepetition(emit, value, 2))
      value = shared;
  return value;
}

/// The operand as [B * H, N, 1, D].
Value Raiser::headsAsBatch(Operand operand) {
  Value value = operand.value;
  int64_t rank = tensorType(value).getRank();
  if (operand.swapped) {
    SmallVector<int64_t> perm = dimRange(0, rank);
    std::swap(perm[rank - 2], perm[rank - 1]);
    value = emit.getBuilder().create<TransposeOp>(emit.getLoc(), value, perm);
  }
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  int64_t rows = shape[rank - 2], columns = shape[rank - 1];
  return emit.reshape(value, {tensorType(value).getNumElements() / (rows * columns), rows, 1, columns});
}

/// The additive mask with rank 4, not repeated where it need not be.
Value Raiser::shapeMask(bool asBatch) {
  if (!match.mask)
    return {};
  Value mask = match.mask->value;
  RankedTensorType full = tensorType(mask);
  int64_t rank = full.getRank(), rows = full.getDimSize(rank - 2), columns = full.getShape().back();
  SmallVector<int64_t> shape;
  if (auto broadcast = mask.getDefiningOp<BroadcastOp>()) {
    SmallVector<int64_t> sizes(rank, 1);
    for (auto [size, dim] : llvm::zip_equal(tensorType(broadcast.getInput()).getShape(), broadcast.getDims()))
      sizes[dim] = size;
    ArrayRef<int64_t> leading = ArrayRef(sizes).drop_back(2);
    bool isShared = llvm::all_of(leading, [](int64_t size) { return size == 1; });
    bool isWhole = leading == full.getShape().drop_back(2);
    if (isShared)
      shape = {1, 1, sizes[rank - 2], sizes[rank - 1]};
    else if (rank == 4 && !asBatch)
      shape = sizes;
    else if (isWhole && asBatch)
      shape = {ShapedType::getNumElements(leading), 1, sizes[rank - 2], sizes[rank - 1]};
    else if (isWhole)
      shape = {batch, heads, sizes[rank - 2], sizes[rank - 1]};
    if (!shape.empty())
      mask = broadcast.getInput();
  }
  if (shape.empty())
    shape = asBatch ? SmallVector<int64_t>{full.getNumElements() / (rows * columns), 1, rows, columns}
                    : SmallVector<int64_t>{batch, heads, rows, columns};
  return emit.scale(emit.reshape(mask, shape), match.mask->factor);
}

/// The slopes times their factor as f32 [H]; of constants that is one constant.
static Value shapeSlopes(Emitter &emit, const HeadSlopes &slopes) {
  Value value = emit.reshape(slopes.slopes, {tensorType(slopes.slopes).getNumElements()});
  value = emit.convert(value, emit.getBuilder().getF32Type());
  auto constant = value.getDefiningOp<ConstantOp>();
  auto known = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : DenseFPElementsAttr();
  if (slopes.factor == 1 || !known)
    return emit.scale(value, slopes.factor);
  SmallVector<float> scaled;
  for (float slope : known.getValues<float>())
    scaled.push_back(slope * static_cast<float>(slopes.factor));
  auto type = cast<RankedTensorType>(value.getType());
  return emit.getBuilder().create<ConstantOp>(emit.getLoc(), type,
                                              DenseElementsAttr::get(type, ArrayRef<float>(scaled)));
}

Value Raiser::buildAttention(ArrayRef<Value> inputs, Value mask) {
  ArrayRef<int64_t> query = tensorType(inputs[0]).getShape();
  OpBuilder &builder = emit.getBuilder();
  auto lse = RankedTensorType::get({query[0], query[2], query[1]}, builder.getF32Type());
  IntegerAttr window = match.hidden.window ? builder.getI64IntegerAttr(*match.hidden.window) : IntegerAttr();
  FloatAttr cap = match.cap ? builder.getF64FloatAttr(*match.cap) : FloatAttr();
  UnitAttr causal = match.hidden.causal ? builder.getUnitAttr() : UnitAttr();
  return builder
      .create<AttentionOp>(emit.getLoc(), inputs[0].getType(), lse, inputs[0], inputs[1], inputs[2], mask,
                           match.slopes ? shapeSlopes(emit, *match.slopes) : Value(),
                           match.dropout ? Value(match.dropout.getRng()) : Value(), /*first_head=*/Value(),
                           causal, window, cap, builder.getF64FloatAttr(scale),
                           match.dropout ? match.dropout.getProbabilityAttr() : FloatAttr(),
                           match.dropout ? match.dropout.getIdAttr() : IntegerAttr(),
                           /*heads=*/IntegerAttr())
      .getResult();
}

Value Raiser::raise() {
  ArrayRef<int64_t> shape = tensorType(match.result.getResult()).getShape();
  bool tokens =
      findHeads() && llvm::any_of(operands, [&](const Operand &operand) { return isTokensFirst(operand); });
  const bool hasSlopes = tokens && match.slopes && tensorType(match.slopes->slopes).getNumElements() == heads;
  if (match.slopes && !hasSlopes) {
    // One slope for all of a batch is none, nor is a slope for each of a batch and its heads.
    if (match.mask)
      return {};
    match.mask = std::exchange(match.spelled, std::nullopt);
    match.slopes.reset();
  }
  if (!tokens) {
    SmallVector<Value> inputs =
        llvm::map_to_vector(operands, [&](Operand operand) { return headsAsBatch(operand); });
    return emit.reshape(buildAttention(inputs, shapeMask(true)), shape);
  }
  SmallVector<Value> inputs = {tokensFirst(operands[0], false), tokensFirst(operands[1], true),
                               tokensFirst(operands[2], true)};
  inputs[0] = stripScale(inputs[0], scale);
  // Keys and values share heads alike, or not at all.
  if (tensorType(inputs[1]).getDimSize(2) != tensorType(inputs[2]).getDimSize(2)) {
    inputs[1] = tokensFirst(operands[1], false);
    inputs[2] = tokensFirst(operands[2], false);
  }
  inputs[1] = stripScale(inputs[1], scale);
  Value result = buildAttention(inputs, shapeMask(false));
  Value transposed =
      emit.getBuilder().create<TransposeOp>(emit.getLoc(), result, ArrayRef<int64_t>{0, 2, 1, 3});
  return emit.reshape(transposed, shape);
}

/// Says as attributes and slopes what the mask of `op` is made of, where it is made of nothing else; true if
/// it did.
static bool takeMaskApart(AttentionOp op, KeysFinder &finder) {
  std::optional<MaskParts> parts = matchMask(finder, op.getMask(), /*scale=*/1, op.getCausal());
  if (!parts)
    return false;
  const int64_t heads = tensorType(op.getQuery()).getDimSize(2);
  OpBuilder builder(op);
  if (parts->slopes) {
    if (op.getSlopes() || tensorType(parts->slopes->slopes).getNumElements() != heads)
      return false;
    Emitter emit(builder, op.getLoc());
    op.getSlopesMutable().assign(shapeSlopes(emit, *parts->slopes));
  }
  HiddenKeys hidden{op.getCausal(), op.getWindow()};
  hidden.add(parts->hidden.causal, parts->hidden.window);
  op.setCausal(hidden.causal);
  if (hidden.window)
    op.setWindow(*hidden.window);
  op.getMaskMutable().clear();
  return true;
}

namespace {
struct RaiseAttention : mlir::ds::impl::RaiseAttentionBase<RaiseAttention> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Model)))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      bool changed = raiseProducts(func, symbols);
      changed |= takeMasksApart(func, symbols);
      // Folding takes away the transpositions that met, and the scores that nothing reads.
      if (changed)
        (void)applyPatternsAndFoldGreedily(func, RewritePatternSet(&getContext()), straightLineConfig());
    }
  }

private:
  /// Products of softmaxes become attention; true if one did.
  bool raiseProducts(func::FuncOp func, SymbolTable &symbols) {
    AttentionMatcher matcher(func, symbols);
    SmallVector<MatmulOp> products(func.getOps<MatmulOp>());
    bool changed = false;
    for (MatmulOp product : products) {
      std::optional<AttentionMatch> match = matcher.match(product);
      if (!match)
        continue;
      OpBuilder builder(product);
      if (Value raised = Raiser(builder, *match).raise()) {
        product.getResult().replaceAllUsesWith(raised);
        changed = true;
      }
    }
    return changed;
  }

  /// The same of masks of attention that is one op already; true if one was taken apart.
  bool takeMasksApart(func::FuncOp func, SymbolTable &symbols) {
    KeysFinder finder;
    bool changed = false;
    for (auto op : func.getOps<AttentionOp>())
      if (op.getMask() && !findTrained(func, symbols, op.getMask()))
        changed |= takeMaskApart(op, finder);
    return changed;
  }
};
} // namespace
