//===- NestPosition.h - Where in a nest something is written ---------------------===//
//
// What nodes, indices and addresses have in common while a kernel is written: the values of the loop
// dimensions here, the lanes of a vector, and numbers for the memo.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CODEGEN_NESTPOSITION_H
#define DS_LIB_CODEGEN_NESTPOSITION_H

#include "LoopNest.h"
#include "ScopedBuilder.h"

namespace mlir::ds::codegen {

/// Variants of a key in the memo beside its scalar and a node's copies: a vector of all lanes or a pointer
/// that nothing else tells apart, an index with i32 lanes, a pointer into a row. Copies and numbers of
/// buffers are added.
inline constexpr unsigned kSplat = 1u << 16, kNarrowLanes = 2 * kSplat, kRowPointer = 4 * kSplat;

/// The current loop position of the nest whose nodes are asked for.
class NestPosition {
public:
  explicit NestPosition(const ScopedBuilder &scoped) : s(scoped) {}

  /// Selects the nest; `ops` writes go to the scopes as they are.
  void setNest(const LoopNest *newNest) { current = newNest; }
  const LoopNest &nest() const { return *current; }

  /// Says that loop dimension `dim` has this value in the innermost scope and those inside it. For the vector
  /// dimension it is the first element of copy 0.
  void setDim(unsigned dim, mlir::Value value) { dims[dim] = {value, s.depth()}; }
  mlir::Value dim(unsigned dim) const { return dims.lookup(dim).value; }
  /// Lanes of `copy` that exist; null: all.
  void setMask(unsigned copy, mlir::Value mask) { masks[copy] = mask; }
  mlir::Value maskOf(unsigned copy) const { return masks.lookup(copy); }
  /// Says where `copy` starts in the vector dimension, where that is not behind the copy before it.
  void setCopyStart(unsigned copy, mlir::Value start) { copyStarts[copy] = start; }
  mlir::Value copyStart(unsigned copy) const { return copyStarts.lookup(copy); }

  /// Scope in which the values of reductions are known.
  void setReductionScope(unsigned scope) { reductionScope = scope; }
  /// The outermost scope that knows dimensions, and the reductions before `level`.
  unsigned scopeOf(uint32_t dependsOn, unsigned level) const {
    unsigned scope = level > 0 ? reductionScope : 0;
    for (const auto &[dim, value] : dims)
      if ((dependsOn >> dim) & 1)
        scope = std::max(scope, value.scope);
    return scope;
  }

  /// Whether what depends on these dimensions differs from lane to lane.
  bool varies(uint32_t dependsOn) const {
    return current->vectorDim && ((dependsOn >> *current->vectorDim) & 1);
  }

private:
  struct DimValue {
    mlir::Value value;
    unsigned scope = 0;
  };

  const ScopedBuilder &s;
  const LoopNest *current = nullptr;
  llvm::DenseMap<unsigned, DimValue> dims;
  llvm::DenseMap<unsigned, mlir::Value> masks, copyStarts;
  unsigned reductionScope = 0;
};

/// Vectors of `count` lanes.
class Lanes {
public:
  Lanes(ScopedBuilder &scoped, int64_t count) : count(count), s(scoped), b(scoped.b) {}

  const int64_t count;

  mlir::Type vectorOf(mlir::Type element) const;
  /// `step` times the number of each lane, as a constant.
  mlir::Value numbers(mlir::Type element, int64_t step);
  mlir::Value splat(mlir::Value scalar);
  mlir::Value all();
  /// Mask of the lanes of `copy` whose position base + copy * count + lane is below `end`.
  mlir::Value below(mlir::Value base, unsigned copy, mlir::Value end);

private:
  ScopedBuilder &s;
  mlir::OpBuilder &b;
};

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_NESTPOSITION_H
