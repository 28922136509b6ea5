//===- Shape.h - How many elements a shape has ---------------------------------------===//
#ifndef DS_LIB_RUNTIME_PROGRAM_SHAPE_H
#define DS_LIB_RUNTIME_PROGRAM_SHAPE_H

#include <cstdint>
#include <span>

namespace ds::rt {

/// Requires sizes whose product is known to fit, as those of programs, checkpoints and open files are;
/// others are for checkedProduct (Formats/Text.h).
inline uint64_t elementsOf(std::span<const int64_t> shape) {
  uint64_t elements = 1;
  for (const int64_t size : shape)
    elements *= static_cast<uint64_t>(size);
  return elements;
}

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROGRAM_SHAPE_H
