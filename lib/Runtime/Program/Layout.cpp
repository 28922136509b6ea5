//===- Layout.cpp - Which elements of a state a rank holds ---------------------===//
#include "ds/Runtime/Program/Layout.h"

#include "Shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace ds::rt {

AxisSet Layout::axes() const {
  AxisSet all = bucket;
  for (AxisSet cut : cuts)
    all = all | cut;
  return all;
}

namespace {

/// The shape in whose dimensions cuts count.
std::span<const int64_t> viewOf(const Layout &layout, std::span<const int64_t> shape) {
  return layout.view.empty() ? shape : layout.view;
}

/// Into how many parts dimension `d` of the view is cut.
uint64_t partsOf(const Mesh &mesh, const Layout &layout, size_t d) {
  return layout.cuts.empty() ? 1 : mesh.size(layout.cuts[d]);
}

/// A dimension of the view as a rank has it.
struct ViewDimension {
  uint64_t parts; ///< into which it is cut
  uint64_t size;  ///< of one
  uint64_t first; ///< entry of the rank's
};
ViewDimension dimensionOf(const Mesh &mesh, const Layout &layout, std::span<const int64_t> view,
                          uint32_t rank, size_t d) {
  const uint64_t parts = partsOf(mesh, layout, d), size = static_cast<uint64_t>(view[d]) / parts;
  return {parts, size, parts == 1 ? 0 : mesh.position(rank, layout.cuts[d]) * size};
}

/// For each dimension of `shape` the end of those of `view` that it is the product of, the next one's first:
/// view [3, 2, 5], of whose rows all exist, has ends 2 and 3 for shape [6, 5]. Nothing where there are none.
std::optional<std::vector<size_t>> findEnds(std::span<const int64_t> view, std::span<const int64_t> shape) {
  std::vector<size_t> ends;
  size_t end = 0;
  for (int64_t size : shape) {
    int64_t product = 1;
    while (end < view.size() && (product != size || view[end] == 1))
      if (__builtin_mul_overflow(product, view[end++], &product))
        return std::nullopt;
    if (product != size)
      return std::nullopt;
    ends.push_back(end);
  }
  return end == view.size() ? std::optional(std::move(ends)) : std::nullopt;
}

/// The view without its padding.
std::vector<int64_t> existingView(const Layout &layout, std::span<const int64_t> shape) {
  const std::span<const int64_t> view = viewOf(layout, shape);
  std::vector<int64_t> existing(view.begin(), view.end());
  if (layout.existing)
    existing.front() = static_cast<int64_t>(*layout.existing);
  return existing;
}

/// A view that the state cannot be seen as.
std::string findViewMistake(const Layout &layout, std::span<const int64_t> shape) {
  if (layout.view.empty())
    return layout.existing ? fmt::format("has {} existing rows, but no view", *layout.existing)
                           : std::string();
  uint64_t padded = 1;
  for (int64_t size : layout.view)
    if (size < 1 || __builtin_mul_overflow(padded, static_cast<uint64_t>(size), &padded) ||
        padded > INT64_MAX)
      return fmt::format("has a view of size {}, or its product overflows", size);
  const auto rows = static_cast<uint64_t>(layout.view.front());
  if (layout.existing && (*layout.existing == 0 || *layout.existing >= rows))
    return fmt::format("has {} existing rows of {}, but allowed are 1 to {}", *layout.existing, rows,
                       rows - 1);
  const std::vector<int64_t> existing = existingView(layout, shape);
  if (elementsOf(existing) != elementsOf(shape))
    return fmt::format("has the view [{}] of {} elements, but {} elements", fmt::join(existing, ", "),
                       elementsOf(existing), elementsOf(shape));
  if (!findEnds(existing, shape))
    return fmt::format("has the view [{}], whose dimensions do not multiply to those of [{}]",
                       fmt::join(existing, ", "), fmt::join(shape, ", "));
  return {};
}

/// Pieces that the one cut dimension does not consist of, or that cannot be cut.
std::string findPieceMistake(const Mesh &mesh, const Layout &layout, std::span<const int64_t> view) {
  if (layout.pieces.empty())
    return {};
  if (layout.existing)
    return "has pieces and rows of padding, but only one of both is allowed";
  const auto isCut = [](AxisSet cut) { return !cut.isEmpty(); };
  if (const auto count = std::ranges::count_if(layout.cuts, isCut); count != 1)
    return fmt::format("has pieces and {} cut dimensions, but exactly one has pieces", count);
  const auto d = static_cast<size_t>(std::ranges::find_if(layout.cuts, isCut) - layout.cuts.begin());
  const auto parts = static_cast<int64_t>(partsOf(mesh, layout, d));
  int64_t left = view[d];
  for (int64_t piece : layout.pieces) {
    if (piece < 1 || piece > left)
      return fmt::format("has a piece of size {}, but {} left in dimension {}", piece, left, d);
    if (piece % parts != 0)
      return fmt::format("has a piece of size {}, which {} cannot cut into {} parts", piece,
                         mesh.spell(layout.cuts[d]), parts);
    left -= piece;
  }
  return left == 0 ? std::string() : fmt::format("has pieces that leave {} of dimension {}", left, d);
}

/// An axis that is none of the mesh's, or that cuts twice.
std::string findAxisMistake(const Mesh &mesh, const Layout &layout) {
  AxisSet seen;
  for (size_t d = 0; d <= layout.cuts.size(); ++d) {
    const AxisSet axes = d < layout.cuts.size() ? layout.cuts[d] : layout.bucket;
    if (!mesh.all().hasAll(axes))
      return fmt::format("has axes {:#x}, but the mesh has {}", axes.bits(), mesh.numAxes());
    if (axes.hasAny(seen))
      return fmt::format("is cut twice along {}", mesh.spell(axes & seen));
    seen = seen | axes;
  }
  return {};
}

/// Cuts that the view cannot have.
std::string findCutMistake(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape) {
  const std::span<const int64_t> view = viewOf(layout, shape);
  const char *of = layout.view.empty() ? "" : " of its view";
  if (!layout.cuts.empty() && layout.cuts.size() != view.size())
    return fmt::format("has cuts of {} dimensions, but {} dimensions{}", layout.cuts.size(), view.size(), of);
  if (std::string mistake = findAxisMistake(mesh, layout); !mistake.empty())
    return mistake;
  for (size_t d = 0; d < view.size(); ++d)
    if (const auto parts = static_cast<int64_t>(partsOf(mesh, layout, d)); view[d] % parts != 0)
      return fmt::format("has size {} in dimension {}{}, which {} cannot cut into {} parts", view[d], d, of,
                         mesh.spell(layout.cuts[d]), parts);
  return findPieceMistake(mesh, layout, view);
}

/// Entries of dimension `d`, which is cut, that the rank has.
std::vector<IndexRange> rangesOf(const Mesh &mesh, const Layout &layout, std::span<const int64_t> view,
                                 uint32_t rank, size_t d) {
  const ViewDimension own = dimensionOf(mesh, layout, view, rank, d);
  if (layout.pieces.empty())
    return {{own.first, own.size}};
  std::vector<IndexRange> ranges;
  uint64_t begin = 0;
  for (int64_t piece : layout.pieces) {
    const auto size = static_cast<uint64_t>(piece), part = size / own.parts;
    ranges.push_back({begin + mesh.position(rank, layout.cuts[d]) * part, part});
    begin += size;
  }
  return ranges;
}

/// Of a local tensor the elements that exist on `rank`: its first ones, for padding is behind them.
uint64_t existingElements(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape,
                          uint32_t rank) {
  const uint64_t elements = localElements(mesh, layout, shape);
  if (!layout.existing || elements == 0)
    return elements;
  const ViewDimension rows = dimensionOf(mesh, layout, layout.view, rank, 0);
  const uint64_t here = *layout.existing - std::min(*layout.existing, rows.first);
  return elements / rows.size * std::min(here, rows.size);
}

/// What shard `shard` of the bucket has of local elements [first, end).
HeldElements heldByShard(const Layout &layout, uint64_t first, uint64_t end, uint64_t shard) {
  const uint64_t begin = shard * layout.shardElements;
  const uint64_t from = std::max(begin, layout.offset + first),
                 to = std::min(begin + layout.shardElements, layout.offset + end);
  if (from >= to)
    return {};
  return {from - layout.offset, to - from, from - begin};
}

/// What `rank` has of local elements [first, end).
HeldElements heldOf(const Mesh &mesh, const Layout &layout, uint64_t first, uint64_t end, uint32_t rank) {
  if (!layout.isBucketed())
    return first == end ? HeldElements() : HeldElements{first, end - first, first};
  return heldByShard(layout, first, end, mesh.position(rank, layout.bucket));
}

} // namespace

