//===- Packer.cpp - The search over packings of one component -------------------===//

#include "Packer.h"

#include "Boxing.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>

namespace ds::analysis::detail {

namespace {

/// Sequences in which first fit is good on some shape of lifetimes.
enum class Sequence : uint8_t { Size, Area, Lifetime, LifetimeTimesRoot, Begin };
constexpr std::array kSequences = {Sequence::Lifetime, Sequence::Size, Sequence::Area,
                                   Sequence::LifetimeTimesRoot, Sequence::Begin};

/// xorshift64*: the same numbers on every machine.
class Random {
public:
  uint32_t below(uint32_t bound) {
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return uint32_t(((state * 0x2545F4914F6CDD1DULL) >> 32) * bound >> 32);
  }

private:
  uint64_t state = 0x9E3779B97F4A7C15ULL;
};

/// One representation of a component's items (boxed or not) and what was found for it.
class Search {
public:
  Search(const Component &component, std::vector<Item> items)
      : component(component), items(std::move(items)), placer(component.horizon, component.floor) {}

  /// Places the items in the order given.
  Packing run(const std::vector<int32_t> &order, Fit fit);
  /// Runs one sequence and keeps the result if it is the best.
  void tryOrder(std::vector<int32_t> order, Fit fit);
  std::vector<int32_t> sequence(Sequence kind) const;
  /// Improves the best order by moving what sticks out of `target` forward.
  void repair(int64_t target, int64_t maxSteps);
  /// For a handful of items only.
  void tryAllOrders(int64_t target);

  int64_t steps() const { return placer.steps(); }

  const Component &component;
  std::vector<Item> items;
  Placer placer;
  Packing best;
  std::vector<int32_t> bestOrder;
  Fit bestFit = Fit::First;
};

} // namespace

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

void Search::tryOrder(std::vector<int32_t> order, Fit fit) {
  Packing packing = run(order, fit);
  if (!best.offsets.empty() && packing.top >= best.top)
    return;
  best = std::move(packing);
  bestOrder = std::move(order);
  bestFit = fit;
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

void Search::repair(int64_t target, int64_t maxSteps) {
  const int64_t end = steps() + maxSteps;
  Random random;
  std::vector<int32_t> order = bestOrder;
  Packing current = best;
  while (steps() < end && best.top > target) {
    // What ends above the target moves to a place between the front and where it stood.
    std::vector<int32_t> next;
    std::vector<std::pair<uint32_t, int32_t>> moved;
    for (uint32_t at = 0; at < order.size(); ++at) {
      int32_t id = order[at];
      if (current.offsets[id] + items[id].size > target && random.below(4) != 0)
        moved.push_back({random.below(at + 1), id});
      else
        next.push_back(id);
    }
    std::sort(moved.begin(), moved.end());
    std::vector<int32_t> merged;
    size_t m = 0;
    for (uint32_t i = 0; i <= next.size(); ++i) {
      while (m < moved.size() && (moved[m].first <= i || i == next.size()))
        merged.push_back(moved[m++].second);
      if (i < next.size())
        merged.push_back(next[i]);
    }
    Packing packing = run(merged, bestFit);
    // Equal is accepted: plateaus are crossed by walking on them.
    if (packing.top <= current.top) {
      current = packing;
      order = merged;
    }
    if (packing.top < best.top) {
      best = packing;
      bestOrder = merged;
    }
  }
}

void Search::tryAllOrders(int64_t target) {
  std::vector<int32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  do
    tryOrder(order, Fit::First);
  while (best.top > target && std::next_permutation(order.begin(), order.end()));
}

namespace {

/// A component with its items as they are, or joined into boxes.
struct View {
  explicit View(const Component &component) : search(component, component.items) {}
  View(const Component &component, Boxing boxing)
      : boxing(std::move(boxing)), search(component, this->boxing->rootItems()) {}

  Packing best() const {
    if (!boxing)
      return search.best;
    return {boxing->expand(search.best.offsets), search.best.top};
  }

  std::optional<Boxing> boxing;
  Search search;
};

} // namespace

/// The unboxed view last; the others only where boxing joined anything.
static std::vector<std::unique_ptr<View>> makeViews(const Component &component) {
  std::vector<std::unique_ptr<View>> views;
  for (BoxOrder order : {BoxOrder::ChainsFirst, BoxOrder::StacksFirst}) {
    Boxing boxing(component.items, order);
    if (boxing.rootItems().size() < component.items.size())
      views.push_back(std::make_unique<View>(component, std::move(boxing)));
  }
  views.push_back(std::make_unique<View>(component));
  return views;
}

Packing pack(const Component &component, int64_t target, int64_t &budget) {
  constexpr size_t kAllOrders = 7; // some order gives an optimum; 7! = 5040
  std::vector<std::unique_ptr<View>> views = makeViews(component);
  Packing best;
  auto runs = [&](View &view, auto &&action) {
    int64_t before = view.search.steps();
    action(view.search);
    budget -= view.search.steps() - before;
    if (best.offsets.empty() || view.search.best.top < best.top)
      best = view.best();
    return best.top <= target || budget <= 0;
  };
  for (Sequence kind : kSequences)
    for (Fit fit : {Fit::First, Fit::Best})
      for (auto &view : views)
        if (runs(*view, [&](Search &search) { search.tryOrder(search.sequence(kind), fit); }))
          return best;
  if (component.items.size() <= kAllOrders) {
    runs(*views.back(), [&](Search &search) { search.tryAllOrders(target); });
    return best;
  }
  for (size_t i = 0; i < views.size(); ++i) {
    int64_t share = budget / int64_t(views.size() - i);
    if (runs(*views[i], [&](Search &search) { search.repair(target, share); }))
      return best;
  }
  return best;
}

} // namespace ds::analysis::detail
