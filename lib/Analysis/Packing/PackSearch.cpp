//===- PackSearch.cpp - Searches over one representation of a component ---------===//

#include "PackSearch.h"

#include "ConflictSearch.h"
#include "WasteSearch.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

namespace ds::analysis::detail {

Packing Search::run(const std::vector<int32_t> &order, Fit fit) {
  Packing packing;
  packing.offsets.resize(items.size());
  packing.top = component.floor;
  placer.clear();
  for (const Placed &obstacle : component.obstacles) {
    placer.occupy(obstacle);
    packing.top = std::max(packing.top, obstacle.hi);
  }
  for (int32_t id : order) {
    packing.offsets[id] = placer.place(items[id], fit);
    packing.top = std::max(packing.top, packing.offsets[id] + items[id].size);
  }
  return packing;
}

bool Search::keep(const Packing &packing, std::vector<int32_t> order, Fit fit) {
  if (!best.offsets.empty() && packing.top >= best.top)
    return false;
  best = packing;
  bestOrder = std::move(order);
  bestFit = fit;
  return true;
}

void Search::tryOrder(std::vector<int32_t> order, Fit fit) {
  Packing packing = run(order, fit);
  keep(packing, std::move(order), fit);
}

void Search::keepIfBetter(const Packing &packing) {
  if (!best.offsets.empty() && packing.top >= best.top)
    return;
  std::vector<int32_t> order(items.size()); // first fit in this order gives no worse packing
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::pair(packing.offsets[a], a) < std::pair(packing.offsets[b], b);
  });
  keep(packing, std::move(order), Fit::First);
}

Packing Search::packed(std::vector<int64_t> offsets) const {
  Packing packing{std::move(offsets), component.floor};
  for (size_t i = 0; i < items.size(); ++i)
    packing.top = std::max(packing.top, packing.offsets[i] + items[i].size);
  return packing;
}

void Search::tryFilling(Filling filling, const Weights &weights) {
  lastFilled = packed(fillValleys(items, weights, component.horizon, component.floor, filling, fillingSteps));
  keepIfBetter(lastFilled);
}

bool Search::findBelow(Pack *pack, int64_t top, uint32_t attempts, int64_t endSteps) {
  for (uint32_t seed = 0; seed < attempts && steps() < endSteps; ++seed)
    if (std::optional<std::vector<int64_t>> offsets =
            pack(items, component.floor, top, seed, endSteps - placer.steps(), fillingSteps)) {
      keepIfBetter(packed(std::move(*offsets)));
      return true;
    }
  return false;
}

void Search::tighten(int64_t target, int64_t maxSteps) {
  const int64_t endSteps = steps() + maxSteps;
  // Where nothing may be lost nearly every move is forced, and another order is soon tried.
  if (findBelow(packBelow, target, 8, steps() + maxSteps / 8))
    return;
  while (best.top > target && findBelow(packBelow, target + (best.top - target) / 2, 3, endSteps)) {
  }
}

void Search::backjump(int64_t target, int64_t known, int64_t maxSteps) {
  const int64_t endSteps = steps() + maxSteps;
  if (findBelow(packWithBackjumps, target, UINT32_MAX, steps() + maxSteps / 2))
    return;
  // What half of the way is too far for is tried at three quarters, and so on: the bound may be out of reach.
  for (int64_t floor = target; known - floor > target / 1024 && steps() < endSteps;) {
    const int64_t middle = floor + (known - floor) / 2;
    if (findBelow(packWithBackjumps, middle, UINT32_MAX, std::min(endSteps, steps() + maxSteps / 8)))
      known = best.top;
    else
      floor = middle;
  }
}

void Search::reweigh(Filling filling, int64_t target, int64_t maxSteps) {
  const int64_t end = steps() + maxSteps;
  Random random;
  Weights weights = unitWeights();
  while (true) {
    tryFilling(filling, weights);
    if (best.top <= target || steps() >= end)
      return;
    for (size_t i = 0; i < items.size(); ++i) {
      int64_t weight = weights[i], noise = random.below(1024);
      // Up by at most 30 %, or down by at most 2 %.
      weight +=
          sticksOut(lastFilled, int32_t(i), target) ? weight * noise * 3 / 10240 : -(weight * noise / 51200);
      weights[i] = std::clamp<int64_t>(weight, 16, kMaxWeight);
    }
  }
}

