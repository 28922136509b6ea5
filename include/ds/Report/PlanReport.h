//===- PlanReport.h - What a plan says of itself --------------------------------===//
//
// The one description of a plan that all its printers share: the text for people, the JSON that is a contract
// with other programs, the difference of two plans, and the refusal of a plan that does not fit. Plain data:
// whoever made the plan fills it; the printers compute nothing but sums and shares, so that they cannot
// disagree.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_REPORT_PLANREPORT_H
#define DS_REPORT_PLANREPORT_H

#include "ds/Report/PeakExplanation.h"
#include "ds/Support/Error.h"
#include "ds/Support/Format.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ds::report {

/// What a rank keeps for the whole step. fp32 masters count as optimizer.
struct StateBytes {
  int64_t parameters = 0, gradients = 0, optimizer = 0;
  int64_t padding = 0; ///< alignment and bucket padding, in none of the others
  int64_t scalars = 0; ///< rank-0 bookkeeping: step number, rate, loss scale
  int64_t frozen = 0;  ///< of the parameters: those that are not trained
};

/// A buffer that is live at the peak.
struct LiveValue {
  std::string name;  ///< of the value, or of the op that makes it
  std::string layer; ///< of the model ("h.3.mlp"), or empty
  int64_t bytes = 0;
  Category category = Category::Activations;
};

/// What is live at the peak for one layer.
struct LayerBytes {
  std::string layer;
  int64_t bytes = 0;
};

/// A run [first, last) of neighbouring layers that take the same.
struct LayerRun {
  size_t first = 0, last = 0;
  size_t count() const { return last - first; }
};

/// The runs that `layers` consist of; two equal neighbours are a run each.
std::vector<LayerRun> findLayerRuns(const std::vector<LayerBytes> &layers);

/// "h.0 .. 11".
std::string nameRun(const std::vector<LayerBytes> &layers, LayerRun run);

/// The repeated layer that `layer` is part of: "blocks.0" for "blocks.0.attention.qkv"; itself where nothing
/// repeats.
std::string repeatedLayer(const std::string &layer);

/// One thing that takes memory, and where its size comes from.
struct MemoryLine {
  std::string name;  ///< "parameters", "buckets of gradients", "device context"
  std::string where; ///< "device", "host", "host, page-locked" or "nvme"
  int64_t bytes = 0;
  std::string source;
  bool beyondArenas = false; ///< outside of what the plan gives out
};

/// What a directory on NVMe has of a rank's arena of storage.
struct StorageDirectory {
  std::string path;
  int64_t bytes = 0;
};

/// The plan of one rank, or of several ranks with equal plans.
struct RankPlan {
  uint32_t firstRank = 0, lastRank = 0; ///< inclusive
  uint32_t stage = 0;                   ///< pipeline stage
  StateBytes states;
  int64_t deviceArena = 0, hostArena = 0, nvmeArena = 0;
  int64_t nvmeParameters = 0;              ///< parameters, of `nvmeArena`
  std::vector<StorageDirectory> nvmePaths; ///< that add up to `nvmeArena`; empty where none is named
  int64_t peakBytes = 0;                   ///< device; equals deviceArena
  std::string peakAt;                      ///< op and layer
  CategoryBytes atPeak{};
  int64_t lowerBound = 0;
  std::vector<LiveValue> largest;  ///< at the peak, largest first; the printers take the first ten
  std::vector<LayerBytes> byLayer; ///< at the peak, in the model's order
  /// Of this rank. Of a program: the parts of the device's arena at its peak, which add up to `peakBytes`,
  /// those of the host's and of storage's, which add up to theirs, then what lies outside the arenas.
  std::vector<MemoryLine> memory;
  std::optional<PeakExplanation> explanation;
  std::vector<int64_t> liveBytes; ///< at each op of the step, in issue order, for the curve; may be empty
};

/// One part of a step's time, and the figures that it comes from.
struct TimeTerm {
  std::string name;
  double seconds = 0;
  std::string source;
};

/// What a rank sends in a step by one kind of collective along one set of axes.
struct AxesTraffic {
  std::string kind, axes; ///< "all_gather", "dp.local" or "dp, sp"
  int64_t bytes = 0;

  auto operator<=>(const AxesTraffic &) const = default;
};

