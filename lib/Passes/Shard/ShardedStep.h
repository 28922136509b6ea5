//===- ShardedStep.h - What the ranks divide, and how -----------------------------===//
//
// What all parts of ds-shard-zero share: the buckets with their members and states, and who has what at which
// stage. The parts rewrite one segment after the other:
//
//   ShardParameters.cpp  layers read their parameters from buckets, which stage 3 gathers;
//   ShardGradients.cpp   gradients meet in buckets and are reduced;
//   ShardUpdates.cpp     updates and the norm work on what a rank has;
//   ShardScalars.cpp     losses, generators and buffers.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_SHARD_SHARDEDSTEP_H
#define DS_LIB_PASSES_SHARD_SHARDEDSTEP_H

#include "SegmentStates.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Passes/TrainingAttr.h"

#include "llvm/ADT/StringMap.h"

namespace mlir::ds {

/// Parameters that lie side by side, and what belongs to them.
struct ShardedBucket {
  bool isTrained() const { return !updates.empty(); }
  int64_t getElements() const { return static_cast<int64_t>(BucketOp(op).getElements()); }
  /// The bucket's state that stands for the members' states of this suffix: "" is the parameter itself.
  StateOp getState(StringRef suffix) const { return states.lookup(suffix); }

  BucketOp op;
  SmallVector<StateOp> members;
  SmallVector<UpdateOp> updates; ///< in @last, one per member; none where nothing is trained
  bool isPersistent = false;     ///< stage 3 keeps the parameters whole
  llvm::StringMap<StateOp> states;
};

/// What follows the parameter's name in that of a state of it: ".exp_avg"; "" for the parameter.
StringRef suffixOf(StateOp state, StringRef parameter);

class ShardedStep {
public:
  ShardedStep(ModuleOp module, const TrainingOptions &options);

  /// Finds parameters and updates, lays out buckets and declares them and their states. Fails, with a
  /// diagnostic, for a step that cannot be divided.
  LogicalResult layOut();

  int64_t getRanks() const { return options.world; }
  const TrainingOptions &getOptions() const { return options; }
  MutableArrayRef<ShardedBucket> getBuckets() { return buckets; }
  StateOp lookup(StringAttr name) const { return symbols.lookup<StateOp>(name); }

  /// Moments and masters are divided.
  bool dividesOptimizer() const { return options.sharding.stage >= 1; }
  /// Gradients are reduced in every micro-step, and what is kept of them is divided.
  bool dividesGradients() const {
    return dividesOptimizer() && options.sharding.reduceEachMicroStep.value_or(options.sharding.stage >= 2);
  }
  /// The bucket's parameters are divided.
  bool dividesParameters(const ShardedBucket &bucket) const {
    return options.sharding.stage == 3 && !bucket.isPersistent;
  }

  /// Members' states whose place a bucket's has taken.
  ArrayRef<StateOp> getReplaced() const { return replaced; }
  /// Erases their declarations, once no segment names them.
  void eraseReplaced();

private:
  struct Candidate;
  LogicalResult collect(SmallVectorImpl<Candidate> &trained, SmallVectorImpl<Candidate> &frozen);
  LogicalResult describe(Candidate &candidate, SegmentStates &last);
  void makeBuckets(ArrayRef<Candidate> candidates);
  void declare(ShardedBucket &bucket, ArrayRef<int64_t> offsets, int64_t elements);
  StateOp declareState(ShardedBucket &bucket, StateOp like, StringRef suffix, bool isDivided);
  void declareMesh();

  ModuleOp module;
  TrainingOptions options;
  SymbolTable symbols;
  SmallVector<ShardedBucket> buckets;
  SmallVector<StateOp> replaced;
};

/// What one member's gradient is made of in one segment.
struct GradientParts {
  Value gradient; ///< of this micro-step, in the type that ranks exchange
  Type sumType;   ///< element type in which it is added to what was kept
};

/// Takes the sum `total` of a micro-step's gradient and the kept one apart. `kept` is null where nothing was
/// kept. Fails where it is no such sum.
FailureOr<GradientParts> splitGradient(Value total, BlockArgument kept);

/// Makes the layers read their parameters from buckets.
void shardParameters(ShardedStep &step, SegmentStates &segment);

/// Makes the gradients of a segment meet in buckets. Fills `totals`, in @last, with what the update is to
/// read: one value per bucket, null for buckets that are not trained.
LogicalResult shardGradients(ShardedStep &step, SegmentStates &segment, SmallVectorImpl<Value> &totals);

/// Makes @last update what a rank has, and sum up its squares.
LogicalResult shardUpdates(ShardedStep &step, SegmentStates &segment, ArrayRef<Value> totals);

/// Makes losses means over all ranks, and lets each rank draw the numbers of its own samples.
LogicalResult shardScalars(ShardedStep &step, SegmentStates &segment);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SHARD_SHARDEDSTEP_H
