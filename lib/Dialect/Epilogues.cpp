//===- Epilogues.cpp - What products do with their sums before they store them ----===//
//
// One table says what an epilogue asks of the product that it belongs to. The verifier reads it, and so does
// the answer to passes that look for a product to give an epilogue to: an epilogue without a row is a warning
// here, and none elsewhere.
//
//===---------------------------------------------------------------------------===//
#include "OpHelpers.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::ds;

namespace {
/// What an epilogue asks of a product.
struct EpilogueRules {
  bool isNarrow = false;      ///< factors and result have one element type of 16 bits
  bool mayAddBias = true;     ///< a bias may be added to the sums first
  bool mayAccumulate = true;  ///< and an accumulator
  bool mayKeep = false;       ///< what the epilogue is taken of may be a second result
  bool mayStride = true;      ///< what the call reads and writes beside the factors may have strides
  bool takesGradient = false; ///< the sums are multiplied by a derivative, which is taken at `input`
};
} // namespace

static EpilogueRules rulesOf(Epilogue epilogue) {
  switch (epilogue) {
  case Epilogue::None:
  case Epilogue::Relu:
    return {};
  case Epilogue::Gelu:
    return {.isNarrow = true, .mayAccumulate = false, .mayKeep = true, .mayStride = false};
  case Epilogue::GeluGradient:
    return {.isNarrow = true,
            .mayAddBias = false,
            .mayAccumulate = false,
            .mayStride = false,
            .takesGradient = true};
  }
  llvm_unreachable("an epilogue of no kind");
}

bool mlir::ds::takesGradient(Epilogue epilogue) { return rulesOf(epilogue).takesGradient; }

bool mlir::ds::mayStride(Epilogue epilogue) { return rulesOf(epilogue).mayStride; }

/// Whether factors and result have one element type of 16 bits.
static bool isNarrow(MatmulOp op) {
  Type type = tensorType(op.getResult()).getElementType();
  return type.getIntOrFloatBitWidth() == 16 && tensorType(op.getLhs()).getElementType() == type;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Begins an error "expects WHAT with epilogue(WORD)".
static InFlightDiagnostic emitMismatch(MatmulOp op, StringRef what) {
  return op.emitOpError("expects ") << what << " with epilogue(" << stringifyEpilogue(op.getEpilogue())
                                    << ')';
}

LogicalResult mlir::ds::verifyEpilogue(MatmulOp op) {
  EpilogueRules rules = rulesOf(op.getEpilogue());
  if (rules.isNarrow && !isNarrow(op)) // C7.
    return emitMismatch(op, "factors and a result of one type of 16 bits")
           << ", but got " << op.getLhs().getType() << " and " << op.getResult().getType();
  if (op.getAccumulator() && !rules.mayAccumulate) // C7.
    return emitMismatch(op, "no accumulator") << ", but got one";
  if (op.getBias() && !rules.mayAddBias) // C7.
    return emitMismatch(op, "no bias") << ", but got one";
  if (bool(op.getInput()) != rules.takesGradient) // C8.
    return emitMismatch(op, rules.takesGradient ? "an input" : "no input")
           << ", but got " << (rules.takesGradient ? "none" : "one");
  if (op.getKept() && !rules.mayKeep) // C8.
    return emitMismatch(op, "one result") << ", but got two";
  Type type = op.getResult().getType();
  if (op.getInput() && failed(expectType(op, "input", type, op.getInput().getType()))) // C8.
    return failure();
  return op.getKept() ? expectType(op, "second result", type, op.getKept().getType()) : success(); // C8.
}

//===----------------------------------------------------------------------===//
// ProductOpInterface
//===----------------------------------------------------------------------===//

bool MatmulOp::canTake(Epilogue epilogue) {
  EpilogueRules rules = rulesOf(epilogue);
  return getEpilogue() == Epilogue::None && !getAccumulator() && (!getBias() || rules.mayAddBias) &&
         (!rules.isNarrow || isNarrow(*this));
}

Operation *MatmulOp::buildWithEpilogue(OpBuilder &builder, Location loc, Epilogue epilogue, Value input,
                                       bool keeps) {
  assert(canTake(epilogue) && "asked for before");
  Type type = getResult().getType();
  return builder.create<MatmulOp>(loc, type, keeps ? type : Type(), getLhs(), getRhs(), getBias(),
                                  /*accumulator=*/Value(), input, getTransposeLhs(), getTransposeRhs(),
                                  epilogue);
}

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

/// True when every element of `value` is a constant zero.
static bool isZero(Value value) {
  SplatElementsAttr splat;
  return matchPattern(value, m_Constant(&splat)) && isa<FloatType>(splat.getElementType()) &&
         splat.getSplatValue<APFloat>().isZero();
}

namespace {
/// select(m <= 0, 0, m) of a product m that nothing else reads -> the product with relu. Not so
/// select(m > 0, m, 0), which makes 0 of NaN.
struct FoldReluIntoProduct : OpRewritePattern<SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SelectOp op, PatternRewriter &rewriter) const override {
    Value sums = op.getOnFalse();
    auto product = sums.getDefiningOp<ProductOpInterface>();
    auto compare = op.getCondition().getDefiningOp<CompareOp>();
    if (!product || !compare || !product.canTake(Epilogue::Relu) || !isZero(op.getOnTrue()) ||
        compare.getPredicate() != Predicate::LE || compare.getLhs() != sums || !isZero(compare.getRhs()) ||
        !compare->hasOneUse())
      return failure();
    if (!llvm::all_of(sums.getUsers(), [&](Operation *user) { return user == op || user == compare; }))
      return failure();
    rewriter.replaceOp(op, product.buildWithEpilogue(rewriter, op.getLoc(), Epilogue::Relu, /*input=*/Value(),
                                                     /*keeps=*/false));
    return success();
  }
};
} // namespace

void mlir::ds::populateFoldEpiloguePatterns(RewritePatternSet &patterns) {
  patterns.add<FoldReluIntoProduct>(patterns.getContext());
}
