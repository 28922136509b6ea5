//===- Interrupt.cpp - Signal handlers -----------------------------------------===//
//
// The handler does what is allowed in one: it notes and counts, and hands the second request to the default
// action.
//
//===---------------------------------------------------------------------------===//
#include "Interrupt.h"

#include "ds/Runtime/Process/EndSignals.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <unistd.h>

namespace ds::rt {
namespace {

std::atomic<int> firstSignal{0};
std::atomic<unsigned> direct{0}, passedOn{0}; ///< how many have come by either way
std::atomic<bool> byParent{false};            ///< what the parent sends is passed on
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "a signal handler may use nothing else");

bool isPassedOn(const siginfo_t &info) {
  if (info.si_code == SI_QUEUE && info.si_value.sival_int == kPassedOn)
    return true;
  return byParent && info.si_code <= 0 && info.si_pid == ::getppid();
}

void onSignal(int signal, siginfo_t *info, void *) {
  int none = 0;
  firstSignal.compare_exchange_strong(none, signal);
  if ((isPassedOn(*info) ? passedOn : direct)++ == 0)
    return;
  std::signal(signal, SIG_DFL);
  std::raise(signal); // comes when this handler returns
}

} // namespace

void watchInterrupts(bool parentPassesOn) {
  byParent = parentPassesOn;
  struct sigaction action = {};
  action.sa_sigaction = onSignal;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  action.sa_mask = endSignals();
  for (const int signal : kEndSignals)
    if (!isIgnoredEndSignal(signal))
      ::sigaction(signal, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  releaseEndSignals();
}

bool interrupted() { return firstSignal.load() != 0; }

std::string interruptName() {
  const char *name = firstSignal == 0 ? nullptr : ::sigabbrev_np(firstSignal);
  return name ? std::string("SIG") + name : std::string();
}

} // namespace ds::rt
