//===- LogitsEntry.cpp - The logits of chosen positions ----------------------------===//
//
// Text is continued by one token after another, and for each only the logits behind the last one are asked
// for. The forward is cut where its loss begins: of the rows that logits are computed from, [M * T, K], the
// entry looks up those that are asked for, [M, K], and makes the last product of them alone. So a vocabulary
// costs M rows of logits, and it does not matter in how many pieces the loss is made.
//
//===---------------------------------------------------------------------------===//
#include "LogitsEntry.h"

#include "Support/Rows.h"
#include "ds/Passes/StateNames.h"

using namespace mlir;
using namespace mlir::ds;

namespace {

/// The last product before a loss.
struct Head {
  CrossEntropyOp loss;
  MatmulOp product;
  SmallVector<Operation *> between; ///< what is done to each logit after it, from the loss up
};

} // namespace

/// What says that `segment` has no logits of the kind that are asked for.
static InFlightDiagnostic refuse(StepSegment &segment, Location where) {
  InFlightDiagnostic error =
      emitError(where, "expects a causal model of tokens for the entry \"logits\", but ");
  error.attachNote(segment.getFunction().getLoc())
      << "without --entry logits the model is trained and evaluated all the same";
  return error;
}

/// Which operand of `op` has the logits: the first, but where that is a constant factor.
static unsigned logitsOperand(Operation *op) {
  return isa<MulOp>(op) && getSplatValue(op->getOperand(0)) ? 1 : 0;
}

/// The factor or divisor of `op` where that is a constant, else none.
static std::optional<double> constantOf(Operation *op) {
  return isa<MulOp, DivOp>(op) ? getSplatValue(op->getOperand(1 - logitsOperand(op))) : std::nullopt;
}

/// Whether `op` does the same to each logit, as `repeat` can.
static bool isOfEachLogit(Operation *op) { return isa<ConvertOp, TanhOp>(op) || constantOf(op); }

/// The product that `loss` reads; its product is null where there is none.
static Head findHead(CrossEntropyOp loss) {
  Head head{loss, {}, {}};
  Operation *op = loss.getLogits().getDefiningOp();
  for (; op; op = op->getOperand(logitsOperand(op)).getDefiningOp()) {
    if (auto product = dyn_cast<MatmulOp>(op)) {
      if (!product.getAccumulator() && product.getEpilogue() == Epilogue::None &&
          !product.getTransposeLhs() && tensorType(product.getRhs()).getRank() == 2)
        head.product = product;
      return head;
    }
    if (isOfEachLogit(op))
      head.between.push_back(op);
    else if (!keepsColumns(op))
      return head;
  }
  return head;
}

/// The head that all losses of `segment` share; fails where there is none, or where there are several.
static FailureOr<Head> findHead(StepSegment &segment) {
  std::optional<Head> found;
  for (auto loss : segment.getBody().getOps<CrossEntropyOp>()) {
    Head head = findHead(loss);
    if (!head.product)
      return refuse(segment, loss.getLoc()) << "the logits of its loss are no product of rows by a matrix";
    if (found && (found->product.getRhs() != head.product.getRhs() ||
                  found->product.getBias() != head.product.getBias()))
      return refuse(segment, loss.getLoc()) << "its losses are of different logits";
    if (!found)
      found = head;
  }
  if (!found)
    return refuse(segment, segment.getFunction().getLoc()) << "it has no cross-entropy";
  return *found;
}

/// The rows of all positions that `product` is made of, or of which its rows are some: what rearranges, picks
/// and cuts them is looked through.
static Value findRows(MatmulOp product) {
  Value rows = product.getLhs();
  for (Operation *op = rows.getDefiningOp(); op; op = rows.getDefiningOp()) {
    auto split = dyn_cast<SplitOp>(op);
    if (!keepsColumns(op) && !(split && split.getDim() == 0))
      break;
    rows = op->getOperand(0);
  }
  return rows;
}

/// How many samples a micro-batch has, of an input of tokens with one for each of `rows`; 0 without such.
static int64_t findSamples(func::FuncOp func, int64_t rows) {
  for (unsigned index = 0; index < func.getNumArguments(); ++index) {
    auto type = dyn_cast<RankedTensorType>(func.getArgument(index).getType());
    if (func.getArgAttr(index, DsDialect::kInputAttr) && type && type.getRank() == 2 &&
        type.getElementType().isInteger() && type.getNumElements() == rows)
      return type.getDimSize(0);
  }
  return 0;
}

/// Refuses attention that plainly sees later positions. A mask may hide them: whether it does is for who
/// runs the entry to find out.
static LogicalResult checkCausal(StepSegment &segment) {
  for (auto attention : segment.getBody().getOps<AttentionOp>())
    if (!attention.getCausal() && !attention.getMask())
      return refuse(segment, attention.getLoc()) << "its attention sees later tokens";
  return success();
}

/// Does to `logits` what is done to each logit between the product and the loss, which has the last word: a
/// cap is part of it.
static Value repeatBetween(Emitter &emit, const Head &head, Value logits) {
  for (Operation *op : llvm::reverse(head.between)) {
    if (isa<ConvertOp>(op))
      logits = emit.convert(logits, tensorType(op->getResult(0)).getElementType());
    else if (isa<TanhOp>(op))
      logits = emit.unary<TanhOp>(logits);
    else if (isa<MulOp>(op))
      logits = emit.scale(logits, *constantOf(op));
    else
      logits = emit.div(logits, emit.splatLike(logits, *constantOf(op)));
  }
  logits = emit.convert(logits, emit.getBuilder().getF32Type());
  if (FloatAttr cap = CrossEntropyOp(head.loss).getCapAttr()) {
    Value limit = emit.splatLike(logits, cap.getValueAsDouble());
    logits = emit.mul(emit.unary<TanhOp>(emit.div(logits, limit)), limit);
  }
  return logits;
}

LogicalResult mlir::ds::buildLogits(StepSegment &segment, StepStates &states) {
  if (failed(checkCausal(segment)))
    return failure();
  FailureOr<Head> head = findHead(segment);
  if (failed(head))
    return failure();
  MatmulOp product = head->product;
  Value rows = findRows(product);
  const int64_t width = tensorType(rows).getShape().back();
  const int64_t numRows = tensorType(rows).getNumElements() / width;
  const int64_t samples = findSamples(segment.getFunction(), numRows);
  if (samples == 0)
    return refuse(segment, product.getLoc())
           << "no input of the forward has a token for each of the " << numRows << " rows of its logits";
  OpBuilder builder(segment.getTerminator());
  Emitter emit(builder, product.getLoc());
  StateOp asked = states.declare(kLogitsRowsState, Role::Scalar, StringAttr(), StateOp(),
                                 RankedTensorType::get({samples}, builder.getI64Type()));
  Value table = emit.reshape(rows, {numRows, width});
  Value picked = builder.create<EmbeddingOp>(product.getLoc(), tensorType(table).clone({samples, width}),
                                             table, segment.read(asked), /*part=*/false, IntegerAttr());
  RankedTensorType whole = tensorType(product.getResult());
  RankedTensorType type = whole.clone({samples, whole.getShape().back()});
  auto logits = builder.create<MatmulOp>(product.getLoc(), type, picked, product.getRhs(), product.getBias(),
                                         /*transposeLhs=*/false, product.getTransposeRhs());
  Value result = repeatBetween(emit, *head, logits.getResult());
  segment.write(states.declare(kLogitsState, Role::Scalar, StringAttr(), StateOp(), tensorType(result)),
                result);
  return success();
}
