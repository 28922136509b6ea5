//===- ResidencyModel.h - A step's choices as one problem of Analysis/Residency ----===//
//
// All segments that a step runs stand one behind the other. Space 0 is the device, space 1 the host; space 2
// are the elements of gathered parameters, of which DeepSpeed bounds how many may be there by choice.
// Resource 0 is compute, 1 the link between ranks. What leaves for the host is to be gone when forward ends,
// for memory is short then, and what is loaded comes while backward runs. So copies in one direction do not
// overlap the other half of the step, and a step takes at least each of these ways through it:
//
//   forward    backward      compute, resource 0
//   stores     backward      2
//   forward    loads         3
//   stores     loads         4
//
// The longest is max(forward, stores) + max(backward, loads). What has a choice:
//
// - a value of the forward that backward reads, or from which such a value may be recomputed: kept, or
//   recomputed by the ops that the rules let run twice, or, where the configuration has it so, copied to the
//   host and back;
// - attention's gradient on a GPU: in pieces of the usual size, or in more that take less;
// - losses: whole, or in pieces of so many rows. What is chosen of them is told, and made elsewhere: it
//   changes what stands in phase step (ResidencyLoss.cpp);
// - a gathered parameter: gathered for each use, kept from forward to backward, or for the whole step
//   (ResidencyGathers.cpp).
//
// What is recomputed of a gathered parameter takes it from the gather of backward: that this is there early
// is a value as well, which nothing reads but what is recomputed.
//
// What has no choice is live bytes: states, inputs, values on their way, workspaces, buffers of collectives
// under way for twice the time that they should take, where there is memory for that.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_RESIDENCYMODEL_H
#define DS_LIB_PASSES_RESIDENT_RESIDENCYMODEL_H

#include "ForwardChoices.h"
#include "LossPieces.h"
#include "SegmentMemory.h"
#include "ds/Analysis/Residency/Residency.h"
#include "ds/Dialect/Training.h"

#include "llvm/ADT/MapVector.h"

#include <limits>

namespace mlir::ds {

/// The regions of each segment's function, taken apart.
using OpenSegments = llvm::MapVector<func::FuncOp, OpenRegions>;

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

/// Size: one memory model is to replace it whole; parts that it were cut into now would go with it.
class ResidencyModel {
public:
  // Spaces and resources of the problem.
  static constexpr uint32_t kDevice = 0, kHost = 1, kElements = 2;
  static constexpr uint32_t kCompute = 0, kLink = 1, kStoring = 2, kLoading = 3, kCopying = 4, kResources = 5;
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  /// Of `module`, the regions of whose segments are `open`.
  ResidencyModel(ModuleOp module, const OpenSegments &open, const ::ds::cost::Rates &rates,
                 const ResidencyLimits &limits, RecomputePlan recompute = {});

  /// The values of `func` that are not recomputed.
  DenseSet<Value> findKept(func::FuncOp func, const ::ds::analysis::ResidencyPlan &plan) const;
  /// The values of `func` that are on the host between their uses.
  DenseSet<Value> findOnHost(func::FuncOp func, const ::ds::analysis::ResidencyPlan &plan) const;
  /// Whether `plan` has the value of choice `index` on the host.
  bool isOnHost(size_t index, const ::ds::analysis::ResidencyPlan &plan) const;
  /// The choice of how losses are made; none where they offer nothing.
  std::optional<size_t> findLosses() const;
  /// A loss whose pieces are the most; there is one.
  CrossEntropyOp getLoss() const;
  /// Pieces of `rows` in which the loss of most pieces is made.
  int64_t countPieces(int64_t rows) const;
  /// Bytes of the device that are held at the most if choice `index` is had by `way`, all else as in `plan`.
  int64_t peakWith(const ::ds::analysis::ResidencyPlan &plan, size_t index,
                   const ::ds::analysis::ResidencyWay &way) const;
  /// Gradients of attention that do without cuDNN's workspace.
  int64_t countSlowAttention(const ::ds::analysis::ResidencyPlan &plan) const;
  MLIRContext *getContext() const { return context; }
  /// Bytes of the host that are taken whatever is chosen.
  int64_t getHostBytes() const;
  /// How long each gathered parameter stays, by the name of its state.
  DenseMap<StringAttr, Stay> findStays(const ::ds::analysis::ResidencyPlan &plan) const;
  /// Groups or layers in the longest forward.
  int64_t getNumGroups() const { return numGroups; }
  /// The value that choice `index` is about; null where it is about none.
  Value valueOf(size_t index) const;

