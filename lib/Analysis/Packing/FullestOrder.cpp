//===- FullestOrder.cpp - Orders for first fit that begin where memory is full --===//

#include "FullestOrder.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

namespace ds::analysis::detail {

std::vector<int64_t> liveBytes(const std::vector<Item> &items, int32_t horizon) {
  std::vector<int64_t> live(size_t(horizon) + 1);
  for (const Item &item : items)
    live[item.begin] += item.size, live[item.end] -= item.size;
  std::partial_sum(live.begin(), live.end(), live.begin());
  return live;
}

bool hasFullestMoments(const std::vector<Item> &items, int32_t horizon) {
  const std::vector<int64_t> live = liveBytes(items, horizon);
  const int64_t most = *std::max_element(live.begin(), live.end());
  return 4 * std::count_if(live.begin(), live.end(),
                           [&](int64_t bytes) { return bytes >= most - most / 10; }) <=
         horizon;
}

namespace {

/// The fullest time of any stretch of the time line, by a table of those of all stretches of 2^k times.
class FullestTimes {
public:
  FullestTimes(const std::vector<Item> &items, int32_t horizon);
  int64_t liveAt(int32_t time) const { return live[time]; }
  /// The fullest time in [begin, end), the first of equals.
  int32_t fullestOf(int32_t begin, int32_t end) const {
    const int level = std::bit_width(uint32_t(end - begin)) - 1;
    return fuller(levels[level][begin], levels[level][end - (int32_t(1) << level)]);
  }

private:
  int32_t fuller(int32_t first, int32_t second) const { return live[first] >= live[second] ? first : second; }

  std::vector<int64_t> live;                ///< bytes, by time
  std::vector<std::vector<int32_t>> levels; ///< [k][begin]: of [begin, begin + 2^k)
};

} // namespace

FullestTimes::FullestTimes(const std::vector<Item> &items, int32_t horizon)
    : live(liveBytes(items, horizon)), levels(1, std::vector<int32_t>(horizon)) {
  std::iota(levels[0].begin(), levels[0].end(), 0);
  for (int32_t half = 1; 2 * half <= horizon; half *= 2) {
    const std::vector<int32_t> &halves = levels.back();
    std::vector<int32_t> level(size_t(horizon - 2 * half + 1));
    for (size_t begin = 0; begin < level.size(); ++begin)
      level[begin] = fuller(halves[begin], halves[begin + size_t(half)]);
    levels.push_back(std::move(level));
  }
}

std::vector<int32_t> orderByFullest(const std::vector<Item> &items, int32_t horizon, AtFullest among) {
  const FullestTimes times(items, horizon);
  using Key = std::tuple<int64_t, int32_t, int64_t, int64_t>;
  std::vector<Key> keys;
  for (const Item &item : items) {
    const int32_t at = times.fullestOf(item.begin, item.end);
    const int64_t left = at - item.begin, right = item.end - at;
    int64_t first = 0, second = 0;
    switch (among) {
    case AtFullest::Largest:
      first = -item.size, second = -(left + right);
      break;
    case AtFullest::Widest:
      first = -std::max(left, right), second = -std::min(left, right);
      break;
    case AtFullest::First:
      first = -left, second = -right;
      break;
    case AtFullest::Last:
      first = -right, second = -left;
      break;
    }
    keys.push_back({-times.liveAt(at), at, first, second});
  }
  std::vector<int32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
  return order;
}

} // namespace ds::analysis::detail
