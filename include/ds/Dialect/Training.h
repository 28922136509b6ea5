//===- Training.h - How a model is trained -----------------------------------------===//
//
// `ds.training = #ds.training<...>` of a module is how a resolved configuration reaches passes, so that a
// step can be built by ds-opt from text alone. This is its value. Keys and meanings are DeepSpeed 0.19.6's
// and stand in the description of ds-build-step; TrainingFields.h has the keys.
//
//===----------------------------------------------------------------------------===//
#ifndef DS_DIALECT_TRAINING_H
#define DS_DIALECT_TRAINING_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace mlir::ds {

/// How gradients become updates. Fields that a kind does not have are ignored by it.
struct OptimizerOptions {
  enum class Kind { Sgd, Adam, Adagrad, Lion, Lamb };
  Kind kind = Kind::Adam;
  double rate = 1e-3;                ///< without a schedule, the rate of every step
  double beta1 = 0.9, beta2 = 0.999; ///< Adam, Lion, Lamb
  double epsilon = 1e-8;             ///< Adam, Adagrad, Lamb: added to the denominator
  double weightDecay = 0;
  bool decoupledDecay = true;            ///< Adam: decay the parameter (AdamW), not the gradient
  double rateDecay = 0;                  ///< Adagrad: the rate of step n is divided by 1 + (n - 1) * this
  double startAccumulator = 0;           ///< Adagrad: what the sum of squares starts as
  bool epsilonInsideRoot = false;        ///< Lamb
  bool biasCorrection = true;            ///< Adam, Lamb
  double momentum = 0, dampening = 0;    ///< Sgd
  bool nesterov = false;                 ///< Sgd
  double minTrust = 0.01, maxTrust = 10; ///< Lamb: bounds of the trust ratio

  /// DeepSpeed's defaults of `kind`.
  static OptimizerOptions defaults(Kind kind);
  bool operator==(const OptimizerOptions &) const = default;
};

/// How the learning rate moves. Steps are counted as DeepSpeed does; see lib/Passes/Support/Schedules.cpp.
struct ScheduleOptions {
  enum class Kind { Constant, RangeTest, OneCycle, Warmup, WarmupDecay, WarmupCosine };
  Kind kind = Kind::Constant;
  /// A totalSteps that only the run knows: the host sets it before the first step.
  static constexpr int64_t kStepsOfRun = -1;
  // Warmup*
  double warmupMinRate = 0, warmupMaxRate = 1e-3;
  int64_t warmupSteps = 1000, totalSteps = 0;
  bool logarithmic = true; ///< warm-up along a logarithm, not a line
  double warmupMinRatio = 0, cosineMinRatio = 1e-4;
  // RangeTest
  double rangeMinRate = 1e-3, rangeRate = 1.0;
  int64_t rangeSteps = 2000;
  bool rangeStaircase = false;
  // OneCycle
  double cycleMinRate = 0, cycleMaxRate = 0, decayRate = 0;
  int64_t firstSteps = 2000, secondSteps = 0, decaySteps = 0; ///< secondSteps 0: like firstSteps
  int64_t firstStairs = 0, secondStairs = 0;                  ///< 0: continuous
  bool cycleMomentum = true;
  double cycleMinMomentum = 0.8, cycleMaxMomentum = 0.9, decayMomentumRate = 0;

  bool operator==(const ScheduleOptions &) const = default;
};

/// Element types that a configuration can ask for.
enum class FloatKind { F32, BF16, F16 };

/// The element type.
FloatType toFloatType(MLIRContext *context, FloatKind kind);

/// What is computed and kept in which type. ds-lower-precision says what it does with the model,
/// ds-build-step what it does with states.
struct PrecisionOptions {
  FloatKind compute = FloatKind::F32;  ///< of the ops that are computed in 16 bits; F32: none is
  bool autocast = false;               ///< parameters stay as they are and are converted where they are used
  FloatKind gradient = FloatKind::F32; ///< in which gradients add up over micro-steps
  FloatKind master = FloatKind::F32;   ///< of the copies of 16-bit parameters that are updated
  FloatKind moment = FloatKind::F32;   ///< of the optimizer's moments
  bool convertsBuffers = false;        ///< buffers become `buffer`; otherwise they are left alone
  FloatKind buffer = FloatKind::F32;

  /// True when parameters themselves are 16-bit.
  bool lowersParameters() const { return compute != FloatKind::F32 && !autocast; }
  bool operator==(const PrecisionOptions &) const = default;
};

/// DeepSpeed's loss scaler. Steps are skipped when the gradient is not finite, and only then, if `skips`.
struct LossScaleOptions {
  bool skips = false;   ///< check gradients and skip the step where they overflow
  bool scales = false;  ///< multiply the loss; `skips` then, too
  bool dynamic = false; ///< the scale follows the overflows
  double initial = 1;   ///< the scale of the first step, and of all steps when it is static
  int64_t window = 1000, hysteresis = 2;
  bool consecutiveHysteresis = false;
  double minimum = 1;

  bool operator==(const LossScaleOptions &) const = default;
};

/// How data-parallel ranks divide parameters and what belongs to them. Sizes count elements.
struct ShardingOptions {
  static constexpr int64_t kChosen = -1; ///< a size or threshold that ds-shard-zero chooses

