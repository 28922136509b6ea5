//===- Restarts.cpp - Starts a job again that has died -----------------------------===//

#include "ds/Runtime/Training/Restarts.h"

#include "Process/Messages.h"

#include "ds/Runtime/Checkpoint/Store.h"
#include "ds/Runtime/Process/EndSignals.h"
#include "ds/Support/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>

namespace ds::rt {

bool RestartPolicy::mayHelp(int exitCode) {
  switch (static_cast<ExitCode>(exitCode)) {
  case ExitCode::Io:
  case ExitCode::Peer: // also of ranks that were killed
  case ExitCode::Device:
  case ExitCode::Internal:
    return true;
  default: // what would come out the same again, and ends that were asked for
    return false;
  }
}

std::optional<double> RestartPolicy::afterEnd(int exitCode, std::optional<uint64_t> newest) {
  if (!mayHelp(exitCode))
    return std::nullopt;
  const bool progress =
      newest && newest != last; // a lower step: the job began before checkpoints that were there
  inVain = progress ? 0 : inVain + 1;
  last = newest;
  if (made >= most || inVain >= kMostInVain)
    return std::nullopt;
  ++made;
  return std::min(std::ldexp(kFirstWait, static_cast<int>(inVain)), kLongestWait);
}

namespace {

/// The step of the newest checkpoint.
std::optional<uint64_t> newestStep(const std::string &directory) {
  const Result<StoreListing> listing = listCheckpoints(directory);
  if (!listing)
    return std::nullopt;
  for (const StoredCheckpoint &each : listing->checkpoints)
    if (each.problem.empty())
      return each.step;
  return std::nullopt;
}

/// Waits; true: a signal has asked for the end meanwhile.
bool isEndedWhileWaiting(double seconds) {
  const sigset_t signals = endSignals();
  const timespec time{static_cast<time_t>(seconds), static_cast<long>((seconds - std::floor(seconds)) * 1e9)};
  return ::sigtimedwait(&signals, nullptr, &time) > 0;
}

} // namespace

int launchWithRestarts(const LaunchOptions &launch, const RestartOptions &restarts, char **argv) {
  const std::optional<uint64_t> atFirst = newestStep(restarts.save);
  bool hasSaved = false; // what was there before may be of steps that the job has gone back behind
  RestartPolicy policy(restarts.most, atFirst);
  for (;;) {
    sigset_t mask; // the launcher changes it and leaves it
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    const auto [code, asked] = launchRanks(launch, argv);
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    if (asked) { // however it has ended then
      if (RestartPolicy::mayHelp(code))
        logLine("the job is not started again: it was asked to end");
      return code;
    }
    const std::optional<uint64_t> newest = newestStep(restarts.save);
    hasSaved |= newest && newest != atFirst;
    const std::optional<double> wait = policy.afterEnd(code, newest);
    if (!wait) {
      if (RestartPolicy::mayHelp(code))
        logLine(fmt::format(
            "the job is not started again: it has been {} time{}, {} of the last without a new checkpoint",
            policy.restarts(), policy.restarts() == 1 ? "" : "s", policy.withoutProgress()));
      return code;
    }
    logLine(fmt::format("the job has ended with exit code {}: starts again in {:g} s, {}", code, *wait,
                        hasSaved && newest ? fmt::format("from step {}", *newest) : "as it was started"));
    if (isEndedWhileWaiting(*wait)) {
      logLine("the job is not started again: it was asked to end");
      return static_cast<int>(ExitCode::Interrupted);
    }
    if (hasSaved)
      ::setenv(kResumeVariable, "auto", 1);
  }
}

} // namespace ds::rt
