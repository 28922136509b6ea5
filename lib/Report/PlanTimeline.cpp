//===- PlanTimeline.cpp - What is live over a planned step ---------------------------===//
#include "ds/Report/PlanTimeline.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace ds::report {

int64_t LivePoint::total() const { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

std::vector<LivePoint> liveCurve(const PlanTimeline &timeline, const std::string &space) {
  std::map<uint32_t, CategoryBytes> changes;
  changes[0] = changes[static_cast<uint32_t>(timeline.commands.size())] = {};
  for (const PlanTimeline::Buffer &buffer : timeline.buffers) {
    if (buffer.space != space)
      continue;
    auto category = static_cast<size_t>(buffer.category);
    changes[buffer.beginCommand][category] += buffer.bytes;
    if (buffer.endCommand < timeline.commands.size())
      changes[buffer.endCommand][category] -= buffer.bytes;
  }
  // The times at which buffers begin and end are one rising function of the commands.
  std::map<uint32_t, double> times{{0, 0},
                                   {static_cast<uint32_t>(timeline.commands.size()), timeline.seconds}};
  for (const PlanTimeline::Buffer &buffer : timeline.buffers) {
    times.emplace(buffer.beginCommand, buffer.begin);
    times.emplace(buffer.endCommand, buffer.end);
  }
  std::vector<LivePoint> curve;
  CategoryBytes live{};
  for (const auto &[command, change] : changes) {
    for (size_t category = 0; category < kNumCategories; ++category)
      live[category] += change[category];
    curve.push_back({command, times.at(command), live});
  }
  return curve;
}

} // namespace ds::report