/// What the cost model expects; what it does not know is empty.
struct Prediction {
  std::optional<double> stepSeconds, tflopsPerDevice, computeSeconds, exposedCommunicationSeconds;
  /// In which nothing else is under way; empty where nothing is copied.
  std::optional<double> exposedCopySeconds, exposedStorageSeconds;
  /// The parts of `exposedCopySeconds`.
  std::optional<double> exposedToHostSeconds, exposedToDeviceSeconds;
  std::vector<std::pair<std::string, int64_t>>
      communicationBytes; ///< by kind of collective, in a stable order
  /// The same by kind and axes, sorted; empty where a plan by rules does not know the axes.
  std::vector<AxesTraffic> communicationByAxes;
  std::vector<TimeTerm> terms; ///< that add up to `stepSeconds`, where they are known
};

/// What a plan of other settings would take and cost.
struct PlanChoice {
  std::string change; ///< "zero_optimization.stage = 1"; empty in a table over settings
  int64_t zeroStage = 0, microBatch = 1, accumulation = 1;
  std::string recompute, optimizerHome; ///< "none", "attention", "all"; "device", "cpu", "nvme"
  int64_t deviceBytes = 0, hostBytes = 0, nvmeBytes = 0; ///< of a rank's device; of a node's host and storage
  std::optional<double> stepSeconds;
  bool fits = true;
  bool best = false;             ///< the fastest that fits
  std::string basis = "program"; ///< what says this, as PlanReport's
  bool hasPass = true;           ///< a program of it can be made
};

/// Logits and losses that are made some rows at a time.
struct LossChunks {
  int64_t chunks = 1, rows = 0; ///< of the loss with most; rows of all chunks but the last
  int64_t savedBytes = 0;       ///< of the device arena, beside the plan with whole losses; may be negative
  double moreSeconds = 0;       ///< of the predicted step, beside that plan
};

/// Values of the forward that backward recomputes in place of reading what was kept: by ops of one kind.
struct Recomputed {
  std::string what;       ///< the op: "gelu"
  int64_t values = 0;     ///< of the segment in which they save most; 0: others alone are made of them
  int64_t savedBytes = 0; ///< that they would hold there
  double moreSeconds = 0; ///< of a step's kernels, as expected; negative: it saves time as well
};

/// A large value that could have been had in several ways: kept, recomputed, gathered again, on the host.
struct ResidentValue {
  std::string what, layer; ///< the op that makes it, and where; of a gathered parameter its state
  int64_t bytes = 0;
  std::string way;            ///< what was chosen
  std::string next;           ///< the other way that costs least; empty: none
  double nextSeconds = 0;     ///< that it would add to the busiest of compute and links in a step
  int64_t nextBytes = 0;      ///< and to the peak, as it is expected
  bool isNextRefused = false; ///< the configuration asks for the way that was chosen
};

/// How ranks that share layers (tensor parallelism) do it. Names have "*" in the place of layers' numbers.
struct SharedLayers {
  struct Parameters {
    std::string names;
    int64_t count = 0, bytes = 0;  ///< of one rank, together
    std::optional<int64_t> cutDim; ///< none: each rank has all
    int64_t blocks = 1;            ///< equal blocks of that dimension, each of which is cut
    std::vector<int64_t> ratio;    ///< of the sizes of pieces of each, where these are cut; empty: they are
    std::string reason;
  };
  /// Products and attention that each rank computes whole.
  struct Whole {
    std::string what, layers;
    int64_t count = 0;
    std::string reason;
  };
  /// Of one micro-step.
  struct Exchange {
    std::string kind;          ///< "all_reduce"
    std::string maker, layers; ///< the op that makes what is exchanged, and where; empty: an argument
    std::string reader;        ///< the op that reads what comes of it; empty: the end of the micro-step
    bool isForward = false;
    int64_t count = 0, bytes = 0; ///< that a rank sends, together
  };

  int64_t ranks = 1;
  std::vector<Parameters> parameters;
  std::vector<Whole> whole;
  std::vector<Exchange> exchanges;
};

/// What forward makes for backward and is on the host in between.
struct HostActivations {
  int64_t values = 0, bytes = 0;
};

