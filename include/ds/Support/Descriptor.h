//===- Descriptor.h - An open file, closed at the end of its scope ----------------===//
#ifndef DS_SUPPORT_DESCRIPTOR_H
#define DS_SUPPORT_DESCRIPTOR_H

#include <cerrno>
#include <unistd.h>
#include <utility>

namespace ds {

/// An owned descriptor of a file, a directory or a socket, or none. errno stays as it is when one is closed.
class Descriptor {
public:
  explicit Descriptor(int fd = -1) : fd(fd) {}
  Descriptor(Descriptor &&other) noexcept : fd(other.release()) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor() {
    if (const int error = errno; fd >= 0) {
      ::close(fd);
      errno = error;
    }
  }

  int get() const { return fd; }
  explicit operator bool() const { return fd >= 0; }
  /// Gives it away.
  int release() { return std::exchange(fd, -1); }

private:
  int fd;
};

} // namespace ds

#endif // DS_SUPPORT_DESCRIPTOR_H
