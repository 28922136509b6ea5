//===- Restarts.h - Starts a job again that has died -------------------------------===//
//
// For ranks of this machine: whoever starts them sees them end. A job that ended for a reason that may be
// gone next time (a rank was killed, a disk was full, a device failed) is started again from its newest
// checkpoint. What would come out the same again (a wrong configuration, a loss that is not a number) is not,
// nor what was asked to end.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_TRAINING_RESTARTS_H
#define DS_RUNTIME_TRAINING_RESTARTS_H

#include "ds/Runtime/Launch/Launch.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ds::rt {

/// The environment variable by which a job that is started again is told what to resume.
inline constexpr const char *kResumeVariable = "DS_RESUME";

/// When to start again.
class RestartPolicy {
public:
  /// Ends in a row without a new checkpoint, after which another start is in vain.
  static constexpr unsigned kMostInVain = 3;
  /// Seconds before the first start; twice as many before each that follows without progress.
  static constexpr double kFirstWait = 0.5, kLongestWait = 60;

  /// At most `most` starts; `newest` is the step of the newest checkpoint now.
  RestartPolicy(uint64_t most, std::optional<uint64_t> newest) : most(most), last(newest) {}

  /// Whether a job that ended so may do better next time.
  static bool mayHelp(int exitCode);

  /// Seconds to wait before the job is started again, or nothing: it is not.
  std::optional<double> afterEnd(int exitCode, std::optional<uint64_t> newest);

  uint64_t restarts() const { return made; }
  unsigned withoutProgress() const { return inVain; }

private:
  const uint64_t most;
  std::optional<uint64_t> last;
  uint64_t made = 0;
  unsigned inVain = 0;
};

struct RestartOptions {
  uint64_t most = 0;
  std::string save; ///< directory of the job's checkpoints
};

/// launchRanks, again and again, until it ends well or was asked to end; returns its code. Requires that
/// signals that ask for the end are held back (EndSignals.h).
int launchWithRestarts(const LaunchOptions &launch, const RestartOptions &restarts, char **argv);

} // namespace ds::rt

#endif // DS_RUNTIME_TRAINING_RESTARTS_H
