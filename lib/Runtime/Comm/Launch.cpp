//===- Launch.cpp - Starts the ranks of one machine ------------------------------===//
//
// One loop on three kinds of descriptors: the signals of this process, the ends of the ranks (pidfd), and the
// output of all but rank 0. Each rank is a process group of its own, so that a Ctrl-C of the terminal comes
// once, from here, and dies with this process, however that ends.
//
//===---------------------------------------------------------------------------===//
#include "Launch.h"

#include "Card.h"
#include "Rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ds::rt {

std::vector<std::vector<int>> shareProcessors(const std::vector<int> &processors, uint32_t ranks) {
  std::vector<std::vector<int>> shares(ranks);
  const size_t count = processors.size();
  for (uint32_t rank = 0; rank < ranks && count > 0; ++rank) {
    if (count < ranks) {
      shares[rank] = {processors[rank % count]};
      continue;
    }
    const size_t base = count / ranks, extra = count % ranks;
    const size_t first = rank * base + std::min<size_t>(rank, extra);
    shares[rank].assign(processors.begin() + static_cast<ptrdiff_t>(first),
                        processors.begin() + static_cast<ptrdiff_t>(first + base + (rank < extra ? 1 : 0)));
  }
  return shares;
}

int chooseExitCode(const std::vector<RankEnd> &ends) {
  for (const RankEnd &end : ends)
    if (end.signal == 0 && end.code != 0 && end.code != static_cast<int>(ExitCode::Peer))
      return end.code;
  for (const RankEnd &end : ends)
    if (end.signal != 0 || end.code != 0)
      return static_cast<int>(ExitCode::Peer);
  return 0;
}

namespace {

using std::chrono::milliseconds;

/// Once a rank has ended: how long another may be stopped, and how long beyond the time-out any may go on.
constexpr milliseconds kStoppedPatience(1000), kLastPatience(2000);

/// Whether a signal or a debugger has stopped the process.
bool isStopped(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  const size_t name = text.rfind(')'); // what stands before may hold anything
  return name != std::string::npos && name + 2 < text.size() &&
         (text[name + 2] == 'T' || text[name + 2] == 't');
}

/// The processors that this process may use.
std::vector<int> ownProcessors() {
  cpu_set_t set;
  std::vector<int> processors;
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (int processor = 0; processor < CPU_SETSIZE; ++processor)
      if (CPU_ISSET(processor, &set))
        processors.push_back(processor);
  return processors;
}

/// A directory that only this user can look into; it is removed with its content.
class PrivateDirectory {
public:
  PrivateDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ds-ranks-XXXXXX").string();
    if (::mkdtemp(pattern.data()))
      path = pattern;
  }
  ~PrivateDirectory() {
    std::error_code ignored;
    if (!path.empty())
      std::filesystem::remove_all(path, ignored);
  }
  std::string path; ///< empty: could not be made
};

struct Child {
  pid_t pid = -1;
  Socket process; ///< pidfd
  Socket output;  ///< what it prints; invalid for rank 0
  std::string line;
  bool ended = false;
  bool killed = false; ///< by this process
};

class Launcher {
public:
  Launcher(const LaunchOptions &options, char **argv)
      : options(options), argv(argv), children(options.ranks) {}
  int run();

private:
  bool start();
  bool startRank(uint32_t rank, const std::vector<int> &processors);
  [[noreturn]] void becomeRank(uint32_t rank, const std::vector<int> &processors, int output, pid_t parent);
  void watch();
  void forwardSignal();
  void readOutput(uint32_t rank);
  void printLines(uint32_t rank, bool all);
  void collect(uint32_t rank);
  void startPatience();
  void noteFailure(uint32_t rank, const RankEnd &end);
  void endStragglers();
  void signalAll(int signal);

  const LaunchOptions options;
  char **const argv;
  PrivateDirectory directory;
  const std::string nonce = randomHex();
  sigset_t before;
  Socket signals; ///< signalfd
  std::vector<Child> children;
  std::vector<RankEnd> ends; ///< in the order in which they came
  bool over = false;         ///< some rank has ended; they end together or because of each other
  bool failed = false, causeNamed = false;
  Deadline firstEnd, patience; ///< once over: since when, and when those that still run are killed
};