std::vector<int32_t> Search::sequence(Sequence kind) const {
  std::vector<int32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::pair<double, double>> keys;
  for (const Item &item : items) {
    double size = double(item.size), life = item.end - item.begin;
    switch (kind) {
    case Sequence::Size:
      keys.push_back({size, life});
      break;
    case Sequence::Area:
      keys.push_back({size * life, size});
      break;
    case Sequence::Lifetime:
      keys.push_back({life, size});
      break;
    case Sequence::LifetimeTimesRoot:
      keys.push_back({life * life * size, size});
      break;
    case Sequence::Begin:
      keys.push_back({-item.begin, life});
      break;
    }
  }
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; });
  return order;
}

std::vector<int32_t> Search::backwards(int32_t lead, int64_t target) const {
  const int64_t large = (target - component.floor) / 512;
  auto key = [&](int32_t id) {
    const Item &item = items[id];
    return std::tuple(-(item.end + (item.size > large ? lead : 0)), -item.size, item.begin, id);
  };
  std::vector<int32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return key(a) < key(b); });
  return order;
}

std::vector<int32_t> Search::movedForward(const std::vector<int32_t> &order, const Packing &packing,
                                          int64_t target, uint32_t share, Random &random) const {
  std::vector<int32_t> stay, result;
  std::vector<std::pair<uint32_t, int32_t>> moved;
  for (uint32_t at = 0; at < order.size(); ++at)
    if (sticksOut(packing, order[at], target) && random.below(4) != 0)
      moved.push_back({at - at / share + random.below(at / share + 1), order[at]});
    else
      stay.push_back(order[at]);
  std::sort(moved.begin(), moved.end());
  auto next = moved.begin();
  for (uint32_t i = 0; i < stay.size(); ++i) {
    for (; next != moved.end() && next->first <= i; ++next)
      result.push_back(next->second);
    result.push_back(stay[i]);
  }
  for (; next != moved.end(); ++next)
    result.push_back(next->second);
  return result;
}

void Search::repair(int64_t target, int64_t maxSteps) {
  const int64_t end = steps() + maxSteps;
  Random random;
  std::vector<int32_t> order = bestOrder;
  Packing current = run(order, bestFit);
  while (steps() < end && best.top > target) {
    std::vector<int32_t> next = movedForward(order, current, target, /*share=*/1, random);
    Packing packing = run(next, bestFit);
    keep(packing, next, bestFit);
    // Equal is accepted: plateaus are crossed by walking on them.
    if (packing.top <= current.top) {
      current = std::move(packing);
      order = std::move(next);
    }
  }
}

void Search::press(std::vector<int32_t> order, int64_t target, int64_t maxSteps) {
  constexpr uint32_t kShare = 4;
  const int64_t end = steps() + maxSteps;
  Random random;
  while (true) {
    Packing packing = run(order, Fit::First);
    keep(packing, order, Fit::First);
    if (best.top <= target || steps() >= end)
      return;
    order = movedForward(order, packing, target, kShare, random);
  }
}

size_t Search::countBelow(const std::vector<int32_t> &order, int64_t target) {
  placer.clear();
  for (const Placed &obstacle : component.obstacles)
    placer.occupy(obstacle);
  for (size_t at = 0; at < order.size(); ++at)
    if (placer.place(items[order[at]], Fit::First) + items[order[at]].size > target)
      return at;
  return order.size();
}

void Search::hasten(std::vector<int32_t> order, int64_t target, int64_t maxSteps) {
  const int64_t end = steps() + maxSteps;
  Random random;
  while (steps() < end) {
    const size_t at = countBelow(order, target);
    if (at == order.size()) {
      tryOrder(std::move(order), Fit::First);
      return;
    }
    if (at == 0)
      return;
    const uint32_t share = 2u << random.below(6); // now near to where it was, now far from it
    const size_t to = std::min(at - 1, at - at / share + random.below(uint32_t(at) / share + 1));
    std::rotate(order.begin() + to, order.begin() + at, order.begin() + at + 1);
  }
}

void Search::tryAllOrders(int64_t target) {
  std::vector<int32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  do
    tryOrder(order, Fit::First);
  while (best.top > target && std::next_permutation(order.begin(), order.end()));
}

} // namespace ds::analysis::detail