/// The largest workspace that cuDNN has for a gradient of attention, in bytes of the device.
struct AttentionWorkspace {
  int64_t bytes = 0;                      ///< 0: the runtime's own kernels do it, without one
  int64_t usualBytes = 0, leastBytes = 0; ///< where there is room, and for one key head of one sample
  int64_t calls = 0, callsWithout = 0;    ///< commands that cuDNN could compute, and those that it does not
};

/// How gradients of attention by cuDNN are added up, and what the other way would take.
struct AttentionChoice {
  bool isFast = false;                         ///< in any order: two runs may differ in bits
  double seconds = 0, otherSeconds = 0;        ///< of a step's gradients that cuDNN computes, on one rank
  int64_t usualBytes = 0, otherUsualBytes = 0; ///< the largest workspace where there is room
};

/// What saving the states takes.
struct CheckpointBytes {
  int64_t bytes = 0; ///< of all ranks' files, without headers
  /// Of host memory, at most on any rank, for the copy that is written while training goes on; beyond arenas.
  int64_t copyBytes = 0;
};

/// What a rank moves from and to storage in one step.
struct StorageTraffic {
  int64_t readBytes = 0;
  int64_t writtenBytes = 0; ///< what wears a disk out
};

/// What ranks have of their hosts' memory.
struct HostUse {
  int64_t nodeBytes = 0; ///< of all ranks of a node, in arenas
  int64_t lockedBytes =
      0; ///< of a rank's, page-locked: a GPU copies from there, or a disk reads and writes it
};

/// One thing that a plan was asked for with: a key of ds_config.json by its dotted path, or a name of its
/// own.
struct PlanInput {
  std::string name;  ///< "zero_optimization.stage", "precision", "sequence_length"
  std::string value; ///< as JSON

  bool operator==(const PlanInput &) const = default;
};

/// What is to be trained in all, and what a device costs.
struct TrainingRun {
  double tokens = 0;
  std::optional<double> pricePerHour; ///< of a device, in whatever money
};

struct Mesh {
  uint32_t dp = 1, tp = 1, pp = 1, sp = 1;
};

/// Calls of one product whose time was measured where the program is to run.
struct ProductUse {
  std::string product, form; ///< types, sizes and orders; how it is made
  int64_t calls = 0;
  double seconds = 0; ///< of one
};

/// One entry of a stage's schedule.
struct ScheduledRun {
  std::string segment;
  int64_t microBatch = 0;
};

struct PlanReport {
  std::string model;         ///< file or name of the model, for the heading
  std::string target;        ///< "cpu", "cuda:sm_90", or the cluster of a plan by rules
  std::string programTarget; ///< what the program is compiled for: "cpu", "cuda:sm_90"; empty: there is none
  std::string programTargetReason; ///< why that one; empty: there was no choice
  std::string cluster;           ///< whose figures seconds and limits are of; empty: an old plan does not say
  std::string clusterReason;     ///< why that one; empty: it was named, or there was no choice
  bool isPlanningOnly = false;   ///< no code is generated that the target's devices run
  std::string basis = "program"; ///< "program": the planned IR itself; "rules": published formulas
  std::string basisReason;       ///< why that one; empty: there was no choice
  uint32_t world = 1;
  Mesh mesh;
  std::vector<RankPlan> ranks; ///< ascending, together all ranks
  std::vector<std::vector<ScheduledRun>>
      schedule;            ///< of each stage in order; empty: the model is in one piece
  int64_t memoryLimit = 0; ///< device bytes the plan had to fit; 0: no limit known
  int64_t hostLimit = 0;   ///< host bytes that each rank was given; 0: what there is
  Prediction predicted;
  bool hostsFit = true; ///< host memory and storage suffice as well
  bool tf32 = false;    ///< products of fp32 factors are computed in tf32
  double flopsPerStep = 0;
  /// Operations of a step over all ranks that the model needs, and with what backward recomputes; 0: not
  /// known.
  double modelFlops = 0, hardwareFlops = 0;
  double peakFlops = 0;                     ///< of a device, in the type that products are in; 0: not known
  int64_t tokensPerStep = 0;                ///< of all ranks; 0: the model reads none
  std::optional<TrainingRun> run;           ///< none: no question was asked about it
  int64_t parameters = 0;                   ///< elements
  std::optional<int64_t> trainedParameters; ///< elements; none: all are trained
  std::optional<int64_t> activeParameters;  ///< elements that a token meets; none: it meets all
  std::optional<LossChunks> lossChunks;     ///< none: losses are whole
  std::vector<Recomputed> recomputed;       ///< what costs most seconds first
  std::vector<ResidentValue> largestValues; ///< the largest first
  HostActivations hostActivations;
  std::optional<SharedLayers> sharedLayers;       ///< none: each rank has whole layers
  std::optional<AttentionChoice> attentionChoice; ///< none: as below
  std::optional<AttentionWorkspace> attention;    ///< none: cuDNN is not asked for a gradient of attention
  std::optional<CheckpointBytes> checkpoint;      ///< none: a plan by rules, or an old one
  std::optional<StorageTraffic> storage;          ///< none: nothing lies in storage
  std::optional<HostUse> host;                    ///< none: nothing lies on the host
  std::vector<ProductUse> products;               ///< whose times were measured; empty: there is no tuning
  std::vector<PlanInput> inputs;   ///< beside model, target, ranks and limit; empty: an old plan does not say
  std::vector<std::string> notes;  ///< decisions and their reasons, a sentence each
  std::vector<PlanChoice> changes; ///< that make a plan fit which does not, the fastest first
  std::vector<PlanChoice> smaller; ///< of --explain-peak: one change each, the smallest peak first
  std::vector<PlanChoice> whatIf;  ///< the table of --what-if
  std::optional<int64_t> maxBatch, maxSeq; ///< the largest micro-batch and the longest sequence; 0: none

