//===- StepProblem.h - A step's choices while they are collected --------------------===//
//
// All segments that a step runs stand one behind the other. Each adds what its values take whatever is chosen
// and what has a choice; who adds what stands in a file of its own:
//
//   StepProblem.cpp          the segments: what is in memory, and how long each command takes
//   ResidencyGathers.cpp     collectives that are under way beside compute; gathered parameters: gathered for
//                            each use, kept from forward to backward, or for the whole step
//   ResidencyWorkspaces.cpp  scratch memory: attention's gradient in pieces of the usual size or in smaller
//   ResidencyForward.cpp     what forward makes and backward reads: kept, recomputed, or on the host
//   ResidencyLoss.cpp        losses: whole, or in pieces of so many rows
//
// What is recomputed of a gathered parameter takes it from the gather of backward: that this is there early
// is a value as well, which nothing reads but what is recomputed. What has no choice is live: states, inputs,
// values on their way, workspaces, buffers of collectives under way for twice the time that they should take,
// where there is memory for that.
//
// Calls that are recomputed run before the first command that reads them, each at a moment of its own: what
// they alone read is gone when the command's results come.
//
// Example, two segments of 6 and 2 commands: moments 0 to 5 and 7 to 8, and 6 and 9 behind their ends. 1000
// bytes of states are live in all 10. A value of 64 that is made at 1 and read at 2, where forward ends, is
// live at both. Backward reads it at 5: that is a choice, to hold 64 bytes in [3, 6) as well, or to spend
// what it costs to make it again.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_STEPPROBLEM_H
#define DS_LIB_PASSES_RESIDENT_STEPPROBLEM_H

#include "StepDescription.h"
#include "ds/Analysis/Residency/Residency.h"
#include "ds/Dialect/Training.h"

#include "llvm/ADT/MapVector.h"

#include <limits>

namespace mlir::ds {

struct ResidencyLimits {
  std::optional<int64_t> memory; ///< bytes; nothing: no limit
  // DeepSpeed's bounds; 0: none.
  int64_t maxReuseElements = 0; ///< of what is used between two uses of a kept parameter
  int64_t maxLiveElements = 0;  ///< of what is gathered at one time
  int64_t prefetchElements = 0; ///< of what is under way ahead of need
  uint64_t attentionBytes = 0;  ///< of a piece of attention's gradient on CUDA
  OffloadOptions offload = {};  ///< what of forward goes to the host
  bool isLossOpen = false;      ///< whether losses may be made in the pieces that they offer
  bool isNothingAhead = false;  ///< compute waits for each collective, so that none holds memory beside it
};

/// What a value of the problem stands for: a value of the forward, a parameter, the workspace of attention's
/// gradient, or how all losses are made. Nothing of these but a segment: a gather of its backward that is
/// there early, for what is recomputed.
struct ResidencyChoice {
  std::optional<uint32_t> segment; ///< none: a parameter, of several segments
  std::optional<uint32_t> memory;  ///< of the segment, of a value of the forward
  StringAttr state;                ///< the parameter
  Operation *attention = nullptr;  ///< whose workspace it is
  /// Ways that are not open: how it would be kept, where the configuration has it recomputed or on the host
  /// instead; in what pieces losses could have been made.
  std::vector<::ds::analysis::ResidencyWay> refused = {};
  SmallVector<Stay> stays = {}; ///< of a parameter, by home
  /// Of losses, by home and then by refused way: rows of a piece, nothing of whole ones.
  SmallVector<std::optional<int64_t>> lossRows = {};

  bool isOfLosses() const { return !lossRows.empty(); }
};

/// A segment of the step, and what of it is in the problem. Its description outlives it.
struct StepSegment {
  func::FuncOp func;
  const RecomputeRules *rules;
  SegmentMemory memory; ///< as described, but for what collectives have under way
  const Repeats *repeats;
  /// Of the problem: the moment of each command, and the one behind them. Each call that may be recomputed
  /// before a command has one before that.
  std::vector<uint32_t> moments;
  uint32_t begin; ///< its first moment in the problem
  double runs;
  ArrayRef<double> seconds;                                    ///< of each of its moments
  ArrayRef<LossPieces> losses;                                 ///< that offer them
  DenseMap<uint32_t, uint32_t> values{};                       ///< memory -> value of the problem
  DenseMap<uint32_t, ::ds::analysis::MemoryHold> alwaysKept{}; ///< memories that have no choice, for that
  DenseMap<uint32_t, uint32_t> early{}; ///< memory of a gather of backward -> value: it is there early