int Launcher::run() {
  if (directory.path.empty()) {
    std::fprintf(stderr, "ds-run: error: no directory for the rendezvous: %s\n", std::strerror(errno));
    return static_cast<int>(ExitCode::Io);
  }
  if (!start()) {
    std::fprintf(stderr, "ds-run: error: cannot start %u ranks: %s\n", options.ranks, std::strerror(errno));
    signalAll(SIGKILL);
    watch();
    return static_cast<int>(ExitCode::Io);
  }
  watch();
  return chooseExitCode(ends);
}

bool Launcher::start() {
  sigset_t forwarded;
  ::sigemptyset(&forwarded);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2})
    ::sigaddset(&forwarded, signal);
  ::sigprocmask(SIG_BLOCK, &forwarded, &before);
  signals = Socket(::signalfd(-1, &forwarded, SFD_CLOEXEC | SFD_NONBLOCK));
  const std::vector<std::vector<int>> shares = shareProcessors(ownProcessors(), options.ranks);
  for (uint32_t rank = 0; rank < options.ranks; ++rank)
    if (!startRank(rank, shares[rank]))
      return false;
  return true;
}

bool Launcher::startRank(uint32_t rank, const std::vector<int> &processors) {
  int output[2] = {-1, -1};
  if (rank > 0 && ::pipe2(output, O_CLOEXEC) != 0)
    return false;
  Child &child = children[rank];
  child.output = Socket(output[0]);
  const Socket writing(output[1]);
  const pid_t parent = ::getpid();
  std::fflush(nullptr);
  child.pid = ::fork();
  if (child.pid == 0)
    becomeRank(rank, processors, output[1], parent);
  if (child.pid < 0)
    return false;
  child.process = Socket(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  return static_cast<bool>(child.process);
}

/// In the new process: everything that a rank inherits, then the program itself.
void Launcher::becomeRank(uint32_t rank, const std::vector<int> &processors, int output, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) // it died before that
    ::_exit(static_cast<int>(ExitCode::Internal));
  if (!processors.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int processor : processors)
      CPU_SET(processor, &set);
    ::sched_setaffinity(0, sizeof set, &set); // a wish: slower without it
  }
  if (output >= 0) {
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
  }
  ::setenv("DS_RANK", std::to_string(rank).c_str(), 1);
  ::setenv("DS_WORLD", std::to_string(options.ranks).c_str(), 1);
  ::setenv("DS_RENDEZVOUS", directory.path.c_str(), 1);
  ::setenv("DS_NONCE", nonce.c_str(), 1);
  ::setenv("DS_ONE_HOST", "1", 1);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::execv("/proc/self/exe", argv);
  std::fprintf(stderr, "ds-run: error: %s: %s\n", argv[0], std::strerror(errno));
  ::_exit(static_cast<int>(ExitCode::Io));
}

/// Until every rank has ended and said everything.
void Launcher::watch() {
  std::vector<pollfd> entries;
  std::vector<std::pair<uint32_t, bool>> owners; ///< rank, and whether the entry is its output
  while (true) {
    entries.assign(1, {signals.get(), POLLIN, 0});
    owners.assign(1, {0, false});
    for (uint32_t rank = 0; rank < children.size(); ++rank) {
      const Child &child = children[rank];
      if (child.pid > 0 && !child.ended) {
        entries.push_back({child.process.get(), POLLIN, 0});
        owners.emplace_back(rank, false);
      }
      if (child.output && child.pid > 0) {
        entries.push_back({child.output.get(), POLLIN, 0});
        owners.emplace_back(rank, true);
      }
    }
    if (entries.size() == 1)
      return;
    if (over)
      endStragglers();
    constexpr int kLookAgainMs = 100;
    if (::poll(entries.data(), entries.size(), over ? kLookAgainMs : -1) <= 0)
      continue;
    if (entries[0].revents)
      forwardSignal();
    for (size_t i = 1; i < entries.size(); ++i) // output first: it is older than the end
      if (entries[i].revents && owners[i].second)
        readOutput(owners[i].first);
    for (size_t i = 1; i < entries.size(); ++i)
      if (entries[i].revents && !owners[i].second)
        collect(owners[i].first);
  }
}

