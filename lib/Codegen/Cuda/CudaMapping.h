//===- CudaMapping.h - How a kernel's work is shared out to threads ------------===//
//
// A thread accesses `lanes` consecutive elements at once, 16 bytes where operands allow it; neighbouring
// threads access neighbouring vectors. lanes divides the vector dimension and every cut of it, so no vector
// is ever partial.
//
//   Pointwise  one vector per thread and turn.
//   Row        `rowThreads` threads share a row: a part of a warp, a warp, or the whole block. Rows of one
//              dimension are held in registers, `copies` vectors a thread, so that memory is read once
//              however many reductions there are; longer ones are walked once per reduction.
//   Column     a tile of columnThreads vectors side by side, and rowThreads threads down each column. A block
//              may have more threads, which do nothing but wait.
//
// Every order of additions follows from shapes alone, so that runs agree bit by bit whatever the grid.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CODEGEN_CUDA_CUDAMAPPING_H
#define DS_LIB_CODEGEN_CUDA_CUDAMAPPING_H

#include "LoopNest.h"

namespace mlir::ds::codegen {

struct CudaMapping {
  int64_t lanes = 1;         ///< elements of one access
  int64_t rowVectors = 1;    ///< Row, Column: vectors of a row or, in Column, of a tile's whole width
  int64_t rowThreads = 1;    ///< Row: threads of one row; Column: threads of one column
  int64_t copies = 0;        ///< Row: vectors of a thread held in registers; 0: the row is walked
  int64_t columnThreads = 1; ///< Column: vectors of a tile
  int64_t rowsAtOnce = 1;    ///< Column: rows that a thread has under way
  int64_t blockThreads = 1;
  int64_t extent = 1; ///< units of work; 0: elements, known at launch
  int64_t unitsPerBlock = 1;

  int64_t rowsPerBlock() const { return blockThreads / rowThreads; }
};

/// Requires alignments that do not depend on the mapping: an operand that lacks one costs narrower accesses.
CudaMapping mapToCuda(const LoopNest &nest);

/// The mapping of `sums`, which adds up the parts that the launch of `parts` stores, for the blocks of that
/// launch, whose mapping gets as many threads as both need: tile k of a part covers the columns of tile k of
/// `sums`. Additions have the order that a launch of its own gives them. None where that cannot be.
std::optional<CudaMapping> mapParts(const LoopNest &parts, CudaMapping &mapping, const LoopNest &sums);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_CUDA_CUDAMAPPING_H