std::string findMistake(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape) {
  if (std::string mistake = findViewMistake(layout, shape); !mistake.empty())
    return mistake;
  if (std::string mistake = findCutMistake(mesh, layout, shape); !mistake.empty())
    return mistake;
  if (!layout.isBucketed()) {
    if (layout.offset == 0 && layout.shardElements == 0)
      return {};
    return fmt::format("has offset {} and shards of {} elements, but no bucket", layout.offset,
                       layout.shardElements);
  }
  uint64_t bucket = 0;
  const uint64_t elements = localElements(mesh, layout, shape), shards = mesh.size(layout.bucket);
  if (__builtin_mul_overflow(layout.shardElements, shards, &bucket))
    return fmt::format("has {} shards of {} elements, which overflow 64 bits", shards, layout.shardElements);
  if (layout.offset > bucket || elements > bucket - layout.offset)
    return fmt::format("has {} elements at element {} of a bucket of {}", elements, layout.offset, bucket);
  return {};
}

std::vector<int64_t> packedShape(const Layout &layout, std::span<const int64_t> shape,
                                 std::span<const int64_t> sizes) {
  const std::vector<size_t> ends = *findEnds(existingView(layout, shape), shape);
  std::vector<int64_t> packed(shape.size(), 1);
  for (size_t d = 0, dimension = 0; d < sizes.size(); ++d) {
    while (d >= ends[dimension])
      ++dimension;
    packed[dimension] *= sizes[d];
  }
  return packed;
}

