//===- Interrupt.cpp - Signal handlers -----------------------------------------===//
//
// The handler does what is allowed in one: it sets a flag, and on the second signal hands it to the default
// action.
//
//===---------------------------------------------------------------------------===//
#include "Interrupt.h"

#include <atomic>
#include <csignal>

namespace ds::rt {
namespace {

std::atomic<bool> requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may use nothing else");

void onSignal(int signal) {
  if (!requested.exchange(true))
    return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

} // namespace

void watchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() { return requested.load(); }

} // namespace ds::rt