  ::ds::analysis::ResidencyProblem problem;
  std::vector<ResidencyChoice> choices; ///< as problem.values

private:
  struct Segment {
    func::FuncOp func;
    std::unique_ptr<RecomputeRules> rules; ///< has an address of its own: `memory` asks it
    SegmentMemory memory;
    uint32_t begin; ///< its first moment in the problem
    double runs;
    std::vector<double> seconds = {};      ///< of each of its moments
    DenseMap<uint32_t, uint32_t> values{}; ///< memory -> value of the problem
    DenseSet<uint32_t> alwaysKept{};       ///< memories that have no choice
    DenseMap<uint32_t, uint32_t> early{};  ///< memory of a gather of backward -> value: it is there early
    std::vector<LossPieces> losses{};
  };
  /// Whether a value may go to the host, or must.
  enum class HostUse { No, May, Must };
  /// The uses of one parameter's gathers.
  struct Gathered {
    int64_t bytes = 0, elements = 0;
    double seconds = 0;
    bool isLoaded = false;                           ///< its shard, from another space
    std::vector<std::pair<uint32_t, uint32_t>> uses; ///< segment, memory; in order
  };

  RecomputeRules makeRules(func::FuncOp func);
  void addSegment(func::FuncOp func, const OpenRegions &regions, const SymbolTable &symbols);
  void delayCollectives(Segment &segment);
  uint32_t endOfSending(const Segment &segment, const ValueMemory &memory) const;
  void addLiveBytes(const Segment &segment);
  void addWorkspaces(uint32_t index);
  void addPieces(AttentionGradOp gradient, uint32_t index, uint32_t moment);
  void addForward(uint32_t segment);
  void addLosses();
  SmallVector<::ds::analysis::ResidencyHold> holdsOf(const Segment &segment, uint32_t memory) const;
  void releaseWhole(const Segment &segment, const LossPieces &loss);
  ::ds::analysis::ResidencyWay wayInPieces(std::optional<int64_t> rows) const;
  void addChoice(uint32_t segment, const ForwardChoice &choice);
  bool usesHost() const;
  std::vector<::ds::analysis::ResidencyCharge> chargesOf(const Segment &segment, double forward,
                                                         double backward) const;
  HostUse hostUseOf(const Segment &segment, uint32_t memory) const;
  ::ds::analysis::ResidencyWay wayByHost(const Segment &segment, const ForwardChoice &choice) const;
  uint32_t firstIssue(ArrayRef<std::pair<uint32_t, int64_t>> needs) const;
  uint32_t behindLastUse(const Gathered &gathered, const Segment &segment) const;
  void countElements();
  void addGathers(const SymbolTable &symbols);
  std::optional<uint32_t> addEarly(uint32_t segment, Value gathered, uint32_t moment);
  bool mayKeep(const Gathered &gathered, size_t use) const;
  int64_t permanentBytes(ModuleOp module, Space space) const;
  void addHost(ModuleOp module, const ::ds::cost::Rates &rates);

  MLIRContext *context;
  const ValueCosts costs;
  const ResidencyLimits limits;
  const RecomputePlan recompute;
  int64_t numGroups = 0;
  std::vector<Segment> segments;
  llvm::MapVector<StringAttr, Gathered> gathers;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_RESIDENCYMODEL_H
