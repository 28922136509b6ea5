//===- Launch.cpp - Starts the ranks of one machine ------------------------------===//
//
// One loop on two kinds of descriptors: the signals of this process, among them SIGCHLD for the ends of
// ranks, and the output of all but rank 0. Each rank is a process group of its own, so that a Ctrl-C of the
// terminal comes once, from here, and dies with this process, however that ends.
//
// What would keep the ranks from meeting is looked for before the first is started. Whatever fails later ends
// those that have been started; nothing is left running, and nothing waits for one that is not.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Launch/Launch.h"

#include "JobEnd.h"
#include "LaunchDecisions.h"

#include "Comm/Control/Card.h"
#include "Comm/Control/Limits.h"
#include "Comm/Rendezvous.h"
#include "Comm/RendezvousFolder.h"
#include "RankOutput.h"
#include "ds/Runtime/Comm/Communicator.h"

#include "ds/Runtime/Process/EndSignals.h"
#include "ds/Support/Messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace ds::rt {

namespace {

/// Whether a signal or a debugger has stopped the process.
bool isStopped(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  const size_t name = text.rfind(')'); // what stands before may hold anything
  return name != std::string::npos && name + 2 < text.size() &&
         (text[name + 2] == 'T' || text[name + 2] == 't');
}

struct Child {
  pid_t pid = -1;
  Socket output; ///< what it prints; invalid for rank 0
  RankLines lines;
  bool ended = false;
  bool killed = false; ///< by this process
};

class Launcher {
public:
  Launcher(const LaunchOptions &options, char **argv)
      : options(options), argv(argv), children(options.ranks), end(options.timeout) {
    for (uint32_t rank = 0; rank < options.ranks; ++rank)
      children[rank].lines = RankLines(rank);
  }
  LaunchEnd run();

private:
  Status prepare();
  Status reserveLimits() const;
  Status start();
  Status startRank(uint32_t rank, const std::vector<int> &processors);
  [[noreturn]] void becomeRank(uint32_t rank, const std::vector<int> &processors, int output, pid_t parent);
  void killAll();
  void watch();
  bool listEntries();
  void takeSignals();
  void readOutput(uint32_t rank);
  void collect(uint32_t rank);
  std::string spellEnd(uint32_t rank, const RankEnd &ended) const;
  void endStragglers();
  void passOn(int signal);

  const LaunchOptions options;
  char **const argv;
  std::optional<RendezvousFolder> folder;
  const std::string nonce = randomHex();
  sigset_t before;
  Socket signals; ///< signalfd
  OutputQueue messages{STDERR_FILENO};
  std::vector<Child> children;
  JobEnd end;
  bool absenceTold = false;      ///< of a rank that others may wait for
  std::vector<pollfd> entries;   ///< signals, stderr, and then outputs
  std::vector<uint32_t> talkers; ///< whose output each entry from the third on is
};

LaunchEnd Launcher::run() {
  Status started = prepare();
  if (started)
    started = start();
  if (!started) {
    killAll();
    const Error &error = started.error();
    std::fputs(spellError("ds-run", error, terminalColumns(STDERR_FILENO)).c_str(), stderr);
    return {static_cast<int>(error.code), end.result().asked};
  }
  watch();
  return end.result();
}

/// Everything that is needed before the first rank.
Status Launcher::prepare() {
  std::signal(SIGPIPE, SIG_IGN); // whoever reads the messages may go
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL); // inherited as ignored it would take the exit codes away
  sigset_t taken = endSignals();
  ::sigaddset(&taken, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &taken, &before);
  if (Status status = reserveLimits(); !status)
    return status;
  signals = Socket(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals)
    return Error{ExitCode::Io,
                 fmt::format("--ranks {}: cannot wait for signals: {}", options.ranks, std::strerror(errno)),
                 ""};
  Result<RendezvousFolder> made = RendezvousFolder::create();
  if (!made)
    return made.error();
  folder.emplace(std::move(*made));
  return {};
}

