//===- LocalBoxes.cpp - A rank's part of a state as boxes -------------------------===//

#include "LocalBoxes.h"

#include <algorithm>

namespace ds::rt {
namespace {

/// Entries of a dimension that lie together in the state and in the local tensor.
struct Stretch {
  int64_t logical, local, count;
};

/// What `ranges`, those of a local dimension, have of its entries [first, first + count).
std::vector<Stretch> stretchesOf(std::span<const IndexRange> ranges, int64_t first, int64_t count) {
  std::vector<Stretch> stretches;
  int64_t local = 0; // of the range's first entry
  for (const IndexRange &range : ranges) {
    const auto size = static_cast<int64_t>(range.count);
    const int64_t begin = std::max(first, local), end = std::min(first + count, local + size);
    if (begin < end)
      stretches.push_back({static_cast<int64_t>(range.first) + (begin - local), begin, end - begin});
    local += size;
  }
  return stretches;
}

/// The box that has one stretch of each dimension of a local tensor of `shape`.
LocalBox boxOf(std::span<const Stretch *const> stretches, std::span<const int64_t> shape) {
  LocalBox made;
  uint64_t stride = 1;
  bool whole = true; // of the dimensions so far, fastest first
  for (size_t d = shape.size(); d-- > 0;) {
    const Stretch &stretch = *stretches[d];
    made.box.offsets.insert(made.box.offsets.begin(), stretch.logical);
    made.box.shape.insert(made.box.shape.begin(), stretch.count);
    made.first += static_cast<uint64_t>(stretch.local) * stride;
    if (!whole && stretch.count > 1)
      made.repeats.insert(made.repeats.begin(), {static_cast<uint64_t>(stretch.count), stride});
    whole = whole && stretch.count == shape[d];
    stride *= static_cast<uint64_t>(shape[d]);
  }
  return made;
}

/// Adds the boxes that have one of `stretches` of each dimension of a local tensor of `shape`.
void addBoxes(const std::vector<std::vector<Stretch>> &stretches, std::span<const int64_t> shape,
              std::vector<LocalBox> &boxes) {
  std::vector<const Stretch *> chosen;
  for (const std::vector<Stretch> &each : stretches) {
    if (each.empty())
      return;
    chosen.push_back(each.data());
  }
  for (size_t d = shape.size() + 1; d > 0;) {
    boxes.push_back(boxOf(chosen, shape));
    for (d = shape.size(); d > 0 && ++chosen[d - 1] == stretches[d - 1].data() + stretches[d - 1].size(); --d)
      chosen[d - 1] = stretches[d - 1].data();
  }
}

} // namespace

std::vector<LocalBox> localBoxesOf(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape,
                                   uint32_t rank, uint64_t first, uint64_t count) {
  const std::vector<int64_t> local = localShape(mesh, layout, shape);
  std::vector<std::vector<IndexRange>> ranges;
  for (size_t d = 0; d < shape.size(); ++d)
    ranges.push_back(localRanges(mesh, layout, shape, rank, d));
  std::vector<LocalBox> boxes;
  for (const Box &box : boxesOf(local, first, count)) {
    std::vector<std::vector<Stretch>> stretches;
    for (size_t d = 0; d < shape.size(); ++d)
      stretches.push_back(stretchesOf(ranges[d], box.offsets[d], box.shape[d]));
    addBoxes(stretches, local, boxes);
  }
  return boxes;
}

} // namespace ds::rt