  /// The moment of the problem at which the command of `moment` runs.
  uint32_t at(uint32_t moment) const { return moments[moment]; }
  /// The first moment of the problem behind the command before `moment`: of what is recomputed, if anything.
  uint32_t since(uint32_t moment) const { return moment == 0 ? begin : moments[moment - 1] + 1; }
  /// What memory `index` takes until it was read at `end`; nothing where it lies in other memory.
  std::optional<::ds::analysis::MemoryHold> holdUntil(uint32_t index, uint32_t end) const;
};

/// The uses of one parameter's gathers.
struct GatheredUses {
  int64_t bytes = 0, elements = 0;
  double seconds = 0;
  bool isLoaded = false;                           ///< its shard, from another space
  std::vector<std::pair<uint32_t, uint32_t>> uses; ///< segment, memory; in order
};

struct StepProblem {
  // Spaces and resources of the problem.
  static constexpr uint32_t kDevice = 0, kHost = 1, kElements = 2, kSpaces = 3;
  static constexpr uint32_t kCompute = 0, kLink = 1, kStoring = 2, kLoading = 3, kCopying = 4, kResources = 5;
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  /// Of `module`, without segments and values.
  StepProblem(ModuleOp module, const ::ds::cost::Rates &rates, const ResidencyLimits &limits);

  /// Adds the segment that is `described`, with what it takes whatever is chosen.
  void addSegment(const SegmentDescription &described);
  /// Adds a value; returns its number.
  uint32_t add(::ds::analysis::ResidencyValue value, ResidencyChoice choice);
  /// Gives the problem's spaces what is live in them. Nothing is added behind that.
  void close();

  /// Whether anything of forward may go to the host, so that its copies count.
  bool usesHost() const;
  /// What more seconds of compute in forward and in backward of `segment` cost, compute itself first.
  std::vector<::ds::analysis::ResidencyCharge> chargesOf(const StepSegment &segment, double forward,
                                                         double backward) const;

  const ValueCosts costs;
  const ResidencyLimits limits;
  ::ds::analysis::ResidencyProblem problem;
  std::vector<ResidencyChoice> choices; ///< as problem.values
  std::vector<StepSegment> segments;
  llvm::MapVector<StringAttr, GatheredUses> gathers;
  ::ds::analysis::StepMemory live{kSpaces}; ///< whatever is chosen
  bool mayBeAhead = false;                  ///< some collective may be under way beside compute
};

/// Lets collectives of the last segment of `step` be under way beside compute: gathers are issued ahead of
/// need and reductions waited for behind them. Notes the uses of gathered parameters.
void delayCollectives(StepProblem &step);
/// Adds how long each gathered parameter stays.
void addGathers(StepProblem &step, const SymbolTable &symbols);
/// What is recomputed of a parameter that was `gathered` for forward takes it from the gather of backward,
/// which is there from `moment` of `segment` on then, until it would be needed: a value of the problem that
/// is had where anything of that is recomputed. None where backward gathers no such parameter, or not later.
std::optional<uint32_t> addEarly(StepProblem &step, uint32_t segment, Value gathered, uint32_t moment);
/// Adds what libraries will be given beside their operands in `segment`, on a GPU: there budgets are known
/// without asking them.
void addWorkspaces(StepProblem &step, uint32_t segment);
/// Adds what forward of `segment` makes and backward reads: `choices`, as it is described.
void addForward(StepProblem &step, uint32_t segment, ArrayRef<ForwardChoice> choices);
/// Adds how losses are made, where they offer more than one way.
void addLosses(StepProblem &step);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_STEPPROBLEM_H
