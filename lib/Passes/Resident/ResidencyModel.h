//===- ResidencyModel.h - A step's choices as one problem of Analysis/Residency ----===//
//
// Space 0 is the device, space 1 the host; space 2 are the elements of gathered parameters, of which
// DeepSpeed bounds how many may be there by choice. Resource 0 is compute, 1 the link between ranks. What
// leaves for the host is to be gone when forward ends, for memory is short then, and what is loaded comes
// while backward runs. So copies in one direction do not overlap the other half of the step, and a step takes
// at least each of these ways through it:
//
//   forward    backward      compute, resource 0
//   stores     backward      2
//   forward    loads         3
//   stores     loads         4
//
// The longest is max(forward, stores) + max(backward, loads): with 3 s of forward and 6 of backward, 2 s of
// stores and as many of loads take no time, and 4 s of stores one. What has a choice, and what is taken
// whatever is chosen, is collected in StepProblem.h; here a plan of it is read.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_RESIDENCYMODEL_H
#define DS_LIB_PASSES_RESIDENT_RESIDENCYMODEL_H

#include "StepProblem.h"

namespace mlir::ds {

class ResidencyModel {
public:
  /// Of `module`, whose segments are `described`; the description outlives the model.
  ResidencyModel(ModuleOp module, const StepDescription &described, const ::ds::cost::Rates &rates,
                 const ResidencyLimits &limits);

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
  /// Whether `plan` has anything of forward on the host.
  bool usesHost(const ::ds::analysis::ResidencyPlan &plan) const;
  /// How long each gathered parameter stays, by the name of its state.
  DenseMap<StringAttr, Stay> findStays(const ::ds::analysis::ResidencyPlan &plan) const;
  /// Groups or layers in the longest forward.
  int64_t getNumGroups() const { return numGroups; }
  /// Whether the problem is another one where compute waits for each collective.
  bool mayBeAhead() const { return isAhead; }
  /// The value that choice `index` is about; null where it is about none.
  Value valueOf(size_t index) const;

  ::ds::analysis::ResidencyProblem problem;
  std::vector<ResidencyChoice> choices; ///< as problem.values

private:
  std::vector<StepSegment> segments;
  int64_t numGroups = 0;
  bool isAhead = false;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_RESIDENCYMODEL_H
