//===- ShardZero.cpp - From one step to what each of N ranks does -----------------===//
//
// One pass for all stages of ZeRO: what is divided differs, where the collectives stand follows. The parts of
// the work are listed in ShardedStep.h.
//
//===---------------------------------------------------------------------------===//
#include "ChooseSizes.h"
#include "ShardedStep.h"
#include "Support/VerifyPhases.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Support/Format.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::ds {
#define GEN_PASS_DEF_SHARDZERO
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Says what a rank sends in one run of `func`, by kind of collective.
static void remarkTraffic(func::FuncOp func) {
  llvm::MapVector<CollectiveKind, std::pair<int64_t, int64_t>> traffic; // calls, bytes
  func.walk([&](CollectiveOpInterface op) {
    auto &[calls, bytes] = traffic[op.getCollectiveKind()];
    ++calls;
    bytes += cast<CostOpInterface>(op.getOperation()).getSentBytes();
  });
  for (auto [kind, figures] : traffic)
    func.emitRemark("@") << func.getSymName() << ": " << figures.first << ' ' << stringifyCollectiveKind(kind)
                         << ", " << figures.second << " bytes sent per rank";
}

/// What the choice of sizes rests on. Gradients have the type of their parameters where nothing else is said.
static SizeBasis basisOf(ModuleOp module, const TrainingOptions &options) {
  SizeBasis basis;
  const MeshShape shape = getMeshShape(module);
  const int64_t divided = shape.countZeroRanks();
  basis.ranks = divided > 1 ? divided : shape.mesh.size(shape.samples);
  unsigned bits = 0;
  for (auto state : module.getOps<StateOp>())
    if (state.getRole() == Role::Parameter) {
      basis.elements += state.getLocalType().getNumElements();
      bits = std::max(bits, state.getTensorType().getElementTypeBitWidth());
    }
  basis.parameterBytes = std::max(1u, bits / 8);
  basis.gradientBytes = basis.parameterBytes;
  if (options.communicationType)
    basis.gradientBytes = toFloatType(module.getContext(), *options.communicationType).getWidth() / 8;
  return basis;
}

/// When the gradients of several micro-steps are reduced, and what that keeps.
static OpenChoice describeReduction(ShardedStep &step) {
  OpenChoice choice;
  choice.kind = step.dividesGradients() ? ChoiceOf::ReduceEachMicroStep : ChoiceOf::ReduceOncePerStep;
  for (ShardedBucket &bucket : step.getBuckets())
    for (auto &entry : bucket.states)
      if (StateOp state = entry.second; state.getRole() == Role::Gradient)
        choice.bytes += BufferType::getContiguous(state.getLocalType()).getSizeInBytes();
  return choice;
}

namespace {
struct ShardZero : mlir::ds::impl::ShardZeroBase<ShardZero> {
  using ShardZeroBase::ShardZeroBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Step)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    TrainingOptions options = getTraining(module);
    if (reducesInEach && !options.sharding.reduceEachMicroStep)
      options.sharding.reduceEachMicroStep = true;
    if (getMeshShape(module).mesh.size() > 1 && failed(shard(module, options)))
      return signalPassFailure();
    setPhase(module, Phase::Sharded);
  }

  LogicalResult shard(ModuleOp module, TrainingOptions options) {
    FailureOr<::ds::cost::Rates> rates = readRates(module);
    if (failed(rates))
      return failure();
    for (const OpenChoice &choice : chooseSizes(options.sharding, basisOf(module, options), *rates))
      addChoice(module, choice);
    ShardedStep step(module, options);
    if (failed(step.layOut()))
      return failure();
    if (options.accumulation > 1 && step.dividesOptimizer())
      addChoice(module, describeReduction(step));
    for (auto func : module.getOps<func::FuncOp>()) {
      if (failed(verifyWork(func)))
        return failure();
      SegmentStates segment(func);
      SmallVector<Value> totals;
      // Gradients before updates, which read the reduced ones.
      if (failed(shardScalars(step, segment)))
        return failure();
      markWork(segment.getBody(), Work::Forward);
      if (failed(shardGradients(step, segment, totals)))
        return failure();
      markWork(segment.getBody(), Work::Backward);
      if (segment.does(Work::Update) && failed(shardUpdates(step, segment, totals)))
        return failure();
      markWork(segment.getBody(), Work::Update);
      shardParameters(step, segment);
      for (StateOp state : step.getReplaced())
        segment.drop(state.getSymNameAttr());
      segment.finish();
      if (remarks)
        remarkTraffic(func);
    }
    step.eraseReplaced();
    return success();
  }
};
} // namespace
