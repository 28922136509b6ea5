//===- LargestSize.cpp - The largest size that fits, by few plans ------------------===//
#include "LargestSize.h"

#include <algorithm>
#include <cmath>

using namespace ds;
using namespace ds::planner;

/// Larger sizes are not looked for.
static constexpr int64_t kMostUnits = int64_t{1} << 24;

bool LargestSize::probe(int64_t size) {
  report::PlanChoice choice;
  choice.fits = false;
  Status planned = plan(size, choice);
  plans += bool(planned);
  if (planned && choice.fits) {
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

void LargestSize::probeLeast(int64_t size, const Plan &least) {
  report::PlanChoice choice;
  choice.fits = false;
  if (!least(size, choice)) { // as every plan of it
    probe(size);
    return;
  }
  ++plans;
  made.push_back({size, static_cast<double>(choice.deviceBytes)});
  if (choice.fits && size > low.size)
    low = made.back();
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

/// The largest size that should fit, by the line through the two plans that are nearest to the limit, or
/// through one and what all sizes take.
int64_t LargestSize::onLine(int64_t fixedBytes) const {
  auto distance = [&](const Point &point) { return std::abs(point.peak - static_cast<double>(limit)); };
  std::vector<Point> nearest = made;
  std::sort(nearest.begin(), nearest.end(), [&](const Point &a, const Point &b) {
    return std::pair(distance(a), a.size) < std::pair(distance(b), b.size);
  });
  if (nearest.empty())
    return low.size;
  const Point from = nearest.front();
  const Point to = nearest.size() > 1 ? nearest[1] : Point{0, static_cast<double>(fixedBytes)};
  double slope = (to.peak - from.peak) / static_cast<double>(to.size - from.size);
  double more = slope > 0 ? std::floor((static_cast<double>(limit) - from.peak) / slope) : 0;
  int64_t size = from.size + static_cast<int64_t>(std::clamp(more, -1e7, 1e7));
  for (const Point &point : made) // what did not fit is the larger by one at least
    if (point.peak > static_cast<double>(limit))
      size = std::min(size, point.size - 1);
  return std::min({size, high ? high->size - 1 : kMostUnits, kMostUnits});
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

Result<int64_t> LargestSize::findByLeast(const Start &start, const Plan &least, unsigned most) {
  if (start.fits)
    low = {start.present, 0};
  else
    high = Point{start.present, 0};
  const int64_t largest = high ? std::max<int64_t>(high->size - 1, 1) : kMostUnits;
  int64_t next = std::clamp(start.guess, std::min(low.size + 1, largest), largest);
  int64_t step = 1;
  for (bool isLeast = true; plans < most && isOpen() && low.size < kMostUnits;) {
    if (isLeast) {
      probeLeast(next, least);
    } else if (probe(next)) {
      step *= 2;
    }
    // Behind the last size that fits with least held, what the plans choose themselves may fit yet.
    next = onLine(start.fixedBytes);
    isLeast = next > low.size && refused.empty();
    if (isLeast)
      continue;
    next = low.size + step;
    if (high) // a model's refusal has nothing to do with where peaks are
      next = refused.empty() ? std::min(next, low.size + (high->size - low.size) / 2)
                             : low.size + (high->size - low.size) / 2;
  }
  return answer();
}

std::optional<int64_t> LargestSize::gap() const {
  if (!isOpen() || low.size >= kMostUnits)
    return std::nullopt;
  int64_t least = high ? high->size : kMostUnits;
  for (const Point &point : made)
    if (point.peak > static_cast<double>(limit))
      least = std::min(least, point.size);
  return least;
}
