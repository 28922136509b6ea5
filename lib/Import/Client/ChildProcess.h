//===- ChildProcess.h - Runs a program with chosen descriptors and a time limit -===//
#ifndef DS_LIB_IMPORT_CLIENT_CHILDPROCESS_H
#define DS_LIB_IMPORT_CLIENT_CHILDPROCESS_H

#include "ds/Support/Error.h"

#include <string>
#include <utility>
#include <vector>

namespace ds {

/// An open descriptor that is closed at the end of its scope.
class Descriptor {
public:
  explicit Descriptor(int fd = -1) : fd(fd) {}
  Descriptor(Descriptor &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd; }
  explicit operator bool() const { return fd >= 0; }

private:
  int fd;
};

/// How a process ended.
struct ChildResult {
  bool timedOut = false;
  int exitCode = -1; ///< when it exited
  int signal = 0;    ///< when a signal ended it
};

/// Runs `program` and waits for it. `descriptors` are pairs (here, number in the child). The child reads
/// nothing from standard input.
Result<ChildResult> runChild(const std::string &program, const std::vector<std::string> &arguments,
                             const std::vector<std::pair<int, int>> &descriptors, unsigned timeLimitSeconds);

} // namespace ds

#endif // DS_LIB_IMPORT_CLIENT_CHILDPROCESS_H