std::vector<int64_t> localShape(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape) {
  std::vector<int64_t> sizes;
  for (int64_t size : viewOf(layout, shape))
    sizes.push_back(size / static_cast<int64_t>(partsOf(mesh, layout, sizes.size())));
  return packedShape(layout, shape, sizes);
}

uint64_t localElements(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape) {
  const std::span<const int64_t> view = viewOf(layout, shape);
  uint64_t elements = 1;
  for (size_t d = 0; d < view.size(); ++d)
    elements *= static_cast<uint64_t>(view[d]) / partsOf(mesh, layout, d);
  return elements;
}

std::vector<IndexRange> localRanges(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape,
                                    uint32_t rank, size_t dimension) {
  const std::span<const int64_t> view = viewOf(layout, shape);
  const std::vector<size_t> ends = *findEnds(existingView(layout, shape), shape);
  const size_t begin = dimension == 0 ? 0 : ends[dimension - 1], end = ends[dimension];
  size_t inner = end; // dimensions behind the last cut one are part of its ranges
  while (inner > begin && partsOf(mesh, layout, inner - 1) == 1)
    --inner;
  uint64_t stride = 1;
  for (size_t d = inner; d < end; ++d)
    stride *= static_cast<uint64_t>(view[d]);
  std::vector<IndexRange> ranges = {{0, stride}};
  for (size_t d = inner; d-- > begin; stride *= static_cast<uint64_t>(view[d])) {
    const ViewDimension own = dimensionOf(mesh, layout, view, rank, d);
    if (d + 1 == inner) {
      ranges = rangesOf(mesh, layout, view, rank, d);
      for (IndexRange &range : ranges)
        range = {range.first * stride, range.count * stride};
      continue;
    }
    std::vector<IndexRange> repeated;
    for (uint64_t index = own.first; index < own.first + own.size; ++index)
      for (const IndexRange &range : ranges)
        repeated.push_back({index * stride + range.first, range.count});
    ranges = std::move(repeated);
  }
  return ranges;
}

