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
/// What an op said: of its work, and in all of its attributes that no op declares.
struct Saying {
  WorkAttr work;
  DictionaryAttr attributes;
};
using Sayings = DenseMap<Operation *, Saying>;

/// Lets the op that is left say what the one said that is done earlier.
struct MergeListener : RewriterBase::Listener {
  explicit MergeListener(Sayings &said) : said(said) {}

  void notifyOperationReplaced(Operation *op, Operation *replacement) override {
    auto gone = said.find(op), left = said.find(replacement);
    if (gone == said.end() || left == said.end())
      return;
    WorkAttr a = gone->second.work, b = left->second.work;
    if (a && b && isBefore(a.getValue(), b.getValue()))
      left->second = gone->second; // equal ops say the same of all else
  }

  Sayings &said;
};
} // namespace

/// Merges equal ops, whatever they say of their work.
static void mergeEqualOps(Operation *root) {
  Sayings said;
  root->walk([&](Operation *op) {
    const DictionaryAttr attributes = op->getDiscardableAttrDictionary();
    NamedAttrList others(attributes);
    auto work = cast_or_null<WorkAttr>(others.erase(DsDialect::kWorkAttr));
    if (!others.erase(DsDialect::kLayerAttr) && !work)
      return;
    said[op] = {work, attributes};
    op->setDiscardableAttrs(others.getDictionary(op->getContext()));
  });
  DominanceInfo dominance(root);
  MergeListener listener(said);
  IRRewriter rewriter(root->getContext(), &listener);
  eliminateCommonSubExpressions(rewriter, dominance, root);
  root->walk([&](Operation *op) { // no op is new: the others are those that were erased
    if (DictionaryAttr attributes = said.lookup(op).attributes)
      op->setDiscardableAttrs(attributes);
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
