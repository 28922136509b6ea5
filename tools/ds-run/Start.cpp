//===- Start.cpp - What both command lines of ds-run begin with --------------------===//
#include "Start.h"

#include "ds/Runtime/Process/EndSignals.h"
#include "ds/Runtime/Process/Waiting.h"
#include "ds/Support/Messages.h"
#include "ds/Support/StandardStreams.h"

#include <csignal>
#include <cstdio>
#include <unistd.h>

int report(const ds::Error &error) {
  std::fputs(ds::spellError("ds-run", error, ds::terminalColumns(STDERR_FILENO)).c_str(), stderr);
  return static_cast<int>(error.code);
}

/// The exit code of a launcher. Where it is a shell's for a signal, the process ends by that signal, as one
/// without ranks would have: a shell ends a script for it.
static int endAs(int code) {
  constexpr int kBySignal = 128;
  if (code <= kBySignal)
    return code;
  const int signal = code - kBySignal;
  std::fflush(nullptr);
  std::signal(signal, SIG_DFL);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::pthread_kill(::pthread_self(), signal);
  return code;
}

std::optional<int> takeIdentity(ds::rt::RankIdentity &place, uint32_t ranks, bool asked,
                                double timeoutSeconds, Files files, char **argv,
                                const ds::rt::RestartOptions &restarts) {
  using ds::rt::RankIdentity;
  if (ds::rt::isStartedAsRank() || (ranks == 1 && restarts.most == 0))
    ds::rt::settleWaiting(argv); // before PMIx is asked; who only starts ranks computes nothing
  ds::occupyStandardStreams();
  ds::rt::holdEndSignals(); // until a run, or the launcher, listens
  const ds::Result<RankIdentity> found = ds::rt::findRankIdentity();
  if (!found)
    return report(found.error());
  place = *found;
  if (place.kind != RankIdentity::Kind::Alone && asked && ranks != place.world)
    return report(
        {ds::ExitCode::Usage,
         "--ranks " + std::to_string(ranks) + ", but the launcher has started " + std::to_string(place.world),
         "leave --ranks out under mpirun and srun"});
  for (std::vector<ds::rt::FileArgument> *list : {&files.inputs, &files.outputs})
    std::erase_if(*list, [](const ds::rt::FileArgument &file) { return file.path.empty(); });
  if (place.kind == RankIdentity::Kind::Alone || place.rank == 0)
    if (const ds::Status status = ds::rt::checkOutputs(files.inputs, files.outputs); !status)
      return report(status.error());
  if (place.kind == RankIdentity::Kind::Pmix && restarts.most > 0)
    return report({ds::ExitCode::Usage, "--restarts: these ranks were started by another launcher",
                   "let that one start them again, with --resume auto"});
  if (place.kind != RankIdentity::Kind::Alone || (ranks == 1 && restarts.most == 0))
    return std::nullopt;
  ds::rt::LaunchOptions launch;
  launch.ranks = ranks;
  launch.timeout = std::chrono::milliseconds(static_cast<int64_t>(timeoutSeconds * 1000));
  return endAs(restarts.most > 0 ? ds::rt::launchWithRestarts(launch, restarts, argv)
                                 : ds::rt::launchRanks(launch, argv).code);
}
