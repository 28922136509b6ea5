//===- Placer.cpp - First fit into an arena, fast -------------------------------===//

#include "Placer.h"

#include "ds/Support/Align.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>

namespace ds::analysis::detail {

Placer::Block::Block() {
  std::fill_n(begin, kBlock, std::numeric_limits<int32_t>::max()); // an empty slot overlaps nothing
  std::fill_n(end, kBlock, 0);
}

void Placer::Block::insert(int at, const Placed &placed, uint64_t bits) {
  auto shift = [&](auto *array) { std::copy_backward(array + at, array + count, array + count + 1); };
  shift(begin), shift(end), shift(lo), shift(hi);
  begin[at] = placed.begin, end[at] = placed.end, lo[at] = placed.lo, hi[at] = placed.hi;
  mask |= bits;
  top = std::max(top, placed.hi);
  lastBegin = std::max(lastBegin, placed.begin), firstEnd = std::min(firstEnd, placed.end);
  ++count;
}

Placer::Placer(const std::vector<Item> &items, int32_t horizon, int64_t floor)
    : horizon(std::max(horizon, 1)), floor(floor), holes(items, this->horizon, floor) {
  clear();
}

void Placer::clear() {
  blocks.assign(1, Block());
  order.assign(1, 0);
  holes.clear();
}

uint64_t Placer::bitsOf(int32_t begin, int32_t end) const {
  int first = int(int64_t(begin) * 64 / horizon), last = int(int64_t(end - 1) * 64 / horizon);
  uint64_t upTo = last >= 63 ? ~uint64_t(0) : (uint64_t(1) << (last + 1)) - 1;
  return upTo & ~((uint64_t(1) << first) - 1);
}

/// Makes room in a full block: its upper half becomes a block of its own.
void Placer::split(size_t orderIndex) {
  uint32_t lowId = order[orderIndex], highId = uint32_t(blocks.size());
  blocks.emplace_back();
  Block &low = blocks[lowId], &high = blocks[highId];
  Block old = low;
  low = Block();
  for (int i = 0; i < old.count; ++i) {
    Block &half = i < kBlock / 2 ? low : high;
    half.insert(half.count, {old.begin[i], old.end[i], old.lo[i], old.hi[i]},
                bitsOf(old.begin[i], old.end[i]));
  }
  order.insert(order.begin() + orderIndex + 1, highId);
  stepCount += 40 + int64_t(order.size() - orderIndex) / 16;
}

void Placer::occupy(const Placed &placed) {
  // The last block whose first item lies at or below the new one.
  auto after = std::upper_bound(order.begin() + 1, order.end(), placed.lo,
                                [&](int64_t lo, uint32_t id) { return lo < blocks[id].lo[0]; });
  size_t index = size_t(after - order.begin()) - 1;
  if (blocks[order[index]].count == kBlock) {
    split(index);
    if (placed.lo >= blocks[order[index + 1]].lo[0])
      ++index;
  }
  Block &block = blocks[order[index]];
  int at = int(std::upper_bound(block.lo, block.lo + block.count, placed.lo) - block.lo);
  block.insert(at, placed, bitsOf(placed.begin, placed.end));
  holes.fill(placed);
  stepCount += 20;
}

/// How many of the block's items live at some time of [from, to). A sum, for compilers make vectors of it.
int Placer::Block::countLive(int32_t from, int32_t to) const {
  if (allLive(from, to))
    return count;
  int live = 0;
  for (int i = 0; i < kBlock; ++i)
    live += (begin[i] < to) & (end[i] > from);
  return live;
}

/// Bit i: whether item i does.
unsigned Placer::Block::findLive(int32_t from, int32_t to) const {
  if (allLive(from, to))
    return (1u << count) - 1;
  unsigned live = 0;
  for (int i = 0; i < kBlock; ++i)
    live |= unsigned((begin[i] < to) & (end[i] > from)) << i;
  return live;
}

int64_t Placer::place(const Item &item, Fit fit) {
  const uint64_t bits = bitsOf(item.begin, item.end);
  const int64_t least = holes.below(item);
  int64_t top = alignTo(std::max(floor, least), item.align); // everything live below is taken
  int64_t best = -1, bestGap = std::numeric_limits<int64_t>::max();
  for (uint32_t id : order) {
    const Block &block = blocks[id];
    ++stepCount;
    if (!(block.mask & bits))
      continue;
    if (block.top <= least) { // it counts as looked at, so that a budget allows as much as without `holes`
      stepCount += 6 + 2 * block.countLive(item.begin, item.end);
      continue;
    }
    unsigned live = block.findLive(item.begin, item.end);
    stepCount += 6 + 2 * std::popcount(live);
    examinedCount += std::popcount(live);
    for (; live; live &= live - 1) {
      int i = std::countr_zero(live);
      int64_t gap = block.lo[i] - top;
      if (gap >= item.size && gap < bestGap) {
        best = top, bestGap = gap;
        if (fit == Fit::First)
          break;
      }
      top = std::max(top, alignTo(block.hi[i], item.align));
    }
    if (best >= 0 && fit == Fit::First)
      break;
  }
  int64_t lo = best >= 0 ? best : top;
  occupy({item.begin, item.end, lo, lo + item.size});
  return lo;
}

} // namespace ds::analysis::detail
