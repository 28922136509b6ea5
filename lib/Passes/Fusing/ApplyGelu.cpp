//===- ApplyGelu.cpp - Lets products take GELU of what they give ----------------===//
//
// A product on CUDA can apply GELU, or multiply by its derivative, before it stores its sums; a kernel of its
// own reads them back. Regions are formed by then, so that it is known who else reads what. Nothing lives
// longer: of GELU and its input both are made by one command, where they were made one after the other, and
// GELU's gradient takes the place of what reaches it.
//
//===---------------------------------------------------------------------------===//
#include "ds/Dialect/Ds.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {
#define GEN_PASS_DEF_APPLYGELU
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// The 16-bit value that `value` is the f32 form of; null where it is none.
static Value narrowSource(Value value) {
  auto convert = value.getDefiningOp<ConvertOp>();
  if (!convert || !getElementTypeOrSelf(value).isF32())
    return {};
  Type from = getElementTypeOrSelf(convert.getInput());
  return from.isBF16() || from.isF16() ? convert.getInput() : Value();
}

/// The product that gives `value` and can take `epilogue`; null where there is none.
static ProductOpInterface findProduct(Value value, Epilogue epilogue) {
  auto product = value.getDefiningOp<ProductOpInterface>();
  return product && product.canTake(epilogue) ? product : ProductOpInterface();
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// Whether the region is GELU of its only operand, rounded, and nothing else.
static bool isGelu(FusedOp fused) {
  Block &body = fused.getBody().front();
  constexpr size_t kOps = 4; // widened, GELU, rounded, yielded
  if (fused.getNumOperands() != 1 || fused.getNumResults() != 1 || body.getOperations().size() != kOps)
    return false;
  auto rounded = body.getTerminator()->getOperand(0).getDefiningOp<ConvertOp>();
  auto gelu = rounded ? rounded.getInput().getDefiningOp<GeluOp>() : GeluOp();
  return gelu && gelu.getTanh() && rounded.getType() == body.getArgument(0).getType() &&
         narrowSource(gelu.getInput()) == body.getArgument(0);
}

/// Whether `op` takes time of compute, or ranks meet in it. Gathers of parameters stand anywhere before what
/// reads them, in another program elsewhere, and the bits of both are to be the same.
static bool isCommand(Operation *op) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  return collective ? collective.getCarries() != Payload::Parameter : isa<LibraryOpInterface>(op);
}

/// Whether a library call or a collective stands between two ops of a block: then what `later` makes is not
/// made with what `earlier` makes, lest it live longer. So GELU that backward takes again stays where it is.
static bool isApart(Operation *earlier, Operation *later) {
  for (Operation *op = earlier->getNextNode(); op != later; op = op->getNextNode())
    if (isCommand(op))
      return true;
  return false;
}

