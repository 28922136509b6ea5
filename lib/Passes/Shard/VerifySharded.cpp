//===- VerifySharded.cpp - The border after the step is divided -------------------===//
//
// What a rank has is what its declarations say: no segment may take a parameter that lies in a bucket on its
// own, and nothing may be left of what only one logical device understands.
//
//===---------------------------------------------------------------------------===//
#include "Support/VerifyPhases.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_VERIFYSHARDED
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Verifies that no argument or result of `func` is a state that lies in a bucket, or belongs to one that
/// does.
static LogicalResult verifyMembers(func::FuncOp func, const SymbolTable &symbols,
                                   const DenseMap<Attribute, BucketOp> &buckets) {
  auto verify = [&](FlatSymbolRefAttr name, const Twine &what) -> LogicalResult {
    if (!name)
      return success();
    auto state = symbols.lookup<StateOp>(name.getValue());
    BucketOp bucket = buckets.lookup(name);
    if (!bucket && state.getOwner())
      bucket = buckets.lookup(state.getOwnerAttr());
    if (!bucket)
      return success();
    InFlightDiagnostic error = func.emitOpError("expects states in buckets to be read from there, but ")
                               << what << " is " << name;
    error.attachNote(bucket.getLoc()) << "the bucket is declared here";
    return error;
  };
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (failed(verify(func.getArgAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kStateAttr),
                      "argument " + Twine(index))))
      return failure();
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    if (failed(verify(func.getResultAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kStateAttr),
                      "result " + Twine(index))))
      return failure();
  return success();
}

/// Verifies that no op is left that sharding or decomposition replaces.
static LogicalResult verifyOps(func::FuncOp func) {
  WalkResult result = func.walk([](Operation *op) -> WalkResult {
    auto composite = dyn_cast<DecomposableOpInterface>(op);
    if (composite ? composite.isLibraryCall() : !isa<AccumulateOp>(op))
      return WalkResult::advance();
    InFlightDiagnostic error = op->emitOpError("belongs to phase step, but stands in a sharded one");
    error.attachNote() << "--ds-decompose takes its place by simpler ops";
    return error;
  });
  return failure(result.wasInterrupted());
}

namespace {
struct VerifySharded : mlir::ds::impl::VerifyShardedBase<VerifySharded> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Sharded)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    DenseMap<Attribute, BucketOp> buckets;
    for (auto bucket : module.getOps<BucketOp>())
      for (Attribute member : bucket.getMembers())
        buckets[member] = bucket;
    if (failed(verifySegments(module)))
      return signalPassFailure();
    for (auto func : module.getOps<func::FuncOp>())
      if (failed(verifyMembers(func, symbols, buckets)) || failed(verifyOps(func)))
        return signalPassFailure();
  }
};
} // namespace
