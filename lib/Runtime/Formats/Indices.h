//===- Indices.h - Where an element of a tensor lies --------------------------------===//
#ifndef DS_LIB_RUNTIME_FORMATS_INDICES_H
#define DS_LIB_RUNTIME_FORMATS_INDICES_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ds::rt {

/// The indices of an element of row-major order, slowest first. Requires that `shape` has it.
inline std::vector<int64_t> indicesOf(uint64_t element, std::span<const int64_t> shape) {
  std::vector<int64_t> indices(shape.size());
  for (size_t d = shape.size(); d-- > 0; element /= static_cast<uint64_t>(shape[d]))
    indices[d] = static_cast<int64_t>(element % static_cast<uint64_t>(shape[d]));
  return indices;
}

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FORMATS_INDICES_H
