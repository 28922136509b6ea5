//===- Sampling.h - Medians of repeated measurements -----------------------------===//
//
// Other processes, interrupts and caches disturb single measurements, and always upwards: the middle of many
// says what a command takes, and the distance of the quarters from it how far to believe that.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CALIBRATE_SAMPLING_H
#define DS_LIB_RUNTIME_CALIBRATE_SAMPLING_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace ds::rt {

/// Nanoseconds; only differences mean anything. Tests bring their own.
using CalibrationClock = std::function<int64_t()>;

struct Sample {
  double seconds = 0; ///< the median
  double spread = 0;  ///< distance of the quartiles, as a share of the median
  uint32_t count = 0;
};

/// The median and spread of at least one measurement.
Sample summarize(std::vector<double> seconds);

struct SamplingOptions {
  uint32_t warmUps = 1;
  uint32_t least = 3, most = 64; ///< measurements
  double budgetSeconds = 0.02;   ///< no further one after that
  std::function<void()> before;  ///< runs before each, not measured
};

/// Measures `body(i)`, i counting from 0 with the warm-ups, until the budget is spent. Fails with
/// ExitCode::Internal when the clock stands still or runs backwards: nothing could be derived from that.
Result<Sample> measureRepeatedly(const std::function<Status(uint32_t)> &body, const SamplingOptions &options,
                                 const CalibrationClock &clock);

/// seconds = fixed + bytes / rate, through measurements of (bytes, seconds) of at least two sizes: the median
/// of the slopes between all pairs, then of what is left (Theil and Sen), so that single bad measurements do
/// not count. `fixed` is at least 0; a rate of 0 says that time does not rise with the bytes.
struct Line {
  double fixed = 0, rate = 0;
};
Line fitLine(const std::vector<std::pair<double, double>> &points);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CALIBRATE_SAMPLING_H
