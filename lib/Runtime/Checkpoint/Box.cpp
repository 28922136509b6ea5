//===- Box.cpp - Parts of tensors that others can name ----------------------------===//

#include "ds/Runtime/Checkpoint/Box.h"

#include <algorithm>

namespace ds::rt {

static uint64_t productOf(std::span<const int64_t> shape) {
  uint64_t product = 1;
  for (int64_t size : shape)
    product *= static_cast<uint64_t>(size);
  return product;
}

uint64_t Box::elements() const { return productOf(shape); }

namespace {

/// Cuts a range into boxes, one dimension after another.
class Cutter {
public:
  explicit Cutter(std::span<const int64_t> shape) : shape(shape), prefix(shape.size(), 0) {}

  /// Elements [first, first + count) of the part that the indices before `dimension` name.
  void cut(size_t dimension, uint64_t first, uint64_t count) {
    if (count == 0)
      return;
    if (dimension == shape.size())
      return add(dimension, 0, 0);
    const uint64_t row = productOf(shape.subspan(dimension + 1));
    const uint64_t begin = first / row, last = (first + count) / row; // rows, the last one not whole
    if (begin == last)
      return within(dimension, begin, first % row, count);
    const uint64_t head = (row - first % row) % row, tail = (first + count) % row;
    within(dimension, begin, first % row, head);
    add(dimension, begin + (head > 0), last - begin - (head > 0));
    within(dimension, last, 0, tail);
  }

  std::vector<Box> boxes;

private:
  /// A part of one row.
  void within(size_t dimension, uint64_t row, uint64_t first, uint64_t count) {
    prefix[dimension] = static_cast<int64_t>(row);
    cut(dimension + 1, first, count);
  }
  /// `count` whole rows of `dimension`.
  void add(size_t dimension, uint64_t begin, uint64_t count) {
    if (dimension < shape.size() && count == 0)
      return;
    Box box{prefix, std::vector<int64_t>(shape.begin(), shape.end())};
    std::fill_n(box.shape.begin(), dimension, 1);
    if (dimension < shape.size()) {
      box.offsets[dimension] = static_cast<int64_t>(begin);
      box.shape[dimension] = static_cast<int64_t>(count);
      std::fill(box.offsets.begin() + static_cast<ptrdiff_t>(dimension) + 1, box.offsets.end(), 0);
    }
    boxes.push_back(std::move(box));
  }

  std::span<const int64_t> shape;
  std::vector<int64_t> prefix; ///< index in each dimension that is already chosen
};

} // namespace

std::vector<Box> boxesOf(std::span<const int64_t> shape, uint64_t first, uint64_t count) {
  Cutter cutter(shape);
  cutter.cut(0, first, count);
  return std::move(cutter.boxes);
}

std::vector<ElementRun> runsOf(const Box &box, std::span<const int64_t> shape) {
  std::vector<ElementRun> runs;
  const uint64_t elements = box.elements();
  if (elements == 0)
    return runs;
  // Dimensions behind `inner` are whole: a run goes through them, and through the box's range in `inner`.
  size_t inner = shape.size();
  while (inner > 0 && (inner == shape.size() || box.shape[inner] == shape[inner]))
    --inner;
  const uint64_t block = productOf(std::span(box.shape).subspan(inner));
  for (uint64_t at = 0; at < elements; at += block) {
    uint64_t index = at, stride = 1, first = 0;
    for (size_t d = shape.size(); d-- > 0;) {
      const auto size = static_cast<uint64_t>(box.shape[d]);
      first += (static_cast<uint64_t>(box.offsets[d]) + index % size) * stride;
      index /= size;
      stride *= static_cast<uint64_t>(shape[d]);
    }
    runs.push_back({first, block, at});
  }
  return runs;
}

} // namespace ds::rt
