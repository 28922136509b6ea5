//===- Decisions.h - What was left to the compiler, and how it chose -----------------===//
//
// `ds.decisions = #ds.decisions<...>` of a module. Passes add what they have chosen, as figures; a report
// tells of it in sentences. Nothing here steers a pass: what the planner asks for beyond the configuration,
// passes are made with (ds/Passes/PlanRequest.h).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_DIALECT_DECISIONS_H
#define DS_DIALECT_DECISIONS_H

#include "ds/Dialect/Ds.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::ds {

/// How a value is had where it is read.
enum class HadBy {
  Kept,
  Host,
  Recomputed,
  GatherForUse,     ///< of a parameter: gathered each time
  GatherForSegment, ///< kept gathered for a micro-step
  GatherForStep,    ///< kept gathered for a step
  SinglePrecision,  ///< of attention's gradient: in f32, without a workspace
  Workspace,        ///< in pieces, with a workspace of so many bytes
  Whole,            ///< of losses
  Pieces,           ///< of so many rows
};

/// One way to have a value. `size` counts bytes of a workspace or rows of pieces.
struct ValueWay {
  HadBy by = HadBy::Kept;
  int64_t size = 0;
  bool operator==(const ValueWay &) const = default;
};

/// What is recomputed and could have been kept, of one kind of op.
struct RecomputedKind {
  std::string what;
  int64_t values = 0, savedBytes = 0; ///< at most, of one segment
  double moreSeconds = 0;
  bool operator==(const RecomputedKind &) const = default;
};

/// The next best way to have a value, and what it would add.
struct NextWay {
  ValueWay way;
  double moreSeconds = 0;
  int64_t moreBytes = 0;
  bool isRefused = false; ///< the configuration asks for the way that was chosen
  bool operator==(const NextWay &) const = default;
};

/// A value that has a choice.
struct ResidentValue {
  std::string what, layer; ///< the op that makes it, and where; of a parameter its state
  int64_t bytes = 0;
  ValueWay way;
  std::optional<NextWay> next;
  bool operator==(const ResidentValue &) const = default;
};

/// Losses in pieces of `rows`, beside whole ones with all else as it was chosen.
struct LossOffer {
  int64_t rows = 0, chunks = 0, savedBytes = 0;
  double moreSeconds = 0;
  bool operator==(const LossOffer &) const = default;
};

/// How losses that may be made in pieces are made.
struct LossResidency {
  std::optional<int64_t> rows = {}; ///< of a piece; nothing: they are whole
  std::vector<LossOffer> pieces;    ///< all that they offer, the largest first
  bool operator==(const LossResidency &) const = default;
};

/// What ds-rematerialize-cheap chose. Bytes and seconds are estimates.
struct Residency {
  std::vector<RecomputedKind> again;
  std::vector<ResidentValue> largest;
  int64_t attentionInF32 = 0;            ///< gradients of attention without cuDNN
  int64_t hostValues = 0, hostBytes = 0; ///< of forward, on the host between their uses
  bool fits = false;
  int64_t expectedBytes = 0;  ///< of the device
  double expectedSeconds = 0; ///< of a step's busiest resource
  double boundSeconds = 0;    ///< less than which no choice of this kind takes
  /// Narrow values in each group whose calls may be recomputed; nothing: no call is, but by demand.
  std::optional<int64_t> groupValues;
  std::optional<LossResidency> loss;
  bool operator==(const Residency &) const = default;
};

/// What pieces of losses save and cost in plans.
struct LossOutcome {
  int64_t savedBytes = 0;
  double moreSeconds = 0;
  bool isExpected = false; ///< one of the two was planned, so that this is an estimate
  bool isRefused = false;  ///< losses stay whole
  bool operator==(const LossOutcome &) const = default;
};

/// The loss that ds-split-loss split most.
struct LossSplit {
  int64_t chunks = 0, rows = 0;
  std::optional<LossOutcome> outcome;
  bool operator==(const LossSplit &) const = default;
};

/// What keeps a value from staying gathered.
enum class KeptFrom { Memory, LiveElements, ReuseElements, Choice };

/// Values that are gathered again for one reason.
struct RepeatedGathers {
  bool isForBackward = false; ///< of the same micro-step; else of another one
  KeptFrom reason = KeptFrom::Memory;
  std::vector<std::string> states;
  int64_t wanted = 0, limit = 0; ///< what keeping one takes at least of what there is
  bool operator==(const RepeatedGathers &) const = default;
};