void Launcher::forwardSignal() {
  signalfd_siginfo info;
  while (::read(signals.get(), &info, sizeof info) == sizeof info)
    signalAll(static_cast<int>(info.ssi_signo));
}

/// Once a rank has ended: kills what is stopped, which cannot end by itself, and in the end everything.
void Launcher::endStragglers() {
  const Deadline now = Clock::now();
  for (Child &child : children) {
    const bool running = child.pid > 0 && !child.ended && !child.killed;
    if (running && (now >= patience || (now >= firstEnd + kStoppedPatience && isStopped(child.pid)))) {
      child.killed = true;
      ::kill(child.pid, SIGKILL);
    }
  }
}

void Launcher::signalAll(int signal) {
  for (const Child &child : children)
    if (child.pid > 0 && !child.ended)
      ::kill(child.pid, signal);
}

void Launcher::readOutput(uint32_t rank) {
  Child &child = children[rank];
  char bytes[16384];
  const ssize_t size = ::read(child.output.get(), bytes, sizeof bytes);
  if (size > 0)
    child.line.append(bytes, static_cast<size_t>(size));
  else if (size < 0 && errno == EINTR)
    return;
  printLines(rank, /*all=*/size <= 0);
  if (size <= 0)
    child.output = Socket();
}

/// The whole lines that `rank` has written, each behind its name; at the end also a last one without end.
void Launcher::printLines(uint32_t rank, bool all) {
  std::string &text = children[rank].line;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    std::fprintf(stderr, "[rank %u] %.*s\n", rank, static_cast<int>(end - begin), text.data() + begin);
  text.erase(0, begin);
  if (all && !text.empty())
    std::fprintf(stderr, "[rank %u] %s\n", rank, std::exchange(text, {}).c_str());
}

void Launcher::collect(uint32_t rank) {
  Child &child = children[rank];
  int status = 0;
  if (::waitpid(child.pid, &status, WNOHANG) != child.pid)
    return;
  child.ended = true;
  RankEnd end;
  if (WIFSIGNALED(status))
    end.signal = WTERMSIG(status);
  else
    end.code = WEXITSTATUS(status);
  ends.push_back(end);
  if (!over)
    startPatience();
  if (end.signal != 0 || end.code != 0)
    noteFailure(rank, end);
}

void Launcher::startPatience() {
  over = true;
  firstEnd = Clock::now();
  patience = firstEnd + options.timeout + kLastPatience;
}

void Launcher::noteFailure(uint32_t rank, const RankEnd &end) {
  std::string how = fmt::format("ended with exit code {}", end.code);
  if (end.signal)
    how = fmt::format("was killed by signal {} ({})", end.signal, ::strsignal(end.signal));
  if (children[rank].killed)
    how += ", by the launcher: it did not end by itself";
  const bool interrupted = end.signal == 0 && end.code == static_cast<int>(ExitCode::Interrupted);
  const bool missedAnother = end.signal == 0 && end.code == static_cast<int>(ExitCode::Peer);
  const bool isCause = !interrupted && !missedAnother;
  if (end.signal || (isCause && !causeNamed) || (missedAnother && !failed))
    std::fprintf(stderr, "ds-run: rank %u %s\n", rank, how.c_str());
  causeNamed |= isCause;
  // An interrupted run has ended well; the others may still be saving.
  if (failed || interrupted)
    return;
  failed = true;
  startPatience();
  if (!missedAnother) // else it waited itself for one that is missing
    reportAbsence(directory.path, nonce, rank, how);
}

} // namespace

int launchRanks(const LaunchOptions &options, char **argv) { return Launcher(options, argv).run(); }

} // namespace ds::rt