/// Refuses what cannot come together. The ranks inherit the limit of descriptors. Which transport they will
/// agree on is not known here; where it is Gloo after all, they ask for more themselves.
Status Launcher::reserveLimits() const {
  const size_t processors = ownProcessors().size();
  if (const uint32_t most = mostRanks(processors); options.ranks > most)
    return Error{ExitCode::Io,
                 fmt::format("--ranks {}: on {} processor{} at most {} come together within {}",
                             options.ranks, processors, processors == 1 ? "" : "s", most,
                             spellSeconds(kRendezvousLimit)),
                 "start fewer ranks, or on several machines with mpirun or srun"};
  constexpr uint64_t kOwnFiles = 8; // signals, folder, the other end of a pipe, what is open for a moment
  const char *transport = std::getenv("DS_TRANSPORT");
  const bool gloo = transport && std::strcmp(transport, "gloo") == 0;
  return reserveDescriptors(
      std::max(options.ranks + kOwnFiles, descriptorsOfRank(options.ranks, kMostChannels, gloo)),
      fmt::format("--ranks {}", options.ranks));
}

Status Launcher::start() {
  const std::vector<std::vector<int>> shares = shareProcessors(ownProcessors(), options.ranks);
  for (uint32_t rank = 0; rank < options.ranks; ++rank)
    if (Status status = startRank(rank, shares[rank]); !status)
      return status;
  return {};
}

Status Launcher::startRank(uint32_t rank, const std::vector<int> &processors) {
  const auto cannotStart = [&](std::string hint) {
    return Error{
        ExitCode::Io,
        fmt::format("--ranks {}: cannot start rank {}: {}", options.ranks, rank, std::strerror(errno)),
        std::move(hint)};
  };
  int output[2] = {-1, -1};
  if (rank > 0 && ::pipe2(output, O_CLOEXEC) != 0)
    return cannotStart("raise the limit with `ulimit -n`, or start fewer ranks");
  Child &child = children[rank];
  child.output = Socket(output[0]);
  const Socket writing(output[1]);
  const pid_t parent = ::getpid();
  std::fflush(nullptr);
  child.pid = ::fork();
  if (child.pid < 0 && errno == EAGAIN && raiseProcessLimit())
    child.pid = ::fork();
  if (child.pid == 0)
    becomeRank(rank, processors, output[1], parent);
  return child.pid < 0 ? Status(cannotStart(processHint())) : Status();
}

/// In the new process: everything that a rank inherits, then the program itself. Signals that ask for the end
/// are held back until the rank listens.
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
  ::setenv("DS_RENDEZVOUS", folder->path().c_str(), 1);
  ::setenv("DS_NONCE", nonce.c_str(), 1);
  ::setenv("DS_ONE_HOST", "1", 1);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  holdEndSignals();
  ::execv("/proc/self/exe", argv);
  std::fprintf(stderr, "ds-run: error: %s: %s\n", argv[0], std::strerror(errno));
  ::_exit(static_cast<int>(ExitCode::Io));
}

