//===- MeshShape.h - The mesh of a module as plain data ----------------------------===//
//
// `ds.mesh` tells passes how ranks are arranged. This is its value, for those that make or compare meshes and
// take sets of axes apart.
//
//===----------------------------------------------------------------------------===//
#ifndef DS_DIALECT_MESHSHAPE_H
#define DS_DIALECT_MESHSHAPE_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// Axes, and what they are for: see MeshOp.
struct MeshShape {
  ::ds::rt::Mesh mesh;
  ::ds::rt::AxisSet samples, zero, stages, tensors;

  /// Ranks along `zero`.
  int64_t countZeroRanks() const { return mesh.size(zero); }
  /// The axes along which ranks read the same samples and yet divide what ZeRO divides: each has a part of
  /// the sequences.
  ::ds::rt::AxisSet sequences() const { return zero - samples; }
  /// Ranks that share each layer.
  int64_t countTensorRanks() const { return mesh.size(tensors); }
  bool operator==(const MeshShape &) const = default;
};

/// The mesh of `module`: one rank and no axis where it declares none.
MeshShape getMeshShape(ModuleOp module);

/// Makes `shape` the mesh of `module`, which for no axis is none.
void declareMesh(ModuleOp module, const MeshShape &shape);

/// The names of `axes`, in the order of `mesh`: an axis by its own, all its sub-axes by the whole's. Null for
/// an empty set.
AxesAttr nameAxes(MLIRContext *context, const ::ds::rt::Mesh &mesh, ::ds::rt::AxisSet axes);

} // namespace mlir::ds

#endif // DS_DIALECT_MESHSHAPE_H
