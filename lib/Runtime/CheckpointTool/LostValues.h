//===- LostValues.h - Numbers of a tensor that are none -------------------------------===//
#ifndef DS_LIB_RUNTIME_CHECKPOINTTOOL_LOSTVALUES_H
#define DS_LIB_RUNTIME_CHECKPOINTTOOL_LOSTVALUES_H

#include "ds/Runtime/Checkpoint/Manifest.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ds::rt {

/// What is not finite among a tensor's elements, which come piece by piece in any order.
struct LostValues {
  uint64_t nan = 0, infinite = 0;
  uint64_t first = UINT64_MAX; ///< the lowest element that counts in either

  bool mayBeInfinite = false; ///< then NaN alone counts: a mask is infinite as it should be

  /// Looks at `bytes`, the elements of `dtype` from `begin` on. Types other than F64, F32, F16 and BF16 have
  /// none.
  void look(FileDType dtype, std::span<const std::byte> bytes, uint64_t begin);

  bool any() const { return nan + infinite > 0; }
  /// "'w': 3 of 768 elements are NaN, 1 is infinite, the first at [0, 5]".
  std::string spell(const CheckpointTensor &tensor) const;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CHECKPOINTTOOL_LOSTVALUES_H
