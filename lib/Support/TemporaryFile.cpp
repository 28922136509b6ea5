//===- TemporaryFile.cpp - A file without a name until it is whole ------------------===//
//
// linkat names a file without replacing another, and rename replaces one but needs a name to start from. A
// file that takes the place of an old one therefore has a name of its own for the time between two calls.
//
//===---------------------------------------------------------------------------===//
#include "ds/Support/TemporaryFile.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace ds {
namespace {

/// Names to remove on a signal. A slot is taken and given back without a lock: a handler may come at any
/// time. More files than slots are merely not removed.
struct Slot {
  enum State : int { Free, Filling, Set };
  std::atomic<int> state{Free};
  char path[PATH_MAX];
};
constexpr int kSlots = 16;
Slot slots[kSlots];
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may use nothing else");

/// -1 where none is free or the name is too long.
int takeSlot(const std::string &path) {
  for (int index = 0; index < kSlots && path.size() < PATH_MAX; ++index) {
    int expected = Slot::Free;
    if (!slots[index].state.compare_exchange_strong(expected, Slot::Filling))
      continue;
    std::memcpy(slots[index].path, path.c_str(), path.size() + 1);
    slots[index].state = Slot::Set;
    return index;
  }
  return -1;
}

void giveBack(int &slot) {
  if (slot >= 0)
    slots[slot].state = Slot::Free;
  slot = -1;
}

/// ".<name>.<16 hex digits>.tmp" beside `target`; the name is shortened so that the whole fits NAME_MAX.
std::string temporaryName(const std::string &target) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != ssize_t(sizeof(random)))
    random = uint64_t(getpid()) << 32 ^ uintptr_t(&random); // O_EXCL and the retries do the rest
  char suffix[24];
  snprintf(suffix, sizeof(suffix), ".%016llx.tmp", static_cast<unsigned long long>(random));
  const std::string name = target.substr(target.rfind('/') + 1);
  return directoryOf(target) + "/." + name.substr(0, 200) + suffix;
}

/// Tries names until `make` succeeds with one that was free; 0 or its errno.
template <class Make>
int makeNamed(const std::string &target, std::string &name, int &slot, Make make) {
  for (int attempt = 0; attempt < 8; ++attempt) {
    name = temporaryName(target);
    slot = takeSlot(name); // first: a signal may come as soon as the name is there
    if (make(name))
      return 0;
    const int error = errno;
    giveBack(slot);
    name.clear();
    if (error != EEXIST)
      return error;
  }
  return EEXIST;
}

extern "C" void onEndingSignal(int signal) {
  removeTemporaryFiles();
  ::raise(signal); // SA_RESETHAND: the default action, once this handler has returned
}

} // namespace

std::string directoryOf(const std::string &path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

TemporaryFile &TemporaryFile::operator=(TemporaryFile &&other) noexcept {
  std::swap(descriptor, other.descriptor);
  std::swap(name, other.name);
  std::swap(slot, other.slot);
  return *this;
}

int TemporaryFile::open(const std::string &target, bool allowNameless) {
  drop();
  // Without /proc it could not be named later.
  if (allowNameless && ::access("/proc/self/fd", X_OK) == 0)
    descriptor = ::open(directoryOf(target).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (descriptor >= 0)
    return 0;
  return makeNamed(target, name, slot, [&](const std::string &free) {
    descriptor = ::open(free.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return descriptor >= 0;
  });
}

int TemporaryFile::keep(const std::string &target) {
  if (name.empty()) {
    const std::string self = "/proc/self/fd/" + std::to_string(descriptor);
    auto link = [&](const std::string &path) {
      return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
    };
    if (link(target))
      return 0;
    if (errno != EEXIST)
      return errno;
    if (const int error = makeNamed(target, name, slot, link))
      return error;
  }
  if (::rename(name.c_str(), target.c_str()) != 0)
    return errno;
  giveBack(slot);
  name.clear();
  return 0;
}

void TemporaryFile::drop() {
  if (descriptor >= 0)
    ::close(std::exchange(descriptor, -1));
  if (!name.empty())
    ::unlink(std::exchange(name, std::string()).c_str());
  giveBack(slot);
}

void removeTemporaryFiles() noexcept {
  const int before = errno;
  for (Slot &slot : slots)
    if (slot.state == Slot::Set)
      ::unlink(slot.path);
  errno = before;
}

void removeTemporaryFilesOnSignals() {
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
    struct sigaction action = {}, previous = {};
    action.sa_handler = onEndingSignal;
    action.sa_flags = int(SA_RESETHAND | SA_RESTART);
    if (::sigaction(signal, nullptr, &previous) == 0 && previous.sa_handler == SIG_DFL)
      ::sigaction(signal, &action, nullptr);
  }
}

} // namespace ds