/// Ends the ranks that have been started, when not all could be.
void Launcher::killAll() {
  for (const Child &child : children)
    if (child.pid > 0)
      ::kill(child.pid, SIGKILL);
  for (const Child &child : children)
    while (child.pid > 0 && ::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
}

/// Until every rank has ended and everything that was said has been passed on.
void Launcher::watch() {
  while (listEntries()) {
    const bool isEnding = end.isEnding();
    if (isEnding)
      endStragglers();
    constexpr int kLookAgainMs = 100;
    if (::poll(entries.data(), entries.size(), isEnding ? kLookAgainMs : -1) <= 0)
      continue;
    for (size_t i = 0; i < talkers.size(); ++i) // before the ends, which are younger
      if (entries[i + 2].revents)
        readOutput(talkers[i]);
    if (entries[1].revents)
      messages.writeSome();
    if (entries[0].revents)
      takeSignals();
  }
}

/// Fills `entries`; false when there is nothing left to wait for.
bool Launcher::listEntries() {
  entries.assign({{signals.get(), POLLIN, 0}, {messages.empty() ? -1 : STDERR_FILENO, POLLOUT, 0}});
  talkers.clear();
  bool running = false, talking = false;
  for (uint32_t rank = 0; rank < children.size(); ++rank) {
    const Child &child = children[rank];
    running |= !child.ended;
    talking |= static_cast<bool>(child.output);
    if (child.output && !messages.full()) {
      entries.push_back({child.output.get(), POLLIN, 0});
      talkers.push_back(rank);
    }
  }
  return running || talking || !messages.empty();
}

/// Ends of ranks, and signals for all of them. Once none runs, such a signal ends the waiting for those who
/// should read what they have said.
void Launcher::takeSignals() {
  signalfd_siginfo info;
  while (::read(signals.get(), &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD)
      passOn(static_cast<int>(info.ssi_signo));
  for (uint32_t rank = 0; rank < children.size(); ++rank)
    collect(rank);
}

/// Once a rank has ended: kills what is stopped, which cannot end by itself, and when the patience is at its
/// end everything.
void Launcher::endStragglers() {
  const Deadline now = Clock::now();
  for (Child &child : children) {
    const bool running = !child.ended && !child.killed;
    if (running && (end.outlivesAll(now) || (end.outlivesStopped(now) && isStopped(child.pid)))) {
      child.killed = true;
      ::kill(child.pid, SIGKILL);
    }
  }
}

/// A request to end, for every rank.
void Launcher::passOn(int signal) {
  end.noteRequest(signal, Clock::now());
  bool running = false;
  for (const Child &child : children)
    if (!child.ended) {
      running = true;
      sigval mark{};
      mark.sival_int = kPassedOn;
      if (::sigqueue(child.pid, signal, mark) != 0 && errno == EAGAIN) // too many wait: one without the mark
        ::kill(child.pid, signal);
    }
  if (running)
    return;
  messages.drop();
  for (Child &child : children)
    child.output = Socket();
}

void Launcher::readOutput(uint32_t rank) {
  Child &child = children[rank];
  char bytes[16384];
  const ssize_t size = ::read(child.output.get(), bytes, sizeof bytes);
  if (size > 0)
    return child.lines.take({bytes, static_cast<size_t>(size)}, messages);
  if (size < 0 && errno == EINTR)
    return;
  child.lines.end(messages);
  child.output = Socket();
}

void Launcher::collect(uint32_t rank) {
  Child &child = children[rank];
  int status = 0;
  if (child.ended || ::waitpid(child.pid, &status, WNOHANG) != child.pid)
    return;
  child.ended = true;
  RankEnd how;
  if (WIFSIGNALED(status))
    how.signal = WTERMSIG(status);
  else
    how.code = WEXITSTATUS(status);
  const bool isTold = end.noteEnd(how, Clock::now());
  // Others may still wait for it, or for its call. Who misses another knows of one that is to be named.
  if (how.signal != 0 || how.code != static_cast<int>(ExitCode::Peer))
    if (!std::exchange(absenceTold, true))
      reportAbsence(folder->path(), nonce, rank, spellEnd(rank, how));
  if (isTold)
    messages.addLine(fmt::format("ds-run: rank {} {}", rank, spellEnd(rank, how)));
}

std::string Launcher::spellEnd(uint32_t rank, const RankEnd &ended) const {
  std::string how = fmt::format("ended with exit code {}", ended.code);
  if (ended.signal)
    how = fmt::format("was killed by signal {} ({})", ended.signal, ::strsignal(ended.signal));
  if (children[rank].killed)
    how += ", by the launcher: it did not end by itself";
  return how;
}

} // namespace

LaunchEnd launchRanks(const LaunchOptions &options, char **argv) { return Launcher(options, argv).run(); }

} // namespace ds::rt
