//===- StepDescription.h - What the segments of a step are, before anything is chosen --===//
//
// One step is solved as several problems: with groups of two narrow values recomputed, of four and so on,
// with collectives under way beside compute and without, so that nothing is ahead. What its commands are, how
// long they take, what lies in memory and from what it could be recomputed is the same in those of one plan
// of recomputation: it is described once, and each problem begins with a copy of its memory. What no such
// plan decides is the same in all descriptions (SegmentCommands). Example: of a step that does not fit, cheap
// ops and strides of 2, 4 and 8 are tried, each twice: eight problems, four descriptions, one list of
// commands.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_STEPDESCRIPTION_H
#define DS_LIB_PASSES_RESIDENT_STEPDESCRIPTION_H

#include "ForwardChoices.h"
#include "LossPieces.h"
#include "SegmentMemory.h"
#include "ds/Dialect/Training.h"

#include "llvm/ADT/MapVector.h"

#include <map>

namespace mlir::ds {

/// The regions of each segment's function, taken apart.
using OpenSegments = llvm::MapVector<func::FuncOp, OpenRegions>;

/// What of a step's forward may be recomputed: as RecomputeRules has it for each of its functions.
struct RecomputePlan {
  enum class Kind {
    Cheap,    ///< cheap ops
    Groups,   ///< all between every `stride`-th narrow value
    Demanded, ///< what the configuration names, whatever memory there is
  };
  Kind kind = Kind::Cheap;
  int64_t stride = 1;
  RecomputeOptions demanded = {};
};

/// The calls that may be recomputed before the command that reads what they make first, in order. Example: a
/// product, GELU of it and another product, the first of which backward reads as well: two calls; GELU is
/// read by the second alone, and gone when the command runs.
struct Repeats {
  struct Use {
    std::optional<uint32_t> made = {}; ///< by which of the calls before its first reader, if by one
    /// The first and the last of them that read it, be it by way of cheap ops.
    std::optional<std::pair<uint32_t, uint32_t>> read = {};
  };
  std::vector<uint32_t> calls; ///< by moment: how many there are
  std::vector<Use> uses;       ///< by memory
};

/// What a segment is under one plan of recomputation, whatever collectives have under way.
struct SegmentDescription {
  func::FuncOp func;
  std::unique_ptr<RecomputeRules> rules; ///< has an address of its own: `memory` asks it
  SegmentMemory memory;
  std::vector<double> seconds;    ///< of each of its moments
  std::vector<LossPieces> losses; ///< that offer them
  std::vector<ForwardChoice> forward;
  Repeats repeats;
};

/// The segments that a step runs.
struct StepDescription {
  std::vector<SegmentDescription> segments = {};
  int64_t numGroups = 0; ///< groups or layers in the longest forward, of which groups are recomputed
};

/// What ops of `module` cost at `rates`.
ValueCosts costsOf(ModuleOp module, const ::ds::cost::Rates &rates);

/// The descriptions of one module, each made once.
class StepDescriptions {
public:
  /// Of `module`, the regions of whose segments are `open`, which outlive this.
  StepDescriptions(ModuleOp module, const OpenSegments &open, const ::ds::cost::Rates &rates);

  /// Where `recompute` is. Of what is demanded there is one.
  const StepDescription &of(const RecomputePlan &recompute);

private:
  /// What a segment is whatever may be recomputed.
  struct Segment {
    std::shared_ptr<const SegmentCommands> commands;
    std::vector<double> callSeconds; ///< of each of its moments; 0 of kernels, which take what they move
    SmallVector<Value> narrow = {};  ///< where groups were asked for
  };
  Segment makeSegment(func::FuncOp func) const;
  RecomputeRules makeRules(func::FuncOp func, Segment &segment, const RecomputePlan &recompute);
  SegmentDescription describe(func::FuncOp func, Segment &segment, const RecomputePlan &recompute);

  const OpenSegments &open;
  const SymbolTable symbols;
  const ValueCosts costs;
  const bool isForCuda;
  llvm::MapVector<func::FuncOp, Segment> segments;            ///< that a step runs
  std::map<std::optional<int64_t>, StepDescription> byStride; ///< of groups; others have none
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_STEPDESCRIPTION_H