  /// What stands behind a choice that cannot be compiled, with a comma before it; empty of others.
  std::string remarkOn(const PlanChoice &choice) const;

  /// Whether every rank's device arena is within the limit, and the hosts suffice.
  bool fits() const;
};

/// A line for each part of an arena of `arenaBytes` in the memory `where`, of which `values` are live at its
/// peak; they add up to `arenaBytes`, for what the arena has beyond them is a line as well.
std::vector<MemoryLine> listParts(const std::vector<PeakValue> &values, int64_t arenaBytes,
                                  const std::string &where);

/// Fills what `rank` says of its peak (arena, categories, layers, lines of memory, largest values,
/// explanation) from `peak`, in which all values that are live then stand in the model's order, and the size
/// of the arena that they lie in. What the arena has beyond them is alignment and gaps of the packing, and
/// counts as workspace. Requires a `rank` that says nothing of a peak yet.
void describePeak(PeakExplanation peak, int64_t arenaBytes, RankPlan &rank);

struct TextOptions {
  bool colour = false;  ///< ANSI colours
  bool unicode = true;  ///< block characters in bars; otherwise '#'
  unsigned width = 100; ///< columns; at least 60
};

/// The plan as tables for a terminal. Ends with the line "fits: 812.4 MiB of 15.6 GiB", or "does not fit:
/// ...".
std::string printPlanText(const PlanReport &report, const TextOptions &options = {});

/// --explain-peak: the peak of each rank that has an explanation; empty where none has.
std::string explainPeaks(const PlanReport &report);

/// The plan as JSON, one document with a final newline; equal reports give equal bytes. Schema 1 of the
/// contract: keys may be added, never renamed.
std::string printPlanJson(const PlanReport &report);

/// Reads what printPlanJson wrote. `file` names the text in errors, which carry the key and exit code 5.
/// Unknown keys are ignored; missing, duplicate, ill-typed, negative and contradicting ones are errors.
Result<PlanReport> readPlanJson(const std::string &text, const std::string &file);

/// What differs between two plans: first what they were made from, then what came of it, ranks as pairRanks
/// has them, a line for each figure with both values, bytes and percent, the largest change first. What is
/// equal is left out and counted in the last line; it is the only line where nothing differs.
std::string diffPlans(const PlanReport &before, const PlanReport &after, const std::string &beforeName,
                      const std::string &afterName);

/// The refusal (exit code 4) of a report that does not fit: peak, op, limit, the ten largest live values, and
/// the change that the categories at the peak suggest. Requires !report.fits().
Error doesNotFit(const PlanReport &report);

} // namespace ds::report

#endif // DS_REPORT_PLANREPORT_H
