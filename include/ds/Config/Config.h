//===- Config.h - ds_config.json, resolved to what a compiler needs ---------------===//
//
// DeepSpeed's configuration file says how a model is to be trained. Reading it means: parse with positions,
// apply
// `--set`, translate old spellings, refuse what is unknown, mistyped or contradictory, fill every absent key
// with what DeepSpeed 0.19.6 means by its absence, and derive what follows (batch sizes, the mesh, the
// schedule). What comes out are plain structs plus the list of all settings with their origins. Nothing here
// throws.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_CONFIG_CONFIG_H
#define DS_CONFIG_CONFIG_H

#include "ds/Config/Schedule.h"
#include "ds/Support/Error.h"
#include "ds/Support/Notice.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ds::config {

/// The version whose meaning an absent key has.
inline constexpr std::string_view kDeepSpeedVersion = "0.19.6";

/// global == micro * accumulation * dp. DeepSpeed's train_batch_size, train_micro_batch_size_per_gpu and
/// gradient_accumulation_steps.
struct Batch {
  int64_t global = 1;       ///< samples per optimizer step, over all ranks
  int64_t micro = 1;        ///< samples per micro-step and data-parallel rank
  int64_t accumulation = 1; ///< micro-steps per optimizer step
  bool microIsOpen = false; ///< nobody said `micro`: the batch of a model that has one counts
};

/// How the ranks are divided: dp * tp * pp * sp == ranks.
struct Mesh {
  int64_t ranks = 1, dp = 1, tp = 1, pp = 1, sp = 1;
  std::optional<int64_t> ranksPerNode; ///< none: all are on one node
};

enum class DType : uint8_t { F32, F16, BF16, I8 };

/// One optimizer with every parameter that any kind has; the ones of other kinds keep their defaults.
struct Optimizer {
  /// Adam is the one whose weight decay enters the gradient (adam_w_mode false); AdamW decouples it. Other is
  /// a type that DeepSpeed knows and programs do not have yet; `name` says which.
  enum class Kind : uint8_t { Sgd, Adam, AdamW, Adagrad, Lion, Lamb, Other };
  Kind kind = Kind::AdamW;
  std::string name = "AdamW"; ///< as DeepSpeed spells it
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999; ///< Adam, AdamW, Lion, Lamb
  double eps = 1e-8;                 ///< Adam, AdamW, Adagrad, Lamb
  double weightDecay = 0;
  bool biasCorrection = true;            ///< Adam, AdamW, Lamb
  bool amsgrad = false;                  ///< Adam and AdamW with torch_adam
  double momentum = 0, dampening = 0;    ///< Sgd
  bool nesterov = false;                 ///< Sgd
  double lrDecay = 0;                    ///< Adagrad: lr / (1 + step * lrDecay)
  double initialAccumulator = 0;         ///< Adagrad
  double maxCoeff = 10, minCoeff = 0.01; ///< Lamb: bounds of the trust ratio
  bool epsInsideSqrt = false;            ///< Lamb
  bool given = false;                    ///< false: the file has no optimizer and AdamW takes its place
};

/// Loss scaling and storage of fp16 mode.
struct Fp16 {
  bool enabled = false;
  double lossScale = 0;           ///< 0: dynamic
  int64_t initialScalePower = 16; ///< dynamic scaling starts at 2^this
  int64_t lossScaleWindow = 1000; ///< good steps before the scale doubles
  int64_t hysteresis = 2;
  bool consecutiveHysteresis = false;
  int64_t minLossScale = 1;
  bool masterWeightsAndGrads = false; ///< masters and gradients in fp16
};

struct Bf16 {
  bool enabled = false, checkGradOverflow = true;
  bool masterWeightsAndGrads = false; ///< masters and gradients in bf16
  bool optimizerStates = false;       ///< moments in bf16
};

struct Precision {
  Fp16 fp16;
  Bf16 bf16;
  DType model = DType::F32;                ///< what the enabled mode (or data_types.param_dtype) computes in
  std::optional<DType> gradAccum, buffers; ///< data_types.*; absent: follows the mode
  std::optional<DType> communication;      ///< communication_data_type; absent: follows the mode
  bool autocast = false;                   ///< torch_autocast.enabled
  std::optional<DType> autocastDtype;
};

enum class Home : uint8_t { Device, Cpu, Nvme };

struct OffloadParam {
  Home device = Home::Device;
  std::string nvmePath;
  int64_t bufferSize = 100000000, maxInCpu = 1000000000; ///< elements
  bool pinMemory = true;
};

struct OffloadOptimizer {
  Home device = Home::Device;
  std::string nvmePath;
  bool pinMemory = true;
  double ratio = 1; ///< share of the states that is offloaded (stage 3)
  bool superOffload = false;
  double cpuAdamCores = 0.8; ///< share of the cores
};

