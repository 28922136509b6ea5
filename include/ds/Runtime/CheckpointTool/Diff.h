//===- Diff.h - In what two checkpoints differ -----------------------------------------===//
//
// Tensors are compared as wholes, by name or alias, so that it does not matter which meshes have written
// them. Equal means equal to the bit. Both are read in pieces of a few MiB, side by side.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINTTOOL_DIFF_H
#define DS_RUNTIME_CHECKPOINTTOOL_DIFF_H

#include "ds/Runtime/Checkpoint/Checkpoint.h"

#include <string>
#include <vector>

namespace ds::rt {

enum class Difference : uint8_t { None, OnlyInA, OnlyInB, Shape, Type, Values };

struct TensorDifference {
  std::string name; ///< in A, or in B if only there
  Difference kind = Difference::None;
  std::vector<int64_t> shapeA, shapeB;
  FileDType dtypeA = FileDType::F32, dtypeB = FileDType::F32;

  // Of values of equal shape and type.
  uint64_t elements = 0, differing = 0; ///< differing: in any bit
  uint64_t first = 0;                   ///< of those that differ, in row-major order
  std::string firstA, firstB;           ///< its values
  double normA = 0, normB = 0;          ///< roots of sums of squares
  double distance = 0;                  ///< that of the differences
  double largest = 0;                   ///< difference
  uint64_t undefined = 0;               ///< differences that are no finite numbers; not in the three above
};

/// ||a - b|| / ||a||, or infinity where a is 0 and b is not.
double relativeDistance(const TensorDifference &difference);

/// Every tensor of both, in A's order, then those that only B has. Corrupt or Io: one cannot be read.
Result<std::vector<TensorDifference>> diffTensors(const Checkpoint &a, const Checkpoint &b);

/// How many of them differ.
size_t countDiffering(const std::vector<TensorDifference> &differences);

/// What differs, and a summary.
std::string spellDifferences(const Checkpoint &a, const Checkpoint &b,
                             const std::vector<TensorDifference> &differences, bool json);

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINTTOOL_DIFF_H
