//===- LargestSize.cpp - The largest size that fits, by few plans ------------------===//
#include "LargestSize.h"

#include <algorithm>

using namespace ds;
using namespace ds::planner;

/// Larger sizes are not looked for.
static constexpr int64_t kMostUnits = int64_t{1} << 24;

bool LargestSize::probe(int64_t size) {
  report::PlanChoice choice;
  choice.fits = false;
  Status planned = plan(size, choice);
  if (planned && choice.fits) {
    before = low;
    low = {size, static_cast<double>(choice.deviceBytes)};
    return true;
  }
  above = high;
  high = {size, static_cast<double>(choice.deviceBytes)};
  refused = planned ? "" : planned.error().message;
  if (!planned)
    error = planned.error();
  return false;
}

bool LargestSize::isPressed() const { return low.peak > 0.99 * static_cast<double>(limit); }

/// A size between the bounds; every third is their middle, lest a curve that bends makes it slow.
int64_t LargestSize::between(unsigned round) const {
  int64_t middle = low.size + (high->size - low.size) / 2;
  const Point *from = &low, *to = &*high;
  bool isFound = above && above->peak > high->peak; // by two that do not fit, which are on one line
  if (isFound && (isPressed() || low.size == 0))
    from = &*high, to = &*above;
  else if (round % 3 == 2 || low.size == 0 || isPressed() || high->peak <= low.peak)
    return middle;
  double slope = (to->peak - from->peak) / static_cast<double>(to->size - from->size);
  double size = static_cast<double>(from->size) + (static_cast<double>(limit) - from->peak) / slope;
  return std::clamp(static_cast<int64_t>(size), low.size + 1, high->size - 1);
}

/// The first size that should not fit, by the line through the two that do.
int64_t LargestSize::beyond() const {
  double slope = (low.peak - before.peak) / static_cast<double>(std::max<int64_t>(low.size - before.size, 1));
  if (before.size == 0 || slope <= 0 || isPressed())
    return std::min(2 * low.size, kMostUnits);
  auto more = static_cast<int64_t>(std::min((static_cast<double>(limit) - low.peak) / slope, 1e7));
  return std::min(low.size + std::max<int64_t>(more, 0) + 1, kMostUnits);
}

Result<int64_t> LargestSize::answer() const {
  if (low.size == 0 && !refused.empty())
    return *error;
  return low.size;
}

Result<int64_t> LargestSize::find(int64_t start) {
  for (int64_t size = start; probe(size) && size < kMostUnits;)
    size = std::min(size * 4, kMostUnits);
  for (unsigned round = 0; high && isOpen(); ++round)
    probe(between(round));
  return answer();
}

Result<int64_t> LargestSize::findNear(int64_t present, int64_t guess, unsigned most) {
  bool fits = probe(present);
  int64_t next = fits ? std::max(guess, present + 1) : std::clamp<int64_t>(guess, 1, present - 1);
  for (unsigned round = 0; round < most && isOpen() && low.size < kMostUnits; ++round) {
    if (next > 0)
      probe(next);
    if (isOpen())
      next = high ? between(round) : beyond();
  }
  return answer();
}

std::optional<int64_t> LargestSize::gap() const {
  if (!high || !isOpen())
    return std::nullopt;
  return high->size;
}
