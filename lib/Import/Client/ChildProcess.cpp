//===- ChildProcess.cpp - Runs a program with chosen descriptors and a time limit ===//
//
// posix_spawn and not fork: the caller may have threads. The wait is on a pidfd, so that a time limit needs
// neither a signal nor a thread.
//
//===---------------------------------------------------------------------------===//

#include "ChildProcess.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace ds {

/// Waits until the process ends or the time is over; true when it has ended.
static bool waitUntilEnd(pid_t pid, unsigned seconds) {
  using Clock = std::chrono::steady_clock;
  Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  auto deadline = Clock::now() + std::chrono::seconds(seconds);
  while (true) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0)
      return false;
    siginfo_t info = {};
    if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
      return true;
    struct pollfd wait = {process.get(), POLLIN, 0};
    int step = process ? static_cast<int>(std::min<long>(left, 60'000)) : 5; // No pidfd: an old kernel.
    poll(&wait, process ? 1 : 0, step);
  }
}

static ChildResult collect(pid_t pid, bool timedOut) {
  if (timedOut)
    kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  ChildResult result;
  result.timedOut = timedOut;
  if (WIFEXITED(status))
    result.exitCode = WEXITSTATUS(status);
  else if (WIFSIGNALED(status))
    result.signal = WTERMSIG(status);
  return result;
}

namespace {
/// While it lives, programs start with a soft limit of at most 64 MiB on their stacks: threads get stacks of
/// that size, and LibTorch's hang where a terabyte cannot be had.
class ModestStack {
public:
  ModestStack() {
    constexpr rlim_t most = rlim_t(64) << 20;
    if (getrlimit(RLIMIT_STACK, &found) == 0 && found.rlim_cur > most) {
      const struct rlimit modest = {most, found.rlim_max};
      lowered = setrlimit(RLIMIT_STACK, &modest) == 0;
    }
  }
  ~ModestStack() {
    if (lowered)
      setrlimit(RLIMIT_STACK, &found);
  }
  ModestStack(const ModestStack &) = delete;
  ModestStack &operator=(const ModestStack &) = delete;

private:
  struct rlimit found = {};
  bool lowered = false;
};
} // namespace

Result<ChildResult> runChild(const std::string &program, const std::vector<std::string> &arguments,
                             const std::vector<std::pair<int, int>> &descriptors, unsigned timeLimitSeconds) {
  std::vector<char *> argv = {const_cast<char *>(program.c_str())};
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  // Numbers in the child may be in use here, also as sources: copies above them come first. No higher than
  // that, for a limit on descriptors bounds the numbers.
  int above = STDERR_FILENO + 1;
  for (auto [here, there] : descriptors)
    above = std::max(above, there + 1);
  std::vector<Descriptor> copies;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  for (auto [here, there] : descriptors) {
    copies.emplace_back(fcntl(here, F_DUPFD_CLOEXEC, above));
    if (!copies.back()) {
      Error error{ExitCode::Io, "cannot start '" + program + "': " + std::strerror(errno),
                  "raise the number of descriptors (ulimit -n)"};
      posix_spawn_file_actions_destroy(&actions);
      return error;
    }
    posix_spawn_file_actions_adddup2(&actions, copies.back().get(), there);
  }
  pid_t pid = 0;
  std::optional<ModestStack> stack(std::in_place);
  int error = posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environ);
  stack.reset();
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return Error{ExitCode::Io, "cannot start '" + program + "': " + std::strerror(error),
                 "ds-import must stand beside the program that calls it"};
  return collect(pid, !waitUntilEnd(pid, timeLimitSeconds));
}

} // namespace ds
