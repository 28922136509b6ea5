//===- LayerUnits.h - The layers of a model, one behind the other ------------------===//
//
// What pipelines cut between: the numbered layers of a model in the order in which forward comes to them,
// what stands before the first (the embedding) and what stands behind the last (the last norm, the head, the
// loss). An op belongs to the unit that its layer is, but to no earlier one than what it reads; what says no
// number goes with what it reads, or, where no layer reads it, with what is behind the last.
//
// What costs next to nothing and is made of inputs, buffers and constants alone (positions, masks), or of
// parameters alone (conversions), belongs to no unit: whoever reads it makes it.
//
//   %e = ds.embedding %wte, %tokens           unit 0
//   %p = ds.add %positions, %shift            none
//   %h = ds.attention ... layer h.0           unit 1
//   %f = ds.layer_norm ... layer h.1          unit 2
//   %l = ds.cross_entropy ...                 unit 3
//
//===------------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_STAGES_LAYERUNITS_H
#define DS_LIB_PASSES_STAGES_LAYERUNITS_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::ds {

class LayerUnits {
public:
  explicit LayerUnits(func::FuncOp forward);

  /// Numbered layers, and two.
  unsigned count() const { return unsigned(layers.size()) + 2; }
  /// The unit of `op`; nothing where whoever reads it makes it.
  std::optional<unsigned> unitOf(Operation *op) const;
  /// As a model calls unit `unit`, which is a numbered layer: "h.3".
  std::string nameOf(unsigned unit) const;

private:
  void findFree(Block &body);
  void assign(Block &body);
  void assignRest(Block &body);
  unsigned ownOf(Operation *op) const;

  func::FuncOp forward;
  llvm::MapVector<std::pair<StringRef, int64_t>, unsigned> layers; ///< to units, from 1 on
  DenseSet<Operation *> free;
  DenseMap<Operation *, unsigned> units;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STAGES_LAYERUNITS_H
