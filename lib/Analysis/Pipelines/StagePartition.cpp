//===- StagePartition.cpp - Which layers each stage of a pipeline has ------------------===//
#include "ds/Analysis/Pipelines/StagePartition.h"

#include <algorithm>
#include <limits>

namespace ds::analysis {

namespace {
/// The table of the dynamic programme: what the first units come to on the first stages.
class Partition {
public:
  Partition(const std::vector<PartitionUnit> &units, uint32_t stages)
      : units(units), stages(stages), before(units.size() + 1) {
    for (size_t index = 0; index < units.size(); ++index)
      before[index + 1] = before[index] + units[index].cost;
  }

  /// The least that the slowest stage can take.
  double findBound() {
    auto slowest = [](double soFar, double run) { return std::max(soFar, run); };
    return fill(std::numeric_limits<double>::infinity(), slowest);
  }
  /// The most even runs of which none takes more than `bound`.
  std::vector<uint32_t> divide(double bound) {
    fill(bound, [](double soFar, double run) { return soFar + run * run; });
    std::vector<uint32_t> counts(stages);
    for (size_t end = units.size(), stage = stages; stage > 0; --stage) {
      const size_t begin = start[stage * (units.size() + 1) + end];
      counts[stage - 1] = static_cast<uint32_t>(end - begin);
      end = begin;
    }
    return counts;
  }

private:
  /// What the units [begin, end) take as a stage.
  double costOf(size_t begin, size_t end) const {
    return before[end] - before[begin] + (begin > 0 ? units[begin - 1].borderCost : 0) +
           (end < units.size() ? units[end - 1].borderCost : 0);
  }
  template <class Join>
  double fill(double bound, Join join);

  const std::vector<PartitionUnit> &units;
  const uint32_t stages;
  std::vector<double> before; ///< cost of all units before each
  std::vector<size_t> start;  ///< by stages and units: where the last of these stages starts
};
} // namespace

/// Joins the costs of runs of at most `bound`, and returns the least that all units come to.
template <class Join>
double Partition::fill(double bound, Join join) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const size_t row = units.size() + 1;
  std::vector<double> least((stages + 1) * row, kNone);
  start.assign(least.size(), 0);
  least[0] = 0;
  for (size_t stage = 1; stage <= stages; ++stage)
    for (size_t end = stage; end < row; ++end)
      for (size_t begin = stage - 1; begin < end; ++begin) {
        const double run = costOf(begin, end), soFar = least[(stage - 1) * row + begin];
        if (soFar == kNone || run > bound)
          continue;
        if (const double joined = join(soFar, run); joined < least[stage * row + end]) {
          least[stage * row + end] = joined;
          start[stage * row + end] = begin;
        }
      }
  return least.back();
}

std::vector<uint32_t> partitionUnits(const std::vector<PartitionUnit> &units, uint32_t stages) {
  if (stages == 0 || units.size() < stages)
    return {};
  Partition partition(units, stages);
  return partition.divide(partition.findBound());
}

} // namespace ds::analysis