std::vector<uint32_t> holders(const Mesh &mesh, const Layout &layout, uint32_t rank) {
  return mesh.group(rank, layout.axes());
}

HeldElements heldElements(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape,
                          uint32_t rank) {
  return heldOf(mesh, layout, 0, existingElements(mesh, layout, shape, rank), rank);
}

HeldElements heldPadding(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape,
                         uint32_t rank) {
  return heldOf(mesh, layout, existingElements(mesh, layout, shape, rank), localElements(mesh, layout, shape),
                rank);
}

uint64_t mostHeldElements(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape) {
  const uint64_t elements = existingElements(mesh, layout, shape, /*rank=*/0); // others have more padding
  if (!layout.isBucketed() || layout.shardElements == 0)
    return elements;
  // The first shard may hold a rest; the next one is full, or has all that is left.
  const uint64_t first = layout.offset / layout.shardElements;
  return std::max(heldByShard(layout, 0, elements, first).count,
                  heldByShard(layout, 0, elements, first + 1).count);
}

ElementRuns::ElementRuns(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape,
                         uint32_t rank) {
  const HeldElements held = heldElements(mesh, layout, shape, rank);
  local = held.first;
  last = held.first + held.count;
  at = held.at;
  const std::span<const int64_t> view = viewOf(layout, shape);
  uint64_t stride = 1;
  bool whole = true; // of the dimensions so far, fastest first
  for (size_t d = view.size(); d-- > 0;) {
    const ViewDimension own = dimensionOf(mesh, layout, view, rank, d);
    if (own.parts > 1 && !layout.pieces.empty()) {
      addPieces(mesh, layout, rank, d, stride);
    } else if (whole) {
      block *= own.size;
      start = own.first * stride;
    } else {
      outer.insert(outer.begin(), {own.size, own.first * stride, stride});
    }
    whole = whole && own.parts == 1;
    stride *= static_cast<uint64_t>(view[d]);
  }
}

/// Runs of dimension `d`, which is cut in pieces: as long as all pieces have a whole number of.
void ElementRuns::addPieces(const Mesh &mesh, const Layout &layout, uint32_t rank, size_t d,
                            uint64_t stride) {
  const uint64_t parts = partsOf(mesh, layout, d);
  uint64_t length = 0;
  for (int64_t piece : layout.pieces)
    length = std::gcd(length, static_cast<uint64_t>(piece) / parts);
  Dimension runs = {0, 0, 0};
  uint64_t begin = 0;
  for (int64_t piece : layout.pieces) {
    const auto size = static_cast<uint64_t>(piece), part = size / parts;
    for (uint64_t at = 0; at < part; at += length)
      runs.starts.push_back((begin + mesh.position(rank, layout.cuts[d]) * part + at) * stride);
    begin += size;
  }
  runs.size = runs.starts.size();
  block *= length;
  outer.insert(outer.begin(), std::move(runs));
}

/// Of the first element of a block, the logical number.
uint64_t ElementRuns::logicalOf(uint64_t first) const {
  uint64_t index = first / block, logical = start;
  for (size_t d = outer.size(); d-- > 0; index /= outer[d].size) {
    const uint64_t along = index % outer[d].size;
    logical += outer[d].starts.empty() ? outer[d].start + along * outer[d].stride : outer[d].starts[along];
  }
  return logical;
}

std::optional<ElementRun> ElementRuns::next(uint64_t end, uint64_t most) {
  if (local >= last)
    return std::nullopt;
  const uint64_t within = local % block, first = logicalOf(local - within) + within;
  if (first >= end || most == 0)
    return std::nullopt;
  const ElementRun run{first, std::min({block - within, last - local, end - first, most}), at};
  local += run.count;
  at += run.count;
  return run;
}

} // namespace ds::rt