/// Gives GELU to the product whose result it is taken of.
static void applyGelu(FusedOp fused) {
  Value input = fused.getInputs().front();
  ProductOpInterface product = isGelu(fused) ? findProduct(input, Epilogue::Gelu) : ProductOpInterface();
  if (!product || isApart(product, fused))
    return;
  WorkListener listener(product);
  OpBuilder builder(product, &listener);
  bool keeps = !input.hasOneUse();
  Operation *op =
      product.buildWithEpilogue(builder, product.getLoc(), Epilogue::Gelu, /*input=*/Value(), keeps);
  fused.getResult(0).replaceAllUsesWith(op->getResult(0));
  fused.erase();
  if (keeps)
    input.replaceAllUsesWith(op->getResult(1));
  product.erase();
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

namespace {
/// GELU's gradient inside a region.
struct Gradient {
  GeluGradOp op;
  BlockArgument grad;  ///< what reaches GELU's result; nothing else reads it
  BlockArgument input; ///< what GELU was taken of
  Value rounded;       ///< the gradient in 16 bits, its only form that is read
};
} // namespace

static std::optional<Gradient> findGradient(FusedOp fused) {
  auto ops = fused.getBody().front().getOps<GeluGradOp>();
  if (!llvm::hasSingleElement(ops))
    return std::nullopt;
  GeluGradOp op = *ops.begin();
  auto grad = dyn_cast_or_null<BlockArgument>(narrowSource(op.getGrad()));
  auto input = dyn_cast_or_null<BlockArgument>(narrowSource(op.getInput()));
  auto rounded = op->hasOneUse() ? dyn_cast<ConvertOp>(*op->user_begin()) : ConvertOp();
  bool fits = op.getTanh() && grad && input && rounded && grad != input && grad.hasOneUse() &&
              op.getGrad().hasOneUse() && rounded.getType() == grad.getType() &&
              input.getType() == grad.getType();
  return fits ? std::optional(Gradient{op, grad, input, rounded}) : std::nullopt;
}

/// Whether ops beside the gradient read it and GELU's input, whose widened form they may share.
static bool readsBothElsewhere(Gradient gradient) {
  bool readsInput = !gradient.input.hasOneUse() || !gradient.op.getInput().hasOneUse();
  return readsInput &&
         llvm::any_of(gradient.rounded.getUsers(), [](Operation *user) { return !isa<YieldOp>(user); });
}

/// Lets `given` take the place of the results that are `value` in the region. Returns the region with the
/// others; null where there are none.
static FusedOp replaceResults(FusedOp fused, Value value, Value given) {
  Operation *yield = fused.getBody().front().getTerminator();
  SmallVector<Value> kept, results;
  for (auto [yielded, result] : llvm::zip_equal(yield->getOperands(), fused.getResults()))
    if (yielded == value) {
      result.replaceAllUsesWith(given);
    } else {
      kept.push_back(yielded);
      results.push_back(result);
    }
  yield->setOperands(kept);
  if (kept.empty()) {
    fused.erase();
    return {};
  }
  WorkListener listener(fused);
  OpBuilder builder(fused, &listener);
  auto rest = builder.create<FusedOp>(fused.getLoc(), llvm::to_vector(TypeRange(kept)), fused.getInputs());
  rest.getBody().takeBody(fused.getBody());
  for (auto [old, result] : llvm::zip_equal(results, rest.getResults()))
    old.replaceAllUsesWith(result);
  fused.erase();
  return rest;
}

/// Removes ops of the region that nothing reads any more, and operands that none of them reads.
static void removeUnread(FusedOp fused) {
  Block &body = fused.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (op.use_empty() && !isa<YieldOp>(op))
      op.erase();
  for (unsigned index = body.getNumArguments(); index-- > 0;)
    if (body.getArgument(index).use_empty()) {
      body.eraseArgument(index);
      fused->eraseOperand(index);
    }
}

/// Gives GELU's derivative to the product that reaches it.
static void applyGradient(FusedOp fused) {
  std::optional<Gradient> gradient = findGradient(fused);
  if (!gradient || readsBothElsewhere(*gradient))
    return;
  Value grad = fused.getInputs()[gradient->grad.getArgNumber()],
        input = fused.getInputs()[gradient->input.getArgNumber()];
  ProductOpInterface product =
      grad.hasOneUse() ? findProduct(grad, Epilogue::GeluGradient) : ProductOpInterface();
  Operation *maker = input.getDefiningOp();
  if (!product || (maker && !maker->isBeforeInBlock(product)))
    return;
  WorkListener listener(product);
  OpBuilder builder(product, &listener);
  Operation *op =
      product.buildWithEpilogue(builder, product.getLoc(), Epilogue::GeluGradient, input, /*keeps=*/false);
  // The region's operand is now the gradient itself.
  grad.replaceAllUsesWith(op->getResult(0));
  product.erase();
  gradient->rounded.replaceUsesWithIf(gradient->grad,
                                      [](OpOperand &use) { return !isa<YieldOp>(use.getOwner()); });
  if (FusedOp rest = replaceResults(fused, gradient->rounded, op->getResult(0)))
    removeUnread(rest);
}

/// Whether backward makes products of forward again. A library may add up in another order where there is an
/// epilogue, or another one: then none of them has GELU, so that the repetition has the bits of the first.
static bool repeatsProducts(func::FuncOp func) {
  return llvm::any_of(func.getBody().front(), [](Operation &op) {
    return isa<ProductOpInterface>(op) && getWork(&op) == Work::Recompute;
  });
}

namespace {
struct ApplyGelu : mlir::ds::impl::ApplyGeluBase<ApplyGelu> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Resident)))
      return signalPassFailure();
    if (!isForCuda(getOperation()->getParentOfType<ModuleOp>()))
      return;
    const bool isLeft = repeatsProducts(getOperation());
    for (FusedOp fused : llvm::to_vector(getOperation().getOps<FusedOp>()))
      if (isGelu(fused))
        isLeft ? void() : applyGelu(fused);
      else
        applyGradient(fused);
  }
};
} // namespace
