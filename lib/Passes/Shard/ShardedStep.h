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
#include "ds/Dialect/MeshShape.h"
#include "ds/Dialect/Training.h"

#include "llvm/ADT/StringMap.h"

namespace mlir::ds {

/// Parameters that lie side by side, and what belongs to them.
struct ShardedBucket {
  bool isTrained() const { return !updates.empty(); }
  int64_t getElements() const { return static_cast<int64_t>(BucketOp(op).getElements()); }
  /// The bucket's state that stands for the members' states of this slot: "" is the parameter itself.
  StateOp getState(StringRef slot) const { return states.lookup(slot); }

  BucketOp op;
  SmallVector<StateOp> members;
  SmallVector<UpdateOp> updates; ///< of the step, one per member; none where nothing is trained
  bool isPersistent = false;     ///< stage 3 keeps the parameters whole
  ::ds::rt::AxisSet cuts;        ///< axes that cut each member
  ::ds::rt::AxisSet divided; ///< axes along which ZeRO cuts the whole, as far as it does: others than `cuts`
  ::ds::rt::AxisSet addends; ///< axes along which ranks hold addends of the gradients
  ::ds::rt::AxisSet near;    ///< of `divided`, those that cut the secondary partition, where there is one
  bool isCopy = false;       ///< an earlier stage has the parameters, too, and counts them
  std::optional<int64_t> tied; ///< a stage that has the parameters as well
  bool dividesOptimizer = false, dividesGradients = false, dividesParameters = false; ///< along `divided`
  llvm::StringMap<StateOp> states;                                                    ///< by slot
  StateOp secondary; ///< a rank's part along `near` of the parameters, which a step gathers once; or null
};

class ShardedStep {
public:
  ShardedStep(ModuleOp module, const TrainingOptions &options);

  /// Finds parameters and updates, lays out buckets and declares them and their states. Fails, with a
  /// diagnostic, for a step that cannot be divided.
  LogicalResult layOut();

  const MeshShape &getShape() const { return shape; }
  /// `axes` as collectives have them: without those of one rank. Null where none is left.
  AxesAttr nameAxes(::ds::rt::AxisSet axes) const;
  int64_t countRanks(::ds::rt::AxisSet axes) const { return shape.mesh.size(axes); }
  const TrainingOptions &getOptions() const { return options; }
  MutableArrayRef<ShardedBucket> getBuckets() { return buckets; }
  StateOp lookup(StringAttr name) const { return symbols.lookup<StateOp>(name); }
  /// What `owner` has as its `slot`, before it is laid out; null for nothing.
  StateOp lookup(StateOp owner, StringRef slot) const { return owned.lookup({owner.getSymName(), slot}); }

  /// Moments and masters are divided.
  bool dividesOptimizer() const { return options.sharding.stage >= 1; }
  /// Gradients are reduced in every micro-step, and what is kept of them is divided.
  bool dividesGradients() const {
    return dividesOptimizer() && options.sharding.reduceEachMicroStep.value_or(options.sharding.stage >= 2);
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
  StateOp declareState(ShardedBucket &bucket, StateOp like, bool isDivided);
  void findDeclared();
  void insertLast(Operation *declared);

  ModuleOp module;
  TrainingOptions options;
  MeshShape shape;
  ::ds::rt::AxisSet near; ///< axes that cut secondary partitions
  SymbolTable symbols;
  DenseMap<std::pair<StringRef, StringRef>, StateOp> owned; ///< by owner and slot
  SmallVector<ShardedBucket> buckets;
  SmallVector<StateOp> replaced;
  llvm::StringMap<SmallVector<StateOp>> statesOf; ///< by the name of their owner, as the step came
  Operation *lastDeclared = nullptr;              ///< the last state or bucket of the module
};

/// Makes the layers read their parameters from buckets.
void shardParameters(ShardedStep &step, SegmentStates &segment);

/// Makes the gradients of a segment meet in buckets. Fills `totals`, where the segment updates, with what the
/// update is to read: one value per bucket, null for buckets that are not trained.
LogicalResult shardGradients(ShardedStep &step, SegmentStates &segment, SmallVectorImpl<Value> &totals);

/// Makes a segment update what a rank has, and sum up its squares.
LogicalResult shardUpdates(ShardedStep &step, SegmentStates &segment, ArrayRef<Value> totals);

/// Makes losses means over the ranks that read other samples, and lets each rank draw the numbers of its own
/// samples.
LogicalResult shardScalars(ShardedStep &step, SegmentStates &segment);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SHARD_SHARDEDSTEP_H
