//===- CountedMemory.h - How much a test allocates ------------------------------===//
//
// Counted by this program's operator new, but not under sanitizers, which have an allocator of their own
// (DS_SANITIZED).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_FORMATS_COUNTEDMEMORY_H
#define DS_UNITTESTS_RUNTIME_FORMATS_COUNTEDMEMORY_H

#include <cstddef>

namespace ds::rt {

/// Counts from its construction on.
class PeakMemory {
public:
  PeakMemory();
  /// Bytes at the worst moment, beyond those that were there before.
  size_t bytes() const;

private:
  size_t before;
};

} // namespace ds::rt

#endif // DS_UNITTESTS_RUNTIME_FORMATS_COUNTEDMEMORY_H
