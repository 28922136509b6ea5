//===- Launch.h - Starts the ranks of a job on this machine ----------------------===//
#ifndef DS_RUNTIME_LAUNCH_LAUNCH_H
#define DS_RUNTIME_LAUNCH_LAUNCH_H

#include "ds/Runtime/Comm/Communicator.h"

#include <chrono>
#include <cstdint>

namespace ds::rt {

/// The local launcher: `ds-run --ranks N` without mpirun.
struct LaunchOptions {
  uint32_t ranks = 1;
  std::chrono::milliseconds timeout = kDefaultTimeout;
};

/// How a job has ended.
struct LaunchEnd {
  int code = 0;
  bool asked = false; ///< a signal has asked for the end, before the ranks had all ended
};

/// Runs this executable with `argv` once per rank, each with its share of the processors this process may
/// use, and waits for all. Rank 0 has this process's output; lines of the others go to stderr, each behind
/// "[rank r] "; neither a rank that prints much nor a reader of stderr that has stopped keeps it from its
/// work. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on, with a mark (EndSignals.h); before a
/// rank listens they wait. From the second on, what has not ended within a second is killed. After the first
/// failure the others have the time-out to end by themselves. ExitCode::Io if not all can be started: those
/// that were are ended, and a message says which limit is too low. The code is that of the rank whose failure
/// was the cause: the first that is neither 0 nor 7; else 128 and the signal, if such a signal has killed
/// ranks, of several signals the second; else 7 if any failed (a rank killed by a signal is named on stderr),
/// else 0. Call before there are threads.
LaunchEnd launchRanks(const LaunchOptions &options, char **argv);

} // namespace ds::rt

#endif // DS_RUNTIME_LAUNCH_LAUNCH_H
