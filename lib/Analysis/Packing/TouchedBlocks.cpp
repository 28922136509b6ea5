//===- TouchedBlocks.cpp - When blocks of memory were touched last ---------------===//
#include "TouchedBlocks.h"

#include <limits>

namespace ds::analysis::detail {

/// Parts the run that `block` lies within in two, of which the second begins there.
void TouchedBlocks::splitAt(int64_t block) {
  auto behind = runs.lower_bound(block);
  if (behind == runs.begin())
    return;
  Run &run = std::prev(behind)->second;
  if (run.end <= block)
    return;
  runs.emplace_hint(behind, block, run);
  run.end = block;
}

double TouchedBlocks::touch(int64_t begin, int64_t end, double now) {
  splitAt(begin);
  splitAt(end);
  const auto first = runs.lower_bound(begin), last = runs.lower_bound(end);
  double sum = 0;
  int64_t known = 0;
  for (auto run = first; run != last; ++run) {
    const int64_t blocks = run->second.end - run->first;
    sum += double(blocks) * (now - run->second.time);
    known += blocks;
  }
  runs.insert_or_assign(runs.erase(first, last), begin, Run{end, now});
  return known < end - begin ? std::numeric_limits<double>::infinity() : sum / double(end - begin);
}

} // namespace ds::analysis::detail
