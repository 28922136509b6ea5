//===- Sandbox.cpp - Takes away what an import does not need --------------------===//
//
// What ends the process must be told from a signal handler, where nothing may be allocated: texts are made
// beforehand, and put together in buffers of fixed size.
//
//===---------------------------------------------------------------------------===//

#include "Sandbox.h"
#include "SystemCalls.h"

#include <seccomp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define DS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#define DS_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#endif
#ifndef DS_ADDRESS_SANITIZER
#define DS_ADDRESS_SANITIZER 0
#endif

namespace ds {

namespace {

/// Text of bounded length; what does not fit is left out.
struct FixedText {
  std::array<char, 2048> data{};
  size_t size = 0;

  void add(const char *text) {
    while (*text && size < data.size() - 1)
      data[size++] = *text++;
  }
  void add(size_t number) {
    char digits[24];
    char *next = digits + sizeof digits - 1;
    *next = 0;
    do
      *--next = static_cast<char>('0' + number % 10);
    while ((number /= 10) > 0);
    add(next);
  }
};

/// What is said when a limit is met.
struct LimitText {
  FixedText message, hint;

  void set(const Error &error) {
    message = hint = FixedText();
    message.add(error.message.c_str());
    hint.add(error.hint.c_str());
  }
};

/// All that signal handlers reach.
struct HandlerState {
  int reportFd = -1;
  int pathPipe[2] = {-1, -1}; ///< by which a path is read that may not be in memory
  LimitText memory, time, fileSize;
};

} // namespace

static HandlerState state;

/// Writes the report as Report.cpp would, in one piece, and ends the process with exit code 3.
[[noreturn]] static void endWith(const char *message, const char *hint) {
  FixedText text;
  bool hasReport = state.reportFd >= 0;
  auto record = [&](const char *kind, const char *value) {
    text.add(kind);
    text.add(std::strlen(value));
    text.add("\n");
    text.add(value);
  };
  if (hasReport) {
    record("code ", "3");
    record("hint ", hint);
    record("error ", message);
  } else {
    text.add("ds-import: ");
    text.add(message);
    text.add("\n  hint: ");
    text.add(hint);
    text.add("\n");
  }
  ssize_t ignored = write(hasReport ? state.reportFd : STDERR_FILENO, text.data.data(), text.size);
  (void)ignored;
  _exit(3);
}

//===----------------------------------------------------------------------===//
// Forbidden calls
//===----------------------------------------------------------------------===//

/// Copies the text at `address`, which the archive chose: the kernel looks whether it is in memory, page by
/// page. False where it is not.
static bool copyPath(uintptr_t address, FixedText &path) {
  constexpr size_t page = 4096, most = 512;
  path.size = 0;
  bool isThere = false, isOver = false;
  while (!isOver && path.size < most) {
    size_t length = std::min(most - path.size, page - address % page);
    ssize_t written = write(state.pathPipe[1], reinterpret_cast<const void *>(address), length);
    if (written <= 0)
      break;
    char *copy = path.data.data() + path.size;
    ssize_t got = read(state.pathPipe[0], copy, static_cast<size_t>(written));
    size_t text = got > 0 ? strnlen(copy, static_cast<size_t>(got)) : 0;
    isThere = true;
    isOver = got <= 0 || text < static_cast<size_t>(got);
    path.size += text;
    address += static_cast<size_t>(written);
  }
  path.data[path.size] = 0;
  return isThere;
}

#if defined(__x86_64__)
/// True for where libraries look, late and on some machines only, for the processor's caches and nodes, and
/// for libraries of tools that watch them. They do without where nothing is found.
static bool isProbe(const char *name, const FixedText &path) {
  bool isLook = false;
  for (const char *call : {"openat", "open", "newfstatat", "stat"})
    isLook |= std::strcmp(name, call) == 0;
  for (const char *folder : {"/proc/", "/sys/", "/etc/ld.so.cache", "/lib", "/usr/lib"})
    if (isLook && std::strncmp(path.data.data(), folder, std::strlen(folder)) == 0)
      return true;
  return false;
}

/// Answers what a library may ask without harm, and the filter cannot tell from what is harmful. `path` is
/// the call's path where it has one.
static bool answer(const char *name, ucontext_t &context, FixedText &path) {
  auto &registers = context.uc_mcontext.gregs;
  for (const char *first : {"open", "creat", "execve", "unlink", "mkdir", "stat", "access"})
    if (std::strcmp(name, first) == 0)
      copyPath(static_cast<uintptr_t>(registers[REG_RDI]), path);
  bool hasPath = false;
  for (const char *second : {"openat", "openat2", "unlinkat", "mkdirat", "newfstatat"})
    if (std::strcmp(name, second) == 0)
      hasPath = copyPath(static_cast<uintptr_t>(registers[REG_RSI]), path);
  // fstat() of the C library: of an open file, by an empty path.
  if (std::strcmp(name, "newfstatat") == 0 && hasPath && path.size == 0 &&
      (registers[REG_R10] & AT_EMPTY_PATH) != 0) {
    long result = syscall(SYS_fstat, registers[REG_RDI], registers[REG_RDX]);
    registers[REG_RAX] = result == 0 ? 0 : -errno;
    return true;
  }
  if (!isProbe(name, path))
    return false;
  registers[REG_RAX] = -ENOENT;
  return true;
}
#else
static bool answer(const char *, ucontext_t &, FixedText &) { return false; }
#endif

/// Tells what the call is for, its name and its path; a probe is answered instead.
static void onForbiddenCall(int, siginfo_t *info, void *context) {
  constexpr int x32Bit = 0x40000000;
  bool isForeign = info->si_arch != seccomp_arch_native() || (info->si_syscall & x32Bit) != 0;
  FixedText path, message;
  message.add("the archive's code tried to ");
  if (isForeign) {
    message.add("make a system call by another architecture's number, ");
    message.add(static_cast<size_t>(info->si_syscall & ~x32Bit));
  } else {
    const char *name = system_calls::nameOf(info->si_syscall);
    int error = errno;
    if (answer(name, *static_cast<ucontext_t *>(context), path)) {
      errno = error;
      return;
    }
    const char *purpose = system_calls::purposeOf(name);
    message.add(purpose ? purpose : "do what an import does not need");
    if (path.size > 0) {
      message.add(", '");
      message.add(path.data.data());
      message.add("'");
    }
    message.add(" (system call ");
    message.add(name);
    message.add(" ");
    message.add(static_cast<size_t>(info->si_syscall));
    message.add(")");
  }
  endWith(message.data.data(),
          "nothing was opened or changed; a model does not need this: do not trust the archive");
}

static void onTimeOver(int) { endWith(state.time.message.data.data(), state.time.hint.data.data()); }
static void onFileTooLarge(int) {
  endWith(state.fileSize.message.data.data(), state.fileSize.hint.data.data());
}
static void onMemoryOver() { endWith(state.memory.message.data.data(), state.memory.hint.data.data()); }

/// True when all that must be known in handlers is there.
static bool installHandlers(const ImportLimits &limits, int reportFd) {
  state.reportFd = reportFd;
  state.memory.set(memoryError(limits));
  state.time.set(timeError(limits));
  state.fileSize.set(fileSizeError(limits));
  system_calls::resolveNames();
  (void)seccomp_arch_native(); // It remembers its answer.
  struct sigaction call = {}, time = {}, file = {};
  call.sa_sigaction = onForbiddenCall;
  call.sa_flags = SA_SIGINFO;
  time.sa_handler = onTimeOver;
  file.sa_handler = onFileTooLarge;
  std::set_new_handler(onMemoryOver);
  return pipe2(state.pathPipe, O_CLOEXEC | O_NONBLOCK) == 0 && sigaction(SIGSYS, &call, nullptr) == 0 &&
         sigaction(SIGXCPU, &time, nullptr) == 0 && sigaction(SIGXFSZ, &file, nullptr) == 0;
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

/// Lowers a limit to `value`, the hard one to `grace` above it; one that is lower stays.
static bool limit(__rlimit_resource resource, uint64_t value, uint64_t grace = 0) {
  struct rlimit current = {};
  if (getrlimit(resource, &current) != 0)
    return false;
  struct rlimit wanted = {std::min<rlim_t>(value, current.rlim_cur),
                          std::min<rlim_t>(value + grace, current.rlim_max)};
  return setrlimit(resource, &wanted) == 0;
}

namespace {
/// What is mapped, and the part of it that can be written to.
struct Mapped {
  uint64_t all = 0, writable = 0;
};
} // namespace

static Mapped mappedBytes() {
  unsigned long all = 0, resident, shared, text, unused, data = 0;
  if (FILE *file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%lu %lu %lu %lu %lu %lu", &all, &resident, &shared, &text, &unused, &data) != 6)
      all = data = 0;
    std::fclose(file);
  }
  auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return {all * page, data * page};
}

/// Bounds what is taken from now on: LibTorch's own memory differs from machine to machine. Memory that can
/// be written to is what counts; all that is mapped is bounded as well, loosely, where a kernel counts the
/// former wrongly.
static bool limitMemory(uint64_t bytes) {
#if DS_ADDRESS_SANITIZER
  return true; // It reserves terabytes.
#else
  constexpr uint64_t reservations = uint64_t(4) << 30, stack = uint64_t(64) << 20;
  Mapped mapped = mappedBytes();
  return limit(RLIMIT_DATA, mapped.writable + bytes) && limit(RLIMIT_AS, mapped.all + bytes + reservations) &&
         limit(RLIMIT_STACK, stack);
#endif
}

std::string enterSandbox(const ImportLimits &limits, int reportFd) {
  std::string missing;
  auto need = [&](bool done, const char *what) {
    if (!done)
      missing += (missing.empty() ? "" : ", ") + std::string(what);
  };
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  bool alone = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  bool handled = installHandlers(limits, reportFd);
  need(limitMemory(limits.memoryBytes), "the memory limit");
  need(limit(RLIMIT_FSIZE, limits.fileBytes), "the file size limit");
  need(limit(RLIMIT_CPU, limits.processorSeconds, 2), "the time limit");
  need(limit(RLIMIT_CORE, 0), "the core dump limit");
  need(alone && handled && system_calls::installFilter(), "the system call filter (seccomp)");
  return missing;
}

void closeOthers(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned next = STDERR_FILENO + 1;
  for (int fd : kept)
    if (fd >= static_cast<int>(next)) {
      if (static_cast<unsigned>(fd) > next)
        close_range(next, static_cast<unsigned>(fd) - 1, 0);
      next = static_cast<unsigned>(fd) + 1;
    }
  close_range(next, ~0U, 0);
}

} // namespace ds