struct ZenFlow {
  double topkRatio = 0.1;
  std::optional<int64_t> selectInterval, updateInterval; ///< absent: "auto"
};

/// A size that "auto" leaves to the planner: then absent.
using PlannedSize = std::optional<int64_t>;

/// zero_optimization; sizes are elements.
struct Zero {
  int64_t stage = 0;
  // The bounds of a bucket: it has at most the least of these three, or is one larger parameter alone.
  PlannedSize reduceBucketSize = 500000000, allgatherBucketSize = 500000000, subGroupSize = 1000000000;
  // Stage 3: what is gathered early, what stays whole, what stays gathered.
  PlannedSize prefetchBucketSize = 50000000;
  PlannedSize paramPersistenceThreshold = 100000;
  PlannedSize modelPersistenceThreshold = std::numeric_limits<int64_t>::max();
  PlannedSize maxLiveParameters = 1000000000, maxReuseDistance = 1000000000;
  bool overlapComm = false; ///< derived: stage == 3 when absent
  bool reduceScatter = true, contiguousGradients = true;
  OffloadParam offloadParam;
  OffloadOptimizer offloadOptimizer;
  std::optional<ZenFlow> zenflow;
  int64_t hpzPartitionSize = 1;
  bool quantizedWeights = false, quantizedGradients = false;
  std::optional<double> locoErrBeta; ///< zeropp_loco_param
  int64_t locoResetT = 1024;
  int64_t micsShardSize = -1;
  /// MiCS: data-parallel ranks of a node, of the several that a group of mics_shard_size has, where
  /// parameters are gathered between nodes first. None: they are gathered at once.
  std::optional<int64_t> micsNodeRanks;

  /// Elements of a bucket at most: the least bound given; absent when all are "auto".
  PlannedSize bucketLimit() const;
  /// Directories of the parameters on NVMe, and of what else is there; each the other's where it has none.
  const std::string &parameterPath() const;
  const std::string &statePath() const;
};

struct ActivationCheckpointing {
  bool partitionActivations = false, contiguousMemoryOptimization = false, cpuCheckpointing = false;
  std::optional<int64_t> numberCheckpoints;
  bool selective = false;       ///< attention alone is computed again
  std::vector<int64_t> layers;  ///< that alone are; empty: all
  std::vector<std::string> ops; ///< by name: their results alone are

  /// Whether it names what is recomputed.
  bool demands() const {
    return partitionActivations || cpuCheckpointing || numberCheckpoints || selective || !layers.empty() ||
           !ops.empty();
  }
};

struct Pipeline {
  std::optional<int64_t> stages; ///< absent: "auto"
  std::string partition = "best";
  std::string schedule = "1f1b";            ///< or "gpipe", "interleaved", "zb-h1", "auto"
  int64_t activationCheckpointInterval = 0; ///< layers; 0: none
  int64_t virtualStages = 1;                ///< chunks of layers per stage
};

/// What becomes of parameters by their names: an entry of partition_config.layer_specs, or of a preset.
struct LayerSpec {
  enum class Cut : uint8_t { Column, Row, Skip };

  std::vector<std::string> patterns; ///< regular expressions
  Cut cut = Cut::Column;
  std::vector<std::vector<int64_t>>
      shape;                           ///< what lies one behind the other in a dimension; empty: one piece
  std::optional<int64_t> dimension;    ///< that is cut; absent: as `cut` says
  std::vector<std::string> modelTypes; ///< empty: all
};

struct TensorParallel {
  int64_t size = 1;                ///< of autotp_size and tp.tp_size
  std::optional<bool> overlapComm; ///< absent: chosen
  std::optional<bool>
      shardSequence; ///< what lies between the products is split by the sequence; absent: chosen
  std::vector<LayerSpec> layerSpecs; ///< the first that matches counts
};

struct Aio {
  int64_t blockSize = 1048576, queueDepth = 8, intraOpParallelism = 1; ///< bytes; requests; threads
  bool singleSubmit = false, overlapEvents = true;
};

/// Where a setting's value comes from.
enum class Origin : uint8_t { File, Set, Default, Derived };

/// What becomes of a key.
enum class KeyStatus : uint8_t {
  Honoured, ///< changes the program as it would change DeepSpeed's run
  Noted,    ///< accepted; a notice says what takes its place
  Refused,  ///< refused by name when a program is asked for and the value is not the default
  Detail,   ///< speaks only where its section's switch, itself Refused or Noted, is on
};

/// One key with its value, for printing, refusing and looking up what has no struct above.
struct Setting {
  std::string key;   ///< dotted path
  std::string value; ///< as JSON
  Origin origin = Origin::Default;
  std::string
      from; ///< "ds_config.json:3:5", "--set", "DeepSpeed 0.19.6", "Deepstage", "derived: M * G * W", ...
  std::string note; ///< the reference's words: what the key does, what takes its place, why it is refused
  KeyStatus status = KeyStatus::Honoured;
  bool changed = false; ///< the value is not DeepSpeed's default
  bool isAuto = false;  ///< "auto" was given, and `value` is what that comes to
};

