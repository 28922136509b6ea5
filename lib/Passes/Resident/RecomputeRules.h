//===- RecomputeRules.h - Which ops of forward backward may run again ------------------===//
//
// Cheap ops may always: elementwise and index ops ride on kernels that read what they are made of anyway.
// Products, attention and reductions may where memory asks for it, and then a bound is needed on how far back
// a repetition reaches: from one border to the next. A border is a value through which all that comes later
// depends on what came earlier, such as the sum that leaves a block of a transformer; it is not recomputed,
// so that what lies between two borders can be recomputed from the first alone, when backward comes there
// (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", section 3).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_RECOMPUTERULES_H
#define DS_LIB_PASSES_RESIDENT_RECOMPUTERULES_H

#include "ds/Dialect/Ds.h"
#include "ds/Dialect/Training.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::ds {

/// True for ops whose repetition costs nothing but arithmetic on data that is being read anyway.
bool isCheap(Operation *op);

/// The values of forward that alone connect what comes before with what comes after, in order. What is made
/// of inputs by cheap ops (masks, positions) connects nothing.
SmallVector<Value> findNarrowValues(func::FuncOp func);

/// Of narrow values those that a layer ends with, and the one that enters the first, where ops name numbered
/// layers ("h.3"); else all.
SmallVector<Value> findLayerEnds(ArrayRef<Value> narrow);

class RecomputeRules {
public:
  /// Cheap ops alone.
  RecomputeRules() = default;
  /// Nothing: what is recomputed has been chosen.
  static RecomputeRules nothing();
  /// All that is pure before the last of `borders`, which are in the order of their ops.
  static RecomputeRules between(ArrayRef<Value> borders);
  /// The same, and it must be. With `layers`, numbers of them, only what lies in those.
  static RecomputeRules demanded(ArrayRef<Value> borders, ArrayRef<int64_t> layers);
  /// Cheap ops, and those of `names`, which must be.
  static RecomputeRules named(ArrayRef<std::string> names);

  bool mayRecompute(Operation *op) const;
  /// True where the rules demand it whatever memory there is.
  bool isForced(Operation *op) const;
  /// True where the rules demand it by name, though it may save nothing.
  bool isNamed(Operation *op) const;
  /// Whether `op` makes what a group that is recomputed is made of.
  bool isCheckpoint(Operation *op) const { return borders.contains(op) && op != last; }
  /// Whether more than cheap ops may be recomputed.
  bool recomputesCalls() const { return extent > Extent::Cheap; }

private:
  enum class Extent { Nothing, Cheap, Named, Groups };
  bool isInReach(Operation *op) const;

  Extent extent = Extent::Cheap;
  bool isDemanded = false;
  llvm::StringSet<> names;
  DenseSet<int64_t> layers;      ///< empty: all
  DenseSet<Operation *> borders; ///< makers of them
  Operation *last = nullptr;     ///< of them: what comes later is read first, so that it had better stay
};

/// Fails where `demanded` names ops or layers that no forward of `module` has.
LogicalResult verifyDemands(ModuleOp module, const RecomputeOptions &demanded);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_RECOMPUTERULES_H
