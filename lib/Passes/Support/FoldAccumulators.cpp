//===- FoldAccumulators.cpp - Sums formed where they are made -------------------===//
//
// A product that is only added to something can be computed into it: one buffer and one pass over memory
// less. This is how gradients accumulate over micro-steps, and how a tied table collects its two gradients
// without a second table ever being made.
//
//===----------------------------------------------------------------------------===//
#include "FoldAccumulators.h"

#include "ds/Dialect/Work.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::ds;

/// The accumulator operand of an op that can add into one; null for other ops, and where adding after it
/// differs.
static MutableOperandRange *getAccumulatorSlot(Operation *op, std::optional<MutableOperandRange> &storage) {
  if (auto matmul = dyn_cast_or_null<MatmulOp>(op); matmul && matmul.getEpilogue() == Epilogue::None)
    return &storage.emplace(matmul.getAccumulatorMutable());
  if (auto grad = dyn_cast_or_null<EmbeddingGradOp>(op))
    return &storage.emplace(grad.getAccumulatorMutable());
  return nullptr;
}

/// True when `value` is computed before `op`, or is an argument.
static bool isMadeBefore(Value value, Operation *op) {
  Operation *def = value.getDefiningOp();
  return !def || (def->getBlock() == op->getBlock() && def->isBeforeInBlock(op));
}

/// The value whose maker can take `addend` in: `sum` itself, or, where its accumulator is taken, the maker of
/// that. Null when there is none.
static Operation *findTaker(Value sum, Value addend) {
  while (true) {
    std::optional<MutableOperandRange> storage;
    Operation *op = sum.getDefiningOp();
    MutableOperandRange *slot = getAccumulatorSlot(op, storage);
    if (!slot || !sum.hasOneUse() || !isMadeBefore(addend, op))
      return nullptr;
    if (slot->empty())
      return op;
    sum = (*slot)[0].get();
  }
}

namespace {
struct FoldAccumulator : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    for (auto [sum, addend] : {std::pair(op.getRhs(), op.getLhs()), std::pair(op.getLhs(), op.getRhs())}) {
      // Someone else who reads the addend would need a copy of it: adding elsewhere is then as cheap, and
      // fuses.
      Operation *taker = addend.hasOneUse() ? findTaker(sum, addend) : nullptr;
      if (!taker)
        continue;
      rewriter.modifyOpInPlace(taker, [&, addend = addend] {
        std::optional<MutableOperandRange> storage;
        getAccumulatorSlot(taker, storage)->assign(addend);
      });
      rewriter.replaceOp(op, sum);
      return success();
    }
    return failure();
  }
};
} // namespace

/// True for what ops make that can add into an accumulator, and for sums of such values.
static bool isSumOfProducts(Value value) {
  llvm::SetVector<Value> parts;
  parts.insert(value);
  for (size_t index = 0; index < parts.size(); ++index) {
    std::optional<MutableOperandRange> storage;
    if (auto add = parts[index].getDefiningOp<AddOp>())
      parts.insert(add->operand_begin(), add->operand_end());
    else if (!getAccumulatorSlot(parts[index].getDefiningOp(), storage))
      return false;
  }
  return true;
}

Value mlir::ds::makeIn(Emitter &emit, Value value, Type element) {
  std::optional<MutableOperandRange> storage;
  if (auto rounded = value.getDefiningOp<ConvertOp>(); rounded && value.use_empty())
    if (Value sum = rounded.getInput(); tensorType(sum).getElementType() == element && isSumOfProducts(sum))
      return sum;
  MutableOperandRange *slot = getAccumulatorSlot(value.getDefiningOp(), storage);
  RankedTensorType type = tensorType(value);
  bool isWider = element.isF32() && type.getElementTypeBitWidth() < 32;
  if (!slot || !slot->empty() || !isWider || !value.use_empty())
    return emit.convert(value, element);
  value.setType(type.clone(element));
  return value;
}

void mlir::ds::populateFoldAccumulatorPatterns(RewritePatternSet &patterns) {
  patterns.add<FoldAccumulator>(patterns.getContext());
}

/// The sum of an accumulate op that has let go of its operands, which nothing else may read.
static Value makeSum(Emitter &emit, Value gradient, Value kept, Type element) {
  if (!kept)
    return makeIn(emit, gradient, element);
  Type type = tensorType(gradient).getElementType();
  if (element.getIntOrFloatBitWidth() >= type.getIntOrFloatBitWidth())
    return emit.add(kept, makeIn(emit, gradient, element));
  return emit.convert(emit.add(emit.convert(kept, type), gradient), element);
}

void mlir::ds::lowerAccumulations(Operation *root) {
  SmallVector<AccumulateOp> ops;
  root->walk([&](AccumulateOp op) { ops.push_back(op); });
  SmallVector<Operation *> sums;
  for (AccumulateOp op : ops) {
    Value gradient = op.getGradient(), kept = op.getKept();
    Type element = op.getResult().getType().getElementType();
    WorkListener listener(op);
    OpBuilder builder(op->getContext(), &listener);
    builder.setInsertionPoint(op);
    Emitter emit(builder, op.getLoc());
    op->setOperands({});
    Value sum = makeSum(emit, gradient, kept, element);
    op.getResult().replaceAllUsesWith(sum);
    op->erase();
    if (Operation *maker = gradient.getDefiningOp(); maker && isOpTriviallyDead(maker))
      maker->erase(); // a rounding that would count as a reader of what was rounded
    auto rounded = sum.getDefiningOp<ConvertOp>();
    Operation *maker = rounded ? rounded.getInput().getDefiningOp() : sum.getDefiningOp();
    if (isa_and_nonnull<AddOp>(maker))
      sums.push_back(maker);
  }
  RewritePatternSet patterns(root->getContext());
  populateFoldAccumulatorPatterns(patterns);
  GreedyRewriteConfig config;
  config.strictMode = GreedyRewriteStrictness::ExistingOps;
  if (!sums.empty())
    (void)applyOpPatternsAndFold(sums, std::move(patterns), config);
}