  int64_t stage = 0; ///< ZeRO: 1 divides moments and masters, 2 also gradients, 3 also parameters
  int64_t reduceBucketSize = 500000000; ///< of a bucket, but for a single larger parameter; the least of the
  int64_t gatherBucketSize = 500000000; ///< three counts
  int64_t subGroupSize = 1000000000;
  int64_t parameterThreshold = 100000; ///< stage 3 keeps parameters of at most so many elements whole ...
  int64_t modelThreshold = std::numeric_limits<int64_t>::max(); ///< ... and at most so many of all
  std::optional<bool> reduceEachMicroStep; ///< and keep a part, not once per step; none: stages 2 and 3 do
  /// Of the mesh's `zero`, by name. Along these stage 3 divides a second copy of the parameters: the first
  /// gather of a step fills it, and all others are made from it. Empty: none.
  std::vector<std::string> secondaryAxes;
  /// Of the mesh's `zero`, by name: stage 3 gathers along these first, and along the rest then. Empty: at
  /// once.
  std::vector<std::string> firstAxes;

  bool operator==(const ShardingOptions &) const = default;
};

/// What is kept on the host, as far as ds-offload-states is told so.
struct OffloadOptions {
  enum class Activations {
    Kept,   ///< on the device
    Chosen, ///< on the host where memory asks for it, and nothing is cheaper
    Moved,  ///< all that is large enough is on the host between its uses
  };

  double optimizer = 0;    ///< share of the elements whose moments, masters and gradients are kept elsewhere
  bool parameters = false; ///< and parameters
  bool optimizerOnNvme = false;  ///< moments and masters are kept in storage, not on the host
  bool speculates = false;       ///< the host's updates do not wait for the norm
  bool parametersOnNvme = false; ///< and parameters, but for so many elements:
  int64_t maxInCpu = 0;
  Activations activations = Activations::Kept; ///< what forward makes for backward
  bool checkpoints = false;                    ///< what layers that are recomputed are made of

  bool isNone() const {
    return optimizer == 0 && !parameters && activations == Activations::Kept && !checkpoints;
  }
  bool operator==(const OffloadOptions &) const = default;
};

/// What backward recomputes instead of reading what forward kept, as far as ds-rematerialize-cheap is told
/// so; what is left open it chooses by the memory that there is.
struct RecomputeOptions {
  int64_t checkpoints = 0; ///< parts of forward that are recomputed, each from what enters it; 0: `interval`
  int64_t interval = 0;    ///< layers of such a part; 0: left open
  std::vector<int64_t> layers;  ///< numbers of the layers that are recomputed; empty: all, in parts as above
  std::vector<std::string> ops; ///< names of ops ("attention") whose results are recomputed

  /// Whether whole parts of forward must be recomputed.
  bool demandsLayers() const { return checkpoints > 0 || interval > 0 || !layers.empty(); }
  bool isOpen() const { return !demandsLayers() && ops.empty(); }
  bool operator==(const RecomputeOptions &) const = default;
};

/// How layers are cut among the ranks along the mesh's `tensors`, as far as ds-shard-tensors is told so.
struct TensorOptions {
  /// What becomes of parameters whose names match: DeepSpeed's TPLayerSpec.
  struct LayerSpec {
    enum class Cut {
      Column, ///< what the layer makes
      Row,    ///< what the layer reads
      Skip,   ///< nothing: each rank has all
    };

    std::vector<std::string> patterns; ///< regular expressions
    Cut cut = Cut::Column;
    /// What the cut dimension and the other one consist of; the first entry has the sizes of what lies one
    /// behind the other in it, or their number, and -1 is all: [[768, 256, 256], [-1]], or [[3], [-1]].
    /// Empty: one piece.
    std::vector<std::vector<int64_t>> shape;
    std::optional<int64_t> dimension;    ///< that is cut; none: as `cut` says
    std::vector<std::string> modelTypes; ///< of which alone it is said; empty: of all

    bool operator==(const LayerSpec &) const = default;
  };

  /// Norms and dropout between products are cut along the sequence; none: chosen.
  std::optional<bool> sequenceParallel;
  /// Exchanges stand beside products that are cut so that they overlap; none: chosen.
  std::optional<bool> overlapsExchanges;
  std::vector<LayerSpec> layerSpecs; ///< the first that matches counts

  bool operator==(const TensorOptions &) const = default;
};

/// What becomes of the gradients of data-parallel ranks.
enum class RankReduction { Mean, Sum };

/// What the loss of a step is a mean over: micro-batches' means, or all targets.
enum class LossMean { MicroBatches, Tokens };

struct TrainingOptions {
  int64_t accumulation = 1; ///< micro-steps per step
  RankReduction rankReduction = RankReduction::Mean;
  std::optional<FloatKind> communicationType; ///< in which gradients are reduced; none: their own
  int64_t lossChunks = 0;                     ///< of logits and their loss; 0: ds-split-loss chooses
  LossMean lossMean = LossMean::MicroBatches;
  bool syncsBatchNorm = false; ///< batch norms take their statistics over the samples of all ranks
  bool givesLogits = false;    ///< there is an entry for the logits of chosen positions
  bool boundsLoss = false; ///< skip the step, too, where its loss is beyond @loss_limit; lossScale.skips then
  double clipping = 0;     ///< bound of the global gradient norm; 0: none
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  PrecisionOptions precision;
  LossScaleOptions lossScale;
  ShardingOptions sharding;
  TensorOptions tensors;
  OffloadOptions offload;
  RecomputeOptions recompute;
  /// Regular expressions: parameters whose name matches one are not decayed.
  std::vector<std::string> noDecay;

  bool operator==(const TrainingOptions &) const = default;
};

llvm::hash_code hash_value(const TrainingOptions &options);

/// How `module` is trained; the defaults where `ds.training` is absent.
TrainingOptions getTraining(ModuleOp module);

/// Says of `module` how it is trained. Fails, with a diagnostic at the module, for impossible values.
LogicalResult setTraining(ModuleOp module, const TrainingOptions &options);

} // namespace mlir::ds

#endif // DS_DIALECT_TRAINING_H