/// What stays gathered in one function.
struct KeptGathers {
  std::string function;
  std::vector<std::string> forStep, forBackward; ///< states that stay over micro-steps, and within one
  int64_t forStepBytes = 0, forBackwardBytes = 0;
  int64_t savedGathers = 0; ///< whose place one gather of the first of `forStep` takes
  std::vector<RepeatedGathers> again;
  double exposedSeconds = 0;
  bool operator==(const KeptGathers &) const = default;
};

/// Why each of the ranks that share layers has, or runs, something as it does.
enum class SharedFor {
  Parts,       ///< in parts, which is what the ranks are there for
  Asked,       ///< the configuration names it
  Indivisible, ///< nothing that it is made of, or read by, has equal parts for the ranks
  Cost,        ///< exchanges would take longer than parts save
};

/// Parameters that are held alike; names have "*" in the place of numbers.
struct SharedStates {
  std::string names;
  int64_t count = 0, bytes = 0;    ///< of one rank, together
  std::optional<int64_t> dim = {}; ///< that is cut; nothing: each rank has all
  int64_t outer = 1;               ///< equal blocks of `dim`, each of which is cut
  std::vector<int64_t> ratio = {}; ///< of the sizes of pieces of each, where these are cut; empty: they are
  SharedFor reason = SharedFor::Parts;
  bool operator==(const SharedStates &) const = default;
};

/// Products and the like that each rank runs whole.
struct SharedWork {
  std::string what, layers;
  int64_t count = 0;
  SharedFor reason = SharedFor::Cost;
  bool operator==(const SharedWork &) const = default;
};

/// Exchanges of one kind in a micro-step: between what makes a value and what reads it otherwise.
struct SharedExchange {
  CollectiveKind kind = CollectiveKind::AllReduce;
  std::string maker, layers, reader; ///< ops by name, and where the first is; empty where there is none
  bool isForward = false;
  int64_t count = 0, bytes = 0; ///< that a rank sends, together
  bool operator==(const SharedExchange &) const = default;
};

/// What ds-shard-tensors chose.
struct SharedLayers {
  int64_t ranks = 1;
  std::vector<SharedStates> parameters;
  std::vector<SharedWork> whole;
  std::vector<SharedExchange> exchanges;
  bool operator==(const SharedLayers &) const = default;
};

/// What else was left open.
enum class ChoiceOf {
  ReduceBucket,        ///< elements, from the collective's latency and rate
  GatherBucket,        ///< the same
  SubGroup,            ///< as the other bounds
  ParameterThreshold,  ///< elements, from the same
  ModelThreshold,      ///< elements, one part in `part` of all
  ReduceEachMicroStep, ///< bytes that a rank keeps
  ReduceOncePerStep,   ///< the same
  OptimizerPlace,      ///< elements of `ofElements`, in `space`
  ParameterPlace,      ///< elements in `space`
  OnceTooLarge,        ///< bytes beyond the limit
  OnceSlower,          ///< percent
  NothingOnHost,
  NoProductsRecomputed,
};

/// One such choice; what a kind does not name is not set.
struct OpenChoice {
  ChoiceOf kind = ChoiceOf::ReduceBucket;
  int64_t elements = 0, ofElements = 0, part = 0;
  int64_t bytes = 0, limitBytes = 0;
  CollectiveKind collective = CollectiveKind::AllGather;
  double latencySeconds = 0, bytesPerSecond = 0, share = 0, percent = 0;
  Space space = Space::Device;
  bool operator==(const OpenChoice &) const = default;
};

struct Decisions {
  std::optional<LossSplit> lossSplit = {};
  std::vector<OpenChoice> choices = {};
  std::optional<Residency> residency = {};
  std::vector<KeptGathers> gathers = {};
  std::optional<SharedLayers> shared = {};
  bool operator==(const Decisions &) const = default;
};

llvm::hash_code hash_value(const Decisions &decisions);

/// What was decided in `module` so far.
Decisions getDecisions(ModuleOp module);
/// Puts `decisions` there; nothing is said of none.
void setDecisions(ModuleOp module, const Decisions &decisions);
/// Lets `change` change what was decided in `module`.
void changeDecisions(ModuleOp module, function_ref<void(Decisions &)> change);
/// Adds a choice.
void addChoice(ModuleOp module, const OpenChoice &choice);

} // namespace mlir::ds

#endif // DS_DIALECT_DECISIONS_H
