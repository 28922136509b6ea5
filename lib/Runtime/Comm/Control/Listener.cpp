//===- Listener.cpp - The thread that hears the other ranks -----------------------------===//
#include "Listener.h"

#include "Limits.h"
#include "Stacks.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace ds::rt {

Listener::Listener(const Duties &duties) : duties(duties), wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Status Listener::start() {
  if (!wake)
    return Error{ExitCode::Io, fmt::format("no event for the thread that listens: {}", std::strerror(errno)),
                 "raise the limit with `ulimit -n`"};
  try {
    thread = std::thread([this] { run(); });
  } catch (const std::system_error &error) {
    return Error{ExitCode::Io, fmt::format("cannot start a thread: {}", error.code().message()),
                 processHint()};
  }
  return {};
}

void Listener::stop() {
  if (!thread.joinable())
    return;
  const uint64_t one = 1;
  while (::write(wake.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread.join();
}

void Listener::run() {
  while (!duties.wires.hear(wake.get(), duties.waits.lookMs(), duties.hearer)) {
    if (duties.news.failed())
      endIfTooLate();
    else
      duties.waits.look();
  }
}

void Listener::endIfTooLate() {
  if (failedSince == Deadline())
    failedSince = Clock::now();
  if (!duties.failureLimit || Clock::now() - failedSince < *duties.failureLimit)
    return;
  writeToStderr(
      fmt::format("ds-run: rank {} has not ended within {} of the failure of its job, and is ended: {}\n",
                  duties.rank, spellSeconds(*duties.failureLimit), duties.news.failure()),
      kWritingTime);
  ::_exit(static_cast<int>(ExitCode::Peer));
}

} // namespace ds::rt
