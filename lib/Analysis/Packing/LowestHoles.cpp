//===- LowestHoles.cpp - Below which address nothing more fits ---------------------===//

#include "LowestHoles.h"

#include "FullestOrder.h"
#include "Placer.h"

#include <algorithm>

namespace ds::analysis::detail {

LowestHoles::LowestHoles(const std::vector<Item> &items, int32_t horizon, int64_t floor) : floor(floor) {
  constexpr size_t kFewItems = 1000, kItemsPerCut = 32, kMostCuts = 128, kClasses = 6;
  if (items.size() < kFewItems)
    return;
  std::vector<int64_t> sizes;
  for (const Item &item : items)
    sizes.push_back(item.size);
  std::sort(sizes.begin(), sizes.end());
  for (size_t part = 0; part < kClasses; ++part)
    if (const int64_t size = sizes[part * sizes.size() / kClasses]; least.empty() || size > least.back())
      least.push_back(size);
  const std::vector<int64_t> live = liveBytes(items, horizon);
  const auto cuts = int32_t(std::min({items.size() / kItemsPerCut, kMostCuts, size_t(horizon)}));
  begins.push_back(0);
  for (int32_t cut = 0; cut < cuts; ++cut) {
    const auto from = live.begin() + int64_t(horizon) * cut / cuts,
               to = live.begin() + int64_t(horizon) * (cut + 1) / cuts;
    const auto fullest = int32_t(std::max_element(from, to) - live.begin());
    for (int32_t time : {fullest, fullest + 1})
      if (time > begins.back() && time < horizon)
        begins.push_back(time);
  }
  begins.push_back(horizon);
  for (size_t stretch = 0; stretch + 1 < begins.size(); ++stretch)
    stretchAt.resize(size_t(begins[stretch + 1]), uint16_t(stretch));
  stretchAt.push_back(uint16_t(begins.size() - 1));
  clear();
}

void LowestHoles::clear() { lowest.assign(least.size() * begins.size(), floor); }

void LowestHoles::fill(const Placed &placed) {
  if (least.empty())
    return;
  // The stretches that it lives through from begin to end.
  const size_t first = placed.begin > 0 ? stretchAt[placed.begin - 1] + 1 : 0, last = stretchAt[placed.end];
  for (size_t c = 0; c < least.size(); ++c) {
    const int64_t enough = placed.lo - least[c]; // from here on nothing fits below it
    int64_t *addresses = lowest.data() + c * begins.size();
    for (size_t stretch = first; stretch < last; ++stretch)
      addresses[stretch] =
          addresses[stretch] > enough ? std::max(addresses[stretch], placed.hi) : addresses[stretch];
  }
}

int64_t LowestHoles::below(const Item &item) const {
  if (least.empty())
    return floor;
  const size_t c = size_t(std::upper_bound(least.begin() + 1, least.end(), item.size) - least.begin()) - 1;
  const int64_t *addresses = lowest.data() + c * begins.size();
  return *std::max_element(addresses + stretchAt[item.begin], addresses + stretchAt[item.end - 1] + 1);
}

} // namespace ds::analysis::detail
