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

/// Items of more than this take long to place, and are tried in fewer ways.
static constexpr size_t kManyItems = 2500;

/// The last 0.02 % are not worth a search: mixed alignments often make them unreachable.
static int64_t enough(int64_t target) { return target + target / 4096; }

/// For each walk from an order by fullness: a hundred moves of a thousand items.
static constexpr int64_t kPressSteps = 20'000'000;

/// For the walk that stops at the first item that sticks out: thirty moves of eight thousand items.
static constexpr int64_t kHasteSteps = 120'000'000;

namespace {

/// All views of a component, and the best packing any of them found.
class Portfolio {
public:
  Portfolio(const Component &component, int64_t target, int64_t &budget)
      : component(component), fillable(component.obstacles.empty()),
        isFullRarely(hasFullestMoments(component.items, component.horizon)), target(target), budget(budget) {
    views.push_back(std::make_unique<View>(component));
  }

  /// What training steps are: lifetimes that nest, around moments that are full. Returns whether that is
  /// enough.
  bool nest();
  /// Walks on from there. Returns whether that is enough.
  bool press();
  /// Looks at the component in boxes as well, where there are any.
  void addBoxes(BoxOrder order) {
    Boxing boxing(component.items, order);
    if (boxing.rootItems().size() < component.items.size())
      views.insert(std::prev(views.end()), std::make_unique<View>(component, std::move(boxing)));
  }
  /// Whether orders by fullness say something, and there are many items: each construction takes long.
  bool isLargeStep() const { return isFullRarely && component.items.size() > kManyItems; }
  /// What most often meets the target of a large step, each in the view where it does. Returns whether that
  /// is enough.
  bool constructLarge();
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
  bool packBackwards();
  bool packByBest();
  bool hasten();
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

  const Component &component;
  bool fillable;                            ///< valleys know no obstacles
  bool isFullRarely;                        ///< orders by fullness say something
  std::vector<std::unique_ptr<View>> views; ///< the unboxed one last
  int64_t target;
  int64_t &budget;
};

} // namespace

bool Portfolio::nest() {
  const int64_t near = target + (target >> 20); // what is left is the price of alignments
  runs(*views.back(), [&](Search &search) {
    search.tryOrder(search.sequence(Sequence::Lifetime), Fit::First);
    for (AtFullest among : kAtFullest)
      if (search.best.top > near && isFullRarely)
        search.tryOrder(search.fullest(among), Fit::First);
  });
  return best.top <= near || budget <= 0;
}

bool Portfolio::press() {
  for (AtFullest among : kAtFullest)
    if (isFullRarely && runs(*views.back(), [&](Search &search) {
          search.press(search.fullest(among), enough(target), std::min(kPressSteps, budget / 10));
        }))
      return true;
  return best.top <= enough(target);
}

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

/// Where the first of such orders is the best so far, the others are worth their time.
bool Portfolio::packBackwards() {
  for (int32_t part : {256, 512, 128}) {
    const int64_t known = best.top;
    if (runs(*views.back(), [&](Search &search) {
          search.tryOrder(search.backwards(component.horizon / part, target), Fit::Best);
        }))
      return true;
    if (part == 256 && best.top == known)
      return false;
  }
  return false;
}

/// Orders by fullness leave holes that best fit keeps for what is as large as they are.
bool Portfolio::packByBest() {
  return std::any_of(kAtFullestByBest.begin(), kAtFullestByBest.end(), [&](AtFullest among) {
    return runs(*views.back(), [&](Search &search) { search.tryOrder(search.fullest(among), Fit::Best); });
  });
}

/// A walk gains a few items; what is far from the target is not a few items away.
bool Portfolio::hasten() {
  return best.top - target < target / 32 && runs(*views.back(), [&](Search &search) {
           search.hasten(search.fullest(AtFullest::Widest), target, std::min(kHasteSteps, budget / 2));
         });
}

bool Portfolio::constructLarge() {
  target += target >> 20; // what is left is the price of alignments
  View &boxed = *views.front(), &single = *views.back();
  for (Filling filling : {Filling::Largest, Filling::Touching})
    if (fillable && runs(boxed, [&](Search &search) { search.tryFilling(filling, search.unitWeights()); }))
      return true;
  // What is large finds its place before what is small takes a part of it, and that then lies on top.
  if (runs(single, [](Search &search) { search.tryOrder(search.sequence(Sequence::Size), Fit::First); }))
    return true;
  return packByBest() || hasten();
}

bool Portfolio::construct() {
  if (constructFew())
    return true;
  if (runsAll([](Search &search) { search.tryOrder(search.sequence(Sequence::Lifetime), Fit::First); }))
    return true;
  if (packBackwards())
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
  target = enough(target);
  if (best.top <= target)
    return;
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
  auto parts = int64_t(views.size());
  runsAll([&](Search &search) {
    const int64_t part = budget / parts--;
    if (search.items.size() <= kManyItems && fillable)
      search.backjump(target, best.top, part);
  });
}

/// Constructions, walks from the first of them if it `presses`, then improvement of the best for as long as
/// `budget` lasts.
static Packing packOnce(const Component &component, int64_t target, bool presses, int64_t &budget) {
  constexpr size_t kAllOrders = 7; // some order gives an optimum; 7! = 5040
  Portfolio portfolio(component, target, budget);
  if (portfolio.nest())
    return std::move(portfolio.best);
  portfolio.addBoxes(BoxOrder::ChainsFirst);
  if (portfolio.isLargeStep() && portfolio.constructLarge())
    return std::move(portfolio.best);
  portfolio.addBoxes(BoxOrder::StacksFirst);
  if (!portfolio.construct()) {
    if (component.items.size() <= kAllOrders)
      portfolio.tryAllOrders();
    else if (!presses || !portfolio.press())
      portfolio.improve();
  }
  return std::move(portfolio.best);
}

Packing pack(const Component &component, int64_t target, int64_t &budget) {
  // Nearly all meet the target in this; what does not is worth the backjumps, and the portfolio again after
  // it.
  constexpr int64_t kFirstSteps = 100'000'000 + 3 * kPressSteps;
  constexpr size_t kTooMany = 5000; // for backjumps, in boxes as well: the first attempt is the only one
  int64_t first = component.items.size() > kTooMany ? budget : std::min(budget, kFirstSteps);
  budget -= first;
  Packing best = packOnce(component, target, /*presses=*/true, first);
  budget += first;
  auto improve = [&](Packing packing) {
    if (packing.top < best.top)
      best = std::move(packing);
  };
  if (best.top > enough(target) && budget > 0) {
    int64_t half = budget / 2;
    budget -= half;
    Portfolio portfolio(component, enough(target), half);
    portfolio.best = best;
    for (BoxOrder order : {BoxOrder::ChainsFirst, BoxOrder::StacksFirst})
      portfolio.addBoxes(order);
    portfolio.backjump();
    improve(std::move(portfolio.best));
    budget += half;
  }
  if (best.top > enough(target) && budget > 0)
    improve(packOnce(component, target, /*presses=*/false, budget));
  return best;
}

} // namespace ds::analysis::detail
