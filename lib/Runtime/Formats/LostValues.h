//===- LostValues.h - Numbers of a tensor that are none -------------------------------===//
//
// What was trained elsewhere may have lost its numbers there. Whoever reads tensors of a file looks at them
// piece by piece, and says in one line for each tensor what is not finite.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_FORMATS_LOSTVALUES_H
#define DS_LIB_RUNTIME_FORMATS_LOSTVALUES_H

#include "ds/Runtime/Formats/FileDType.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ds::rt {

/// What is not finite among a tensor's elements, which come piece by piece in any order.
struct LostValues {
  uint64_t nan = 0, infinite = 0;
  uint64_t first = UINT64_MAX; ///< the lowest element that counts in either

  bool mayBeInfinite = false; ///< then NaN alone counts: a mask is infinite as it should be

  /// Looks at `bytes`, the elements of `dtype` from `begin` on. Types other than F64, F32, F16 and BF16 have
  /// none.
  void look(FileDType dtype, std::span<const std::byte> bytes, uint64_t begin);

  /// Adds what was found in other elements.
  void add(const LostValues &other);

  bool any() const { return nan + infinite > 0; }
  /// "'w': 3 of 768 elements are NaN, 1 is infinite, the first at [0, 5]".
  std::string spell(std::string_view name, std::span<const int64_t> shape) const;
};

/// A line for each tensor that has lost a number, at most twenty, and one that counts the rest.
class LostLines {
public:
  void add(const LostValues &values, std::string_view name, std::span<const int64_t> shape);
  std::vector<std::string> all() const;

private:
  std::vector<std::string> lines;
  size_t untold = 0; ///< tensors without a line
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FORMATS_LOSTVALUES_H
