//===- JobEnd.h - How a job comes to its end ------------------------------------------===//
//
// Ranks end together or because of each other. Whoever asks for the end by signals, and the first rank that
// has ended, set how long those that still run are waited for.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_LAUNCH_JOBEND_H
#define DS_LIB_RUNTIME_LAUNCH_JOBEND_H

#include "LaunchDecisions.h"

#include "ds/Runtime/Launch/Launch.h"

#include <chrono>
#include <vector>

namespace ds::rt {

class JobEnd {
public:
  using Time = std::chrono::steady_clock::time_point;

  /// `timeout`: the ranks'.
  explicit JobEnd(std::chrono::milliseconds timeout) : timeout(timeout) {}

  /// A signal has asked for the end, at `now`.
  void noteRequest(int signal, Time now);
  /// A rank has ended so. Whether that is to be told: it was killed, or is the first to fail as it did.
  bool noteEnd(const RankEnd &end, Time now);

  /// Whether ranks that go on are looked after.
  bool isEnding() const { return over || requests.size() > 1; }
  /// Whether a rank that is stopped, and so cannot end by itself, has had its time.
  bool outlivesStopped(Time now) const;
  /// Whether any rank has.
  bool outlivesAll(Time now) const { return now >= patience; }

  LaunchEnd result() const { return {chooseExitCode(ends, requests), !requests.empty()}; }

private:
  void startPatience(Time now);
  bool noteFailure(const RankEnd &end, Time now);

  const std::chrono::milliseconds timeout;
  std::vector<RankEnd> ends; ///< in the order in which they came
  std::vector<int> requests; ///< signals, likewise
  bool over = false;         ///< some rank has ended
  bool failed = false, causeNamed = false;
  Time firstEnd;               ///< once over: since when
  Time patience = Time::max(); ///< when those that still run are killed
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_LAUNCH_JOBEND_H
