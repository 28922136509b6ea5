//===- Packer.cpp - The search over packings of one component -------------------===//

#include "Packer.h"

#include "Boxing.h"
#include "Random.h"
#include "Skyline.h"
#include "WasteSearch.h"

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
constexpr std::array kFillings = {Filling::Touching, Filling::Longest, Filling::Level, Filling::Largest};

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
  /// Fills valleys and keeps the result if it is the best.
  void tryFilling(Filling filling, const Weights &weights);
  /// Asks for less and less, down to `target`, of a search that knows what may be lost.
  void tighten(int64_t target, int64_t maxSteps);
  /// Fills valleys again and again; each time what stuck out of `target` counts for more.
  void reweigh(Filling filling, int64_t target, int64_t maxSteps);
  /// Improves the best order by moving what sticks out of `target` forward.
  void repair(int64_t target, int64_t maxSteps);
  /// For a handful of items only.
  void tryAllOrders(int64_t target);

  Packing packed(std::vector<int64_t> offsets) const;
  int64_t steps() const { return placer.steps() + fillingSteps; }
  Weights unitWeights() const { return Weights(items.size(), kUnitWeight); }
  bool sticksOut(const Packing &packing, int32_t id, int64_t target) const {
    return packing.offsets[id] + items[id].size > target;
  }

private:
  /// Takes `packing` over if it is better than the best.
  bool keep(const Packing &packing, std::vector<int32_t> order, Fit fit);
  /// The same for addresses that came from elsewhere.
  void keepIfBetter(const Packing &packing);
  bool findBelow(int64_t top, uint32_t attempts, int64_t endSteps);
  std::vector<int32_t> movedForward(const std::vector<int32_t> &order, const Packing &packing, int64_t target,
                                    Random &random) const;

public:
  const Component &component;
  std::vector<Item> items;
  Placer placer;
  Packing best;
  std::vector<int32_t> bestOrder;
  Fit bestFit = Fit::First;
  int64_t fillingSteps = 0;
  Packing lastFilled;
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

/// Whether a packing below `top` was found.
bool Search::findBelow(int64_t top, uint32_t attempts, int64_t endSteps) {
  for (uint32_t seed = 0; seed < attempts && steps() < endSteps; ++seed)
    if (std::optional<std::vector<int64_t>> offsets =
            packBelow(items, component.floor, top, seed, endSteps - placer.steps(), fillingSteps)) {
      keepIfBetter(packed(std::move(*offsets)));
      return true;
    }
  return false;
}

void Search::tighten(int64_t target, int64_t maxSteps) {
  const int64_t endSteps = steps() + maxSteps;
  // Where nothing may be lost nearly every move is forced, and another order is soon tried.
  if (findBelow(target, 8, steps() + maxSteps / 8))
    return;
  while (best.top > target && findBelow(target + (best.top - target) / 2, 3, endSteps)) {
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

/// `order` with most of what ends above `target` at random places between the front and where it stood.
std::vector<int32_t> Search::movedForward(const std::vector<int32_t> &order, const Packing &packing,
                                          int64_t target, Random &random) const {
  std::vector<int32_t> stay, result;
  std::vector<std::pair<uint32_t, int32_t>> moved;
  for (uint32_t at = 0; at < order.size(); ++at)
    if (sticksOut(packing, order[at], target) && random.below(4) != 0)
      moved.push_back({random.below(at + 1), order[at]});
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
    std::vector<int32_t> next = movedForward(order, current, target, random);
    Packing packing = run(next, bestFit);
    keep(packing, next, bestFit);
    // Equal is accepted: plateaus are crossed by walking on them.
    if (packing.top <= current.top) {
      current = std::move(packing);
      order = std::move(next);
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

namespace {

/// All views of a component, and the best packing any of them found.
class Portfolio {
public:
  Portfolio(const Component &component, int64_t target, int64_t &budget)
      : fillable(component.obstacles.empty()), views(makeViews(component)), target(target), budget(budget) {}

  /// Each construction once. Returns whether that is enough.
  bool construct();
  /// Every order of the items themselves.
  void tryAllOrders() {
    runs(*views.back(), [&](Search &search) { search.tryAllOrders(target); });
  }
  /// Spends what is left of the budget.
  void improve();
  Packing best;

private:
  bool constructFew();
  /// Whether the target is met or the budget spent after `action` on the view.
  template <class Action>
  bool runs(View &view, Action action) {
    int64_t before = view.search.steps();
    action(view.search);
    budget -= view.search.steps() - before;
    if (best.offsets.empty() || view.search.best.top < best.top)
      best = view.best();
    return best.top <= target || budget <= 0;
  }
  template <class Action>
  bool runsAll(Action action) {
    return std::any_of(views.begin(), views.end(), [&](auto &view) { return runs(*view, action); });
  }

  bool fillable; ///< valleys know no obstacles
  std::vector<std::unique_ptr<View>> views;
  int64_t target;
  int64_t &budget;
};

} // namespace

/// First the boxes where they are few: all is soon tried with them, and exact where the packing was cut.
bool Portfolio::constructFew() {
  constexpr size_t kFewItems = 1000;
  for (auto &view : views) {
    if (view->search.items.size() > kFewItems || !fillable)
      continue;
    if (runs(*view,
             [](Search &search) { search.tryOrder(search.sequence(Sequence::Lifetime), Fit::First); }) ||
        runs(*view, [&](Search &search) { search.tryFilling(Filling::Touching, search.unitWeights()); }) ||
        runs(*view, [&](Search &search) { search.tighten(target, budget / 16); }))
      return true;
  }
  return false;
}

bool Portfolio::construct() {
  if (constructFew())
    return true;
  // What training steps are: lifetimes that nest.
  if (runsAll([](Search &search) { search.tryOrder(search.sequence(Sequence::Lifetime), Fit::First); }))
    return true;
  for (Filling filling : kFillings)
    if (fillable && runsAll([&](Search &search) { search.tryFilling(filling, search.unitWeights()); }))
      return true;
  for (Sequence kind : kSequences)
    for (Fit fit : {Fit::First, Fit::Best})
      if (runsAll([&](Search &search) { search.tryOrder(search.sequence(kind), fit); }))
        return true;
  return false;
}

void Portfolio::improve() {
  // The last 0.02 % are not worth a search: mixed alignments often make them unreachable.
  target += target / 4096;
  if (best.top <= target)
    return;
  constexpr size_t kManyItems = 2500;
  if (fillable && runsAll([&](Search &search) {
        if (search.items.size() <= kManyItems)
          search.tighten(target, budget / 2);
      }))
    return;
  int64_t parts =
      int64_t(views.size() * (fillable ? kFillings.size() + 1 : 1)); // each gets as much as the others
  for (Filling filling : kFillings)
    if (fillable && runsAll([&](Search &search) { search.reweigh(filling, target, budget / parts--); }))
      return;
  runsAll([&](Search &search) { search.repair(target, budget / parts--); });
}

Packing pack(const Component &component, int64_t target, int64_t &budget) {
  constexpr size_t kAllOrders = 7; // some order gives an optimum; 7! = 5040
  Portfolio portfolio(component, target, budget);
  if (!portfolio.construct()) {
    if (component.items.size() <= kAllOrders)
      portfolio.tryAllOrders();
    else
      portfolio.improve();
  }
  return std::move(portfolio.best);
}

} // namespace ds::analysis::detail
