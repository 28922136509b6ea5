//===- Mapping.h - Memory of mmap, given back at the end of its scope -------------===//
#ifndef DS_SUPPORT_MAPPING_H
#define DS_SUPPORT_MAPPING_H

#include <cstddef>
#include <sys/mman.h>
#include <utility>

namespace ds {

/// An owned mapping, or none. Pointers into it stay valid over a move.
class Mapping {
public:
  Mapping() = default;
  /// What mmap gives at an address of the system's choice. None, with errno, where it gives nothing.
  Mapping(size_t bytes, int protection, int flags, int fd = -1) {
    if (void *given = ::mmap(nullptr, bytes, protection, flags, fd, 0); given != MAP_FAILED)
      first = static_cast<std::byte *>(given), count = bytes;
  }
  Mapping(Mapping &&other) noexcept { *this = std::move(other); }
  Mapping &operator=(Mapping &&other) noexcept {
    std::swap(first, other.first);
    std::swap(count, other.count);
    return *this;
  }
  ~Mapping() {
    if (first)
      ::munmap(first, count);
  }

  std::byte *data() const { return first; }
  size_t size() const { return count; }
  explicit operator bool() const { return first; }

private:
  std::byte *first = nullptr;
  size_t count = 0;
};

} // namespace ds

#endif // DS_SUPPORT_MAPPING_H
