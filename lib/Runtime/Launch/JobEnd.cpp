//===- JobEnd.cpp - How a job comes to its end ----------------------------------------===//
#include "JobEnd.h"

#include "ds/Support/Error.h"

#include <algorithm>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;

/// Once a rank has ended: how long another may be stopped, and how long beyond the time-out any may go on.
constexpr milliseconds kStoppedPatience(1000), kLastPatience(2000);
/// How long a rank may take to end at once: it may still be blocked, or stopped.
constexpr milliseconds kSecondPatience(1000);

} // namespace

/// After the second request a rank that goes on does not because it may, but because it cannot hear: signals
/// of one number that a process has not taken yet count as one.
void JobEnd::noteRequest(int signal, Time now) {
  requests.push_back(signal);
  if (requests.size() == 2)
    patience = std::min(patience, now + kSecondPatience);
}

void JobEnd::startPatience(Time now) {
  over = true;
  firstEnd = now;
  if (requests.size() < 2) // else there is less of it already
    patience = firstEnd + timeout + kLastPatience;
}

bool JobEnd::noteEnd(const RankEnd &end, Time now) {
  ends.push_back(end);
  if (!over)
    startPatience(now);
  return (end.signal != 0 || end.code != 0) && noteFailure(end, now);
}

bool JobEnd::noteFailure(const RankEnd &end, Time now) {
  const bool interrupted = end.signal == 0 && end.code == static_cast<int>(ExitCode::Interrupted);
  const bool missedAnother = end.signal == 0 && end.code == static_cast<int>(ExitCode::Peer);
  const bool isCause = !interrupted && !missedAnother;
  const bool told = end.signal != 0 || (isCause && !causeNamed) || (missedAnother && !failed);
  causeNamed |= isCause;
  // An interrupted run has ended well; the others may still be saving.
  if (!failed && !interrupted) {
    failed = true;
    startPatience(now);
  }
  return told;
}

bool JobEnd::outlivesStopped(Time now) const { return over && now >= firstEnd + kStoppedPatience; }

} // namespace ds::rt
