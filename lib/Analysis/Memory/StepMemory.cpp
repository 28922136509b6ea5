//===- StepMemory.cpp - What is held of each space, from when to when -------------===//
#include "ds/Analysis/Memory/StepMemory.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace ds::analysis {

int64_t &StepMemory::change(uint32_t space, uint32_t moment) {
  if (changes[space].size() <= moment)
    changes[space].resize(std::max(moment, moments) + 1, 0);
  return changes[space][moment];
}

void StepMemory::hold(const MemoryHold &hold) {
  assert(hold.begin <= hold.end && hold.end <= moments && "held while moments pass");
  change(hold.space, hold.begin) += hold.bytes;
  change(hold.space, hold.end) -= hold.bytes;
}

void StepMemory::release(const MemoryHold &hold) {
  this->hold({hold.space, -hold.bytes, hold.begin, hold.end});
}

std::vector<int64_t> StepMemory::liveBytes(uint32_t space) const {
  std::vector<int64_t> live = changes[space];
  live.resize(moments, 0);
  std::partial_sum(live.begin(), live.end(), live.begin());
  return live;
}

int64_t StepMemory::mostBytes(uint32_t space) const {
  const std::vector<int64_t> live = liveBytes(space);
  return live.empty() ? 0 : *std::max_element(live.begin(), live.end());
}

} // namespace ds::analysis
