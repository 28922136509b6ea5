//===- LoopNest.h - The loops around a fused body ------------------------------===//
//
// Chooses what a kernel's work unit is, which dimension fills vectors, and which dimensions are really one
// because every address walks them as one.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CODEGEN_LOOPNEST_H
#define DS_LIB_CODEGEN_LOOPNEST_H

#include "BodyGraph.h"
#include "ds/Codegen/KernelClass.h"
#include <memory>

namespace mlir::ds::codegen {

/// One value that the kernel stores.
struct NestOutput {
  Node *value;
  Index address; ///< in elements
  unsigned buffer;
  bool full; ///< stored at every iteration; otherwise once per kept index
};

/// A body over its loop space. Loops over reduced dimensions lie inside those over kept ones.
struct LoopNest {
  IndexContext context;
  LoopSpace space;
  std::unique_ptr<BodyGraph> graph;
  llvm::SmallVector<NestOutput> outputs;
  mlir::ds::KernelKind kind = mlir::ds::KernelKind::Pointwise;
  std::optional<unsigned> vectorDim; ///< fills vectors; none: every value is a scalar
  std::vector<Node *> reductions;    ///< by level, then by id
  /// Positions of the vector dimension where the body changes form: a concatenation's pieces, a pad's window.
  llvm::SmallVector<int64_t> cuts;

  bool isDynamic() const { return space.sizes.size() == 1 && mlir::ShapedType::isDynamic(space.sizes[0]); }
  bool isEmpty() const;
  int64_t vectorSize() const { return vectorDim ? space.sizes[*vectorDim] : 1; }
  /// Product of the sizes of the kept (or reduced) dimensions but the vector dimension.
  int64_t countOuter(bool reducedOnes) const;
  /// Reductions of `level`, in order; levels start at 1.
  llvm::SmallVector<Node *> reductionsOf(unsigned level) const;
  unsigned lastLevel() const { return reductions.empty() ? 0 : reductions.back()->level; }
  bool hasFullOutputs() const;
};

/// Memory layout of the operands; contiguous where it is not given.
struct Layout {
  llvm::SmallVector<mlir::Value> inputs;
  llvm::SmallVector<llvm::SmallVector<int64_t>> strides; ///< of the inputs, then of the outputs
};

/// Makes the nest of a body, or null and the reason. `window` narrows the vector dimension to a piece between
/// cuts.
std::unique_ptr<LoopNest> buildLoopNest(const Body &body, const Layout *layout, std::string &reason,
                                        const IndexRange *window = nullptr);

/// How the nest is cut in work units: extent, grain; `chunk` is the number of vector elements of one unit.
struct WorkUnits {
  int64_t extent = 1, grain = 1;
  int64_t chunk = 0; ///< elements of the vector dimension per unit
  int64_t chunksPerRow = 1;
  bool unitIsElement = false; ///< begin and end are positions of the vector dimension
};
WorkUnits divideWork(const LoopNest &nest, int64_t lanes);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_LOOPNEST_H