/// Where a monitor writes.
struct Monitor {
  bool enabled = false;
  std::string outputPath, jobName;
};

/// The table of modules.
struct Profiler {
  bool enabled = false;
  int64_t step = 1, depth = -1, top = 1;
  bool detailed = true;
  std::string output; ///< empty: standard output
};

/// What a run tells while it goes on.
struct Watch {
  int64_t stepsPerPrint = 0; ///< 0: every step
  Monitor tensorboard, csv;
  bool comms = false; ///< the table of all collectives
  Profiler profiler;
};

/// Everything the file, `--set` and the defaults say: as settings, and typed where something reads it.
struct Config {
  Batch batch;
  Mesh mesh;
  Optimizer optimizer;
  Schedule schedule;
  double gradientClipping =
      1.0;                     ///< global L2 norm; 0: off. Divisor (norm + 1e-6) / clip where that exceeds 1
  bool skipsBadSteps = false;  ///< updates keep the states where gradients are lost or the loss is a spike
  bool syncsBatchNorm = false; ///< batch norms take their statistics over the samples of all ranks
  std::optional<int64_t> lossChunks; ///< parts of logits and their loss; none: the planner's choice
  bool allowTf32 = false;            ///< products of fp32 factors in tf32 where a device has it
  bool fastAttention = false;        ///< cuDNN may add up attention's gradient in any order
  bool prescaleGradients = false;
  double gradientPredivideFactor = 1;
  bool sumGradients = false; ///< gradient_allreduce_op "sum"
  bool managedGradientAccumulation = true;
  std::optional<int64_t> vocabularySize;
  Precision precision;
  Zero zero;
  ActivationCheckpointing activationCheckpointing;
  Pipeline pipeline;
  TensorParallel tensorParallel;
  Aio aio;
  Watch watch;
  bool nodeLocalSaves = false; ///< checkpoints are kept by each node where the others do not see them

  std::vector<Setting> settings; ///< all keys, in the order of the reference
  std::vector<Notice> notices;   ///< one line each, for stderr

  /// The setting of a dotted path, or null.
  const Setting *find(std::string_view key) const;
};

/// What is read.
struct ConfigSource {
  std::string path; ///< file, or URL-safe base64 of its text; empty with no text: no file at all
  std::optional<std::string> text; ///< the text itself; `path` then only names it in messages
  std::vector<std::string> sets;   ///< KEY=VALUE; VALUE is JSON, or else a string
  int64_t ranks = 1;
  bool allowUnknownKeys = false;          ///< unknown keys become notices
  std::optional<int64_t> modelBatch = {}; ///< of the model's inputs: a micro-batch that is "auto" or absent
  std::optional<int64_t> totalSteps = {}; ///< of the run: what "auto" means for a schedule's total_num_steps
  std::optional<int64_t> ranksPerNode = {}; ///< of the cluster; none: all ranks are on one node
};

/// Reads, checks and resolves. The error's message has one line per mistake, the first one first; its code is
/// Invalid, or Io when the file cannot be read.
///
/// With no file at all and no batch key set, the micro-batch is 1 (DeepSpeed would refuse).
Result<Config> readConfig(const ConfigSource &source);

/// Makes `micro` the micro-batch, because the model has no other; the global batch follows.
void setMicroBatch(Config &config, int64_t micro);

/// What stands in the way of a program.
struct Refusal {
  std::string key;
  std::string value;
  std::string reason;
};

/// The keys that ask for what programs do not have yet; empty when a program can be made. A key at its
/// default is never among them.
std::vector<Refusal> refusedForProgram(const Config &config);

/// The refusals as one error of exit code Invalid.
Status checkForProgram(const Config &config);

/// The configuration without the keys that programs do not have yet and that change no number (where states
/// live, what is recomputed, how it overlaps), each told by a notice that begins with "IGNORED". What changes
/// numbers stays, and is refused as ever.
Result<Config> readIgnoringUnavailable(ConfigSource source);

enum class PrintFormat : uint8_t { Short, Text, Json };

/// Every value and where it comes from. Short lists what is not a default, and counts the rest; Text lists
/// the defaults behind that; Json is one object: {"key": {"value": ..., "origin": ..., "from": ...}}.
std::string printConfig(const Config &config, PrintFormat format);

/// One line per honoured or changed key, for the head of a run's log.
std::string summarizeConfig(const Config &config);

/// The reference of all keys as Markdown tables, as docs/config.md has them.
std::string keyReference();

} // namespace ds::config

#endif // DS_CONFIG_CONFIG_H
