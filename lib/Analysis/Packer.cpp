//===- Packer.cpp - The search over packings of one component -------------------===//

#include "Packer.h"

#include "Boxing.h"
#include "PackSearch.h"

#include <algorithm>
#include <memory>
#include <optional>

namespace ds::analysis::detail {

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
  /// Searches with backjumps in what few items there are.
  void backjump();
  Packing best;

private:
  bool constructFew();
  /// Whether the target is met or the budget spent after `action` on the view.
  template <class Action>
  bool runs(View &view, Action action) {
    int64_t before = view.search.steps();
    action(view.search);
    budget -= view.search.steps() - before;
    if (!view.search.best.offsets.empty() && (best.offsets.empty() || view.search.best.top < best.top))
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

void Portfolio::backjump() {
  constexpr size_t kManyItems = 2500;
  auto parts = int64_t(views.size());
  runsAll([&](Search &search) {
    const int64_t part = budget / parts--;
    if (search.items.size() <= kManyItems && fillable)
      search.backjump(target, best.top, part);
  });
}

/// Constructions, then improvement of the best for as long as `budget` lasts.
static Packing packOnce(const Component &component, int64_t target, int64_t &budget) {
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

Packing pack(const Component &component, int64_t target, int64_t &budget) {
  // Nearly all meet the target in this; what does not is worth the backjumps, and the portfolio again after
  // it.
  constexpr int64_t kFirstSteps = 100'000'000;
  int64_t first = std::min(budget, kFirstSteps);
  budget -= first;
  Packing best = packOnce(component, target, first);
  budget += first;
  const int64_t enough = target + target / 4096; // as improve() has it
  auto improve = [&](Packing packing) {
    if (packing.top < best.top)
      best = std::move(packing);
  };
  if (best.top > enough && budget > 0) {
    int64_t half = budget / 2;
    budget -= half;
    Portfolio portfolio(component, enough, half);
    portfolio.best = best;
    portfolio.backjump();
    improve(std::move(portfolio.best));
    budget += half;
  }
  if (best.top > enough && budget > 0)
    improve(packOnce(component, target, budget));
  return best;
}

} // namespace ds::analysis::detail
