//===- Simplify.cpp - Canonical ops, each once, that still say their work --------===//
//
// MLIR's own canonicaliser drops the attributes of an op that it replaces, and its elimination of common
// subexpressions takes ops that differ in them for different. Here new ops say what the op that they replace
// said, and of two equal ones one is left: a value that both directions need is made by forward.
//
//===----------------------------------------------------------------------------===//
#include "Support/StraightLine.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

namespace mlir::ds {
#define GEN_PASS_DEF_SIMPLIFY
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {
/// What ops said of work and layer.
using Sayings = DenseMap<Operation *, std::pair<WorkAttr, Attribute>>;

/// Lets the op that is left say what the one said that is done earlier.
struct MergeListener : RewriterBase::Listener {
  explicit MergeListener(Sayings &said) : said(said) {}

  void notifyOperationReplaced(Operation *op, Operation *replacement) override {
    auto gone = said.find(op), left = said.find(replacement);
    if (gone == said.end() || left == said.end())
      return;
    WorkAttr a = gone->second.first, b = left->second.first;
    if (a && b && isBefore(a.getValue(), b.getValue()))
      left->second = gone->second;
  }

  Sayings &said;
};
} // namespace

/// Merges equal ops, whatever they say of their work.
static void mergeEqualOps(Operation *root) {
  Sayings said;
  root->walk([&](Operation *op) {
    auto work = cast_or_null<WorkAttr>(op->removeAttr(DsDialect::kWorkAttr));
    Attribute layer = op->removeAttr(DsDialect::kLayerAttr);
    if (work || layer)
      said[op] = {work, layer};
  });
  DominanceInfo dominance(root);
  MergeListener listener(said);
  IRRewriter rewriter(root->getContext(), &listener);
  eliminateCommonSubExpressions(rewriter, dominance, root);
  root->walk([&](Operation *op) { // no op is new: the others are those that were erased
    auto [work, layer] = said.lookup(op);
    if (work)
      op->setAttr(DsDialect::kWorkAttr, work);
    if (layer)
      op->setAttr(DsDialect::kLayerAttr, layer);
  });
}

namespace {
struct Simplify : mlir::ds::impl::SimplifyBase<Simplify> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet owned(context);
    for (Dialect *dialect : context->getLoadedDialects())
      dialect->getCanonicalizationPatterns(owned);
    for (RegisteredOperationName op : context->getRegisteredOperations())
      op.getCanonicalizationPatterns(owned, context);
    patterns = std::move(owned);
    return success();
  }

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), {Phase::Model, Phase::Sharded})))
      return signalPassFailure();
    WorkListener listener;
    GreedyRewriteConfig config = straightLineConfig(&listener);
    config.useTopDownTraversal = true;
    (void)applyPatternsAndFoldGreedily(getOperation(), patterns, config); // as far as it comes
    mergeEqualOps(getOperation());
  }

  FrozenRewritePatternSet patterns;
};
} // namespace
