//===- PackSearch.h - Searches over one representation of a component -----------===//
//
// The moves of the packer's portfolio (Packer.cpp), each of which keeps the best packing found so far: orders
// for first fit, valleys to fill, searches below a given height, repairs. Effort is in steps of about a
// nanosecond.
//
// Example: a target of 100 bytes, and first fit by size ends at 112, with one item that sticks out. `repair`
// moves it forward in the order and runs first fit again: 106 is kept, 115 is not, until a top of 100 or no
// steps are left.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_PACKING_PACKSEARCH_H
#define DS_LIB_ANALYSIS_PACKING_PACKSEARCH_H

#include "FullestOrder.h"
#include "Packer.h"
#include "Random.h"
#include "Skyline.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace ds::analysis::detail {

/// Sequences in which first fit is good on some shape of lifetimes.
enum class Sequence : uint8_t { Size, Area, Lifetime, LifetimeTimesRoot, Begin };
inline constexpr std::array kSequences = {Sequence::Lifetime, Sequence::Size, Sequence::Area,
                                          Sequence::LifetimeTimesRoot, Sequence::Begin};
inline constexpr std::array kFillings = {Filling::Touching, Filling::Longest, Filling::Level,
                                         Filling::Largest};

/// One representation of a component's items (boxed or not) and what was found for it.
class Search {
public:
  Search(const Component &component, std::vector<Item> items)
      : component(component), items(std::move(items)),
        placer(this->items, component.horizon, component.floor) {}

  /// Places the items in the order given.
  Packing run(const std::vector<int32_t> &order, Fit fit);
  /// Runs one sequence and keeps the result if it is the best.
  void tryOrder(std::vector<int32_t> order, Fit fit);
  std::vector<int32_t> sequence(Sequence kind) const;
  /// From the last end to the first, in which large items, of more than 1/512 of `target`, lead by `lead`
  /// times: so they find their place before what is small takes a part of it.
  std::vector<int32_t> backwards(int32_t lead, int64_t target) const;
  std::vector<int32_t> fullest(AtFullest among) const {
    return orderByFullest(items, component.horizon, among);
  }
  /// Fills valleys and keeps the result if it is the best.
  void tryFilling(Filling filling, const Weights &weights);
  /// Asks for less and less, down to `target`, of a search that knows what may be lost.
  void tighten(int64_t target, int64_t maxSteps);
  /// The same by backjumping: many orders at `target`, then asks for less and less between it
  /// and the `known` top.
  void backjump(int64_t target, int64_t known, int64_t maxSteps);
  /// Fills valleys again and again; each time what stuck out of `target` counts for more.
  void reweigh(Filling filling, int64_t target, int64_t maxSteps);
  /// Improves the best order by moving what sticks out of `target` forward.
  void repair(int64_t target, int64_t maxSteps);
  /// Walks from `order`, whatever comes of a move, by moving what sticks out of `target` a little forward: by
  /// up to a quarter of what stands before it, past which order an order by fullness is lost.
  void press(std::vector<int32_t> order, int64_t target, int64_t maxSteps);
  /// Walks from `order`, for as long as something sticks out of `target`: the first that does so goes
  /// forward, by up to half of what stands before it, and nothing behind it is placed. In an order by
  /// fullness few items decide, so that this is many moves for the price of one placement of all.
  void hasten(std::vector<int32_t> order, int64_t target, int64_t maxSteps);
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
  /// Packs below a top by a seed: the addresses, or none. The last is the steps so far.
  using Pack = std::optional<std::vector<int64_t>>(const std::vector<Item> &items, int64_t floor, int64_t top,
                                                   uint32_t seed, int64_t endSteps, int64_t &steps);
  /// Whether `pack` found one below `top` in so many attempts, before `endSteps`.
  bool findBelow(Pack *pack, int64_t top, uint32_t attempts, int64_t endSteps);
  /// Places the items in the order given by first fit, until one sticks out of `target`; returns how many do
  /// not.
  size_t countBelow(const std::vector<int32_t> &order, int64_t target);
  /// `order` with most of what ends above `target` at random places up to a `share`-th of the way to the
  /// front.
  std::vector<int32_t> movedForward(const std::vector<int32_t> &order, const Packing &packing, int64_t target,
                                    uint32_t share, Random &random) const;

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

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_PACKING_PACKSEARCH_H
