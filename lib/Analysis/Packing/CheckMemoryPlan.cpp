//===- CheckMemoryPlan.cpp - The judge of memory plans --------------------------===//
//
// Shares no code with the solver. One sweep for each segment: buffers enter an ordered map by address when
// they are born and leave it when they die; only the two neighbours of a newcomer can overlap it.
//
//===---------------------------------------------------------------------------===//

#include "ds/Analysis/Packing/MemoryPlan.h"

#include <algorithm>
#include <map>
#include <set>

namespace ds::analysis {

namespace {

class Judge {
public:
  Judge(const MemoryPlan &plan, const PackProblem &problem) : plan(plan), problem(problem) {}
  std::optional<Conflict> run();

private:
  std::optional<Conflict> checkOne(size_t index) const;
  std::optional<Conflict> sweep(const std::vector<size_t> &members);
  std::optional<Conflict> enter(size_t index);
  void leave(size_t index);
  Conflict fault(Conflict::Kind kind, size_t first, const std::string &what) const;
  std::string describe(size_t index) const;
  int64_t alignment(size_t index) const;
  int64_t padded(size_t index) const;

  const MemoryPlan &plan;
  const PackProblem &problem;
  std::map<int64_t, size_t> live; ///< address -> buffer
  int64_t liveBytes = 0, mostLive = 0;
};

} // namespace

int64_t Judge::alignment(size_t index) const {
  int64_t own = problem.buffers[index].alignment;
  return own == 0 ? problem.alignment : own;
}

/// The size in whole units of the alignment, or -1 if 63 bits do not hold it.
int64_t Judge::padded(size_t index) const {
  int64_t unit = alignment(index), bytes = problem.buffers[index].bytes;
  int64_t units = bytes / unit + (bytes % unit != 0), result = 0;
  return __builtin_mul_overflow(units, unit, &result) ? -1 : result;
}

std::string Judge::describe(size_t index) const {
  const PackBuffer &buffer = problem.buffers[index];
  std::string text = "buffer " + std::to_string(index) + " of " + std::to_string(buffer.bytes) + " bytes";
  if (index < plan.offsets.size())
    text += " at offset " + std::to_string(plan.offsets[index]);
  if (buffer.segment == PackBuffer::kAllSegments)
    return text + ", live in all segments";
  return text + ", live in [" + std::to_string(buffer.begin) + ", " + std::to_string(buffer.end) +
         ") of segment " + std::to_string(buffer.segment);
}

Conflict Judge::fault(Conflict::Kind kind, size_t first, const std::string &what) const {
  return {kind, int64_t(first), -1, describe(first) + " " + what};
}

/// What can be wrong with a buffer on its own.
std::optional<Conflict> Judge::checkOne(size_t index) const {
  const PackBuffer &buffer = problem.buffers[index];
  const int64_t offset = plan.offsets[index], unit = alignment(index);
  bool everywhere = buffer.segment == PackBuffer::kAllSegments;
  if (buffer.bytes < 0 || unit < 1 || __builtin_popcountll(uint64_t(unit)) != 1 ||
      (!everywhere && !(0 <= buffer.begin && buffer.begin < buffer.end)))
    return fault(Conflict::Kind::Invalid, index, "is malformed");
  if (offset < 0)
    return fault(Conflict::Kind::Negative, index, "lies below zero");
  if (buffer.fixedOffset >= 0 && offset != buffer.fixedOffset)
    return fault(Conflict::Kind::Moved, index, "was fixed at " + std::to_string(buffer.fixedOffset));
  if (offset % unit != 0)
    return fault(Conflict::Kind::Misaligned, index, "is not aligned to " + std::to_string(unit));
  int64_t size = padded(index), end = 0;
  if (buffer.bytes > 0 && (size < 0 || __builtin_add_overflow(offset, size, &end) || end > plan.arenaBytes))
    return fault(Conflict::Kind::Outside, index,
                 "ends beyond the arena of " + std::to_string(plan.arenaBytes) + " bytes");
  return std::nullopt;
}

std::optional<Conflict> Judge::enter(size_t index) {
  const int64_t lo = plan.offsets[index], hi = lo + padded(index);
  auto above = live.lower_bound(lo);
  auto collide = [&](size_t other) {
    Conflict conflict = fault(Conflict::Kind::Overlap, other, "overlaps " + describe(index));
    conflict.second = int64_t(index);
    return conflict;
  };
  if (above != live.end() && above->first < hi)
    return collide(above->second);
  if (above != live.begin()) {
    auto below = std::prev(above);
    if (below->first + padded(below->second) > lo)
      return collide(below->second);
  }
  live.emplace(lo, index);
  liveBytes += padded(index);
  mostLive = std::max(mostLive, liveBytes);
  return std::nullopt;
}

void Judge::leave(size_t index) {
  live.erase(plan.offsets[index]);
  liveBytes -= padded(index);
}

/// Buffers of one segment, in time; the dying leave before the newborn enter.
std::optional<Conflict> Judge::sweep(const std::vector<size_t> &members) {
  std::map<int64_t, std::pair<std::vector<size_t>, std::vector<size_t>>> events; // time -> dying, newborn
  for (size_t index : members) {
    events[problem.buffers[index].end].first.push_back(index);
    events[problem.buffers[index].begin].second.push_back(index);
  }
  for (auto &[time, event] : events) {
    for (size_t index : event.first)
      leave(index);
    for (size_t index : event.second)
      if (auto conflict = enter(index))
        return conflict;
  }
  return std::nullopt;
}

std::optional<Conflict> Judge::run() {
  if (plan.offsets.size() != problem.buffers.size())
    return Conflict{Conflict::Kind::Count, -1, -1,
                    std::to_string(plan.offsets.size()) + " offsets for " +
                        std::to_string(problem.buffers.size()) + " buffers"};
  std::map<uint32_t, std::vector<size_t>> segments;
  int64_t highestFixed = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (auto conflict = checkOne(i))
      return conflict;
    const PackBuffer &buffer = problem.buffers[i];
    if (buffer.bytes == 0)
      continue;
    if (buffer.fixedOffset >= 0)
      highestFixed = std::max(highestFixed, buffer.fixedOffset + padded(i));
    if (buffer.segment != PackBuffer::kAllSegments)
      segments[buffer.segment].push_back(i);
    else if (auto conflict = enter(i)) // stays in the map through all sweeps
      return conflict;
  }
  for (auto &[segment, members] : segments)
    if (auto conflict = sweep(members))
      return conflict;
  int64_t bound = std::max(mostLive, highestFixed);
  if (plan.lowerBound != bound || plan.arenaBytes < bound)
    return Conflict{Conflict::Kind::Bound, -1, -1,
                    "the plan claims a lower bound of " + std::to_string(plan.lowerBound) +
                        " and an arena of " + std::to_string(plan.arenaBytes) + " bytes, but " +
                        std::to_string(bound) + " bytes are needed at once"};
  return std::nullopt;
}

std::optional<Conflict> check(const MemoryPlan &plan, const PackProblem &problem) {
  return Judge(plan, problem).run();
}

} // namespace ds::analysis
