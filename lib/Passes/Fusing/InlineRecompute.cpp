//===- InlineRecompute.cpp - What backward recomputes, beside what reads it -------===//
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::ds {
#define GEN_PASS_DEF_INLINERECOMPUTE
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

static void inlineBody(RecomputeOp op) {
  OpBuilder builder(op);
  IRMapping mapping;
  for (auto [argument, kept] : llvm::zip_equal(op.getBody().getArguments(), op.getKept()))
    mapping.map(argument, op.getAfter()
                              ? builder.create<AfterOp>(op.getLoc(), kept, op.getAfter()).getResult()
                              : Value(kept));
  WorkListener listener(op);
  builder.setListener(&listener);
  for (Operation &inner : op.getBody().front().without_terminator())
    builder.clone(inner, mapping);
  auto yield = cast<YieldOp>(op.getBody().front().getTerminator());
  op.replaceAllUsesWith(
      llvm::map_to_vector(yield.getValues(), [&](Value value) { return mapping.lookup(value); }));
  op.erase();
}

namespace {
struct InlineRecompute : mlir::ds::impl::InlineRecomputeBase<InlineRecompute> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Resident)))
      return signalPassFailure();
    for (Block &block : getOperation())
      for (RecomputeOp op : llvm::make_early_inc_range(block.getOps<RecomputeOp>()))
        inlineBody(op);
  }
};
} // namespace
