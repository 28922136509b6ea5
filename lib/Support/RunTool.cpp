//===- RunTool.cpp - What every tool does before and around its work -----------------===//
//
// The stack of the main thread is what `ulimit -s` was, and so is that of every thread that asks for none of
// its own. Both are set here: the limit is raised where that is allowed, and else the work is done by a
// thread with a stack of its own. The main thread then has all signals blocked, so that they reach the one
// that works.
//
// libgomp and some libraries below LLVM end the process with exit code 1 when they get no thread or no
// memory. No tool of ours has that code: an exit handler turns it into 9 after what they have said.
//
//===---------------------------------------------------------------------------===//
#include "ds/Support/RunTool.h"

#include "ds/Support/Messages.h"
#include "ds/Support/TemporaryFile.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <new>
#include <pthread.h>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>

namespace ds {
namespace {

constexpr uint64_t kStackBytes = uint64_t(8) << 20;

const char *toolName = "ds";

/// A message in a place that needs no memory.
struct Text {
  char bytes[512] = "";
};

Text memoryMessage() {
  Text text;
  struct Limit {
    decltype(RLIMIT_AS) number; // an enumeration in glibc
    const char *what;
  };
  for (const Limit &limit : {Limit{RLIMIT_AS, "the address space (ulimit -v)"},
                             Limit{RLIMIT_DATA, "the data segment (ulimit -d)"}}) {
    struct rlimit found = {};
    if (::getrlimit(limit.number, &found) != 0 || found.rlim_cur == RLIM_INFINITY)
      continue;
    std::snprintf(text.bytes, sizeof text.bytes, "out of memory: %s is limited to %llu bytes", limit.what,
                  static_cast<unsigned long long>(found.rlim_cur));
    return text;
  }
  std::snprintf(text.bytes, sizeof text.bytes, "out of memory: the system has none left for this process");
  return text;
}

constexpr const char *kMemoryHint = "raise the limit, end other processes, or use a smaller model or batch";

Text threadMessage(int errorNumber) {
  Text text;
  struct rlimit found = {};
  const bool isLimited = ::getrlimit(RLIMIT_NPROC, &found) == 0 && found.rlim_cur != RLIM_INFINITY;
  const auto limit = static_cast<unsigned long long>(found.rlim_cur);
  char tail[96] = "";
  if (isLimited)
    std::snprintf(tail, sizeof tail, "; this user may have %llu threads and processes (ulimit -u)", limit);
  std::snprintf(text.bytes, sizeof text.bytes, "cannot start a thread: %s%s", std::strerror(errorNumber),
                tail);
  return text;
}

constexpr const char *kThreadHint =
    "raise ulimit -u, -v or the control group's pids.max, or ask for fewer threads";

/// Ends the process as the exception in flight deserves.
[[noreturn]] void endWithException() noexcept {
  try {
    if (std::current_exception())
      throw;
    endWith(ExitCode::Internal, "the program ended itself", "please report this");
  } catch (const std::bad_alloc &) {
    endOutOfMemory();
  } catch (const std::system_error &error) {
    const int number = error.code().value();
    if (number == ENOMEM)
      endOutOfMemory();
    if (number == EAGAIN)
      endWithoutThread(number);
    const bool isOfSystem = error.code().category() == std::generic_category() ||
                            error.code().category() == std::system_category();
    endWith(isOfSystem ? ExitCode::Io : ExitCode::Internal, error.what(), "docs/limits.md lists limits");
  } catch (const std::exception &error) {
    endWith(ExitCode::Internal, error.what(), "please report this");
  } catch (...) {
    endWith(ExitCode::Internal, "an exception of an unknown type", "please report this");
  }
}

/// What a library has ended by itself.
void onExit(int status, void *) {
  if (status != EXIT_FAILURE)
    return;
  endWith(ExitCode::Device, "a library has ended the process, for the reason above",
          "raise ulimit -u and -v, or ask for fewer threads; docs/limits.md lists limits");
}

/// A file that is opened later must not become standard output. What stands in for a closed one refuses to
/// be read or written.
void openStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0)
      (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY); // the lowest free one is fd
}

/// Whether the main thread has the stack it needs, once all was tried.
bool raiseStackLimit() {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kStackBytes)
    return true;
  limit.rlim_cur = std::min<rlim_t>(kStackBytes, limit.rlim_max);
  ::setrlimit(RLIMIT_STACK, &limit);
  return limit.rlim_cur >= kStackBytes;
}

/// Stacks of threads that ask for no size: neither tiny nor, after `ulimit -s 16777216`, beyond all memory.
void setThreadStacks() {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  if (::pthread_attr_setstacksize(&attributes, kStackBytes) == 0)
    ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
}

/// The work, wherever it is done.
struct Work {
  int argc;
  char **argv;
  int (*body)(int, char **);
  int code = 0;
  sigset_t signals; ///< blocked in the thread that works
};

void doWork(Work &work) {
  try {
    work.code = work.body(work.argc, work.argv);
  } catch (...) {
    endWithException();
  }
}

void *workInThread(void *argument) {
  Work &work = *static_cast<Work *>(argument);
  ::pthread_sigmask(SIG_SETMASK, &work.signals, nullptr);
  doWork(work);
  return nullptr;
}

void workOnOwnStack(Work &work) {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &work.signals);
  pthread_t thread;
  if (const int error = ::pthread_create(&thread, nullptr, workInThread, &work))
    endWithoutThread(error);
  ::pthread_join(thread, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &work.signals, nullptr);
}

} // namespace

void endWith(ExitCode code, const char *message, const char *hint) noexcept {
  removeTemporaryFiles();
  char line[1024];
  const int length = std::snprintf(line, sizeof line, "%s: error: %s\n  hint: %s\n", toolName, message, hint);
  if (length > 0 &&
      ::write(STDERR_FILENO, line, std::min<size_t>(static_cast<size_t>(length), sizeof line - 1)) < 0) {
    // nobody listens
  }
  ::_exit(static_cast<int>(code));
}

void endOutOfMemory() noexcept { endWith(ExitCode::DoesNotFit, memoryMessage().bytes, kMemoryHint); }

void endWithoutThread(int errorNumber) noexcept {
  endWith(ExitCode::Device, threadMessage(errorNumber).bytes, kThreadHint);
}

Error outOfMemory() { return {ExitCode::DoesNotFit, memoryMessage().bytes, kMemoryHint}; }

Error noThread(int errorNumber) { return {ExitCode::Device, threadMessage(errorNumber).bytes, kThreadHint}; }

int runTool(const char *name, int argc, char **argv, int (*body)(int argc, char **argv)) {
  toolName = name;
  rememberArguments(argc, argv);
  openStandardStreams();
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(endWithException);
  ::on_exit(onExit, nullptr);
  const bool hasStack = raiseStackLimit();
  setThreadStacks();
  Work work{argc, argv, body, 0, {}};
  if (hasStack)
    doWork(work);
  else
    workOnOwnStack(work);
  return work.code;
}

} // namespace ds
