//===- EndSignals.h - The signals that ask a run to end -------------------------===//
//
// Any of them ends a training run after its step; see lib/Runtime/Training/Interrupt.h. A signal that comes
// before anybody listens would end the process on the spot, so they are held back from the first moment on:
// by whoever starts ds-run's work, and by the launcher for the ranks that it starts. A held signal is not
// lost; it is delivered when the handlers are there, or taken by the launcher.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROCESS_ENDSIGNALS_H
#define DS_RUNTIME_PROCESS_ENDSIGNALS_H

#include <array>
#include <csignal>

namespace ds::rt {

/// Slurm sends SIGUSR1 or SIGUSR2 (`--signal`) and then SIGTERM, a terminal SIGINT and SIGHUP.
inline constexpr std::array<int, 5> kEndSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/// The value that goes with a signal which the launcher passes on. A workload manager may signal every
/// process of a job, and then a rank gets the same request twice.
inline constexpr int kPassedOn = 0x64737231;

/// Whether the signal means nothing to this process: SIGHUP under `nohup`, which stays so.
inline bool isIgnoredEndSignal(int signal) {
  struct sigaction action = {};
  return signal == SIGHUP && ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// Those that ask this process to end.
inline sigset_t endSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : kEndSignals)
    if (!isIgnoredEndSignal(signal))
      ::sigaddset(&set, signal);
  return set;
}

/// Holds them back in this thread, and in those that it starts and programs that it executes.
inline void holdEndSignals() {
  const sigset_t set = endSignals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

/// Lets them through: those that were held back come now.
inline void releaseEndSignals() {
  const sigset_t set = endSignals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

} // namespace ds::rt

#endif // DS_RUNTIME_PROCESS_ENDSIGNALS_H
