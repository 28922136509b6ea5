//===- Sampling.cpp - Medians of repeated measurements ---------------------------===//
#include "Sampling.h"

#include <algorithm>
#include <cassert>

namespace ds::rt {

/// The value at `share` of the way through sorted values, between two of them by a straight line.
static double quantile(const std::vector<double> &sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

Sample summarize(std::vector<double> seconds) {
  assert(!seconds.empty() && "there is something to summarize");
  std::sort(seconds.begin(), seconds.end());
  Sample sample;
  sample.seconds = quantile(seconds, 0.5);
  sample.count = static_cast<uint32_t>(seconds.size());
  if (sample.seconds > 0)
    sample.spread = (quantile(seconds, 0.75) - quantile(seconds, 0.25)) / sample.seconds;
  return sample;
}

Result<Sample> measureRepeatedly(const std::function<Status(uint32_t)> &body, const SamplingOptions &options,
                                 const CalibrationClock &clock) {
  uint32_t run = 0;
  for (; run < options.warmUps; ++run)
    if (Status status = body(run); !status)
      return status.error();
  std::vector<double> seconds;
  double spent = 0;
  while (seconds.size() < options.least || (spent < options.budgetSeconds && seconds.size() < options.most)) {
    if (options.before)
      options.before();
    const int64_t begin = clock();
    if (Status status = body(run++); !status)
      return status.error();
    seconds.push_back(static_cast<double>(clock() - begin) * 1e-9);
    spent += seconds.back();
  }
  const Sample sample = summarize(std::move(seconds));
  if (!(sample.seconds > 0))
    return Error{ExitCode::Internal, "calibration: the clock stands still while commands run", ""};
  return sample;
}

Line fitLine(const std::vector<std::pair<double, double>> &points) {
  assert(points.size() >= 2 && "a line goes through two points");
  std::vector<double> slopes, rests;
  for (size_t i = 0; i < points.size(); ++i)
    for (size_t j = i + 1; j < points.size(); ++j)
      if (points[i].first != points[j].first)
        slopes.push_back((points[j].second - points[i].second) / (points[j].first - points[i].first));
  const double slope = slopes.empty() ? 0 : summarize(slopes).seconds;
  for (auto [bytes, seconds] : points)
    rests.push_back(seconds - std::max(slope, 0.0) * bytes);
  return {std::max(summarize(rests).seconds, 0.0), slope > 0 ? 1 / slope : 0};
}

} // namespace ds::rt
