//===- Layout.cpp - Which elements of a state a rank holds ---------------------===//
#include "ds/Runtime/Program/Layout.h"

#include "Shape.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {

AxisSet Layout::axes() const {
  AxisSet all = bucket;
  for (AxisSet cut : cuts)
    all = all | cut;
  return all;
}

namespace {

/// Into how many parts dimension `d` is cut.
uint64_t partsOf(const Mesh &mesh, const Layout &layout, size_t d) {
  return layout.cuts.empty() ? 1 : mesh.size(layout.cuts[d]);
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

} // namespace

std::string findMistake(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape) {
  if (!layout.cuts.empty() && layout.cuts.size() != shape.size())
    return fmt::format("has cuts of {} dimensions, but {} dimensions", layout.cuts.size(), shape.size());
  if (std::string mistake = findAxisMistake(mesh, layout); !mistake.empty())
    return mistake;
  for (size_t d = 0; d < shape.size(); ++d)
    if (const auto parts = static_cast<int64_t>(partsOf(mesh, layout, d)); shape[d] % parts != 0)
      return fmt::format("has size {} in dimension {}, which {} cannot cut into {} parts", shape[d], d,
                         mesh.spell(layout.cuts[d]), parts);
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

std::vector<int64_t> localShape(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape) {
  std::vector<int64_t> local(shape.begin(), shape.end());
  for (size_t d = 0; d < local.size(); ++d)
    local[d] /= static_cast<int64_t>(partsOf(mesh, layout, d));
  return local;
}

uint64_t localElements(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape) {
  return elementsOf(localShape(mesh, layout, shape));
}

std::vector<uint32_t> holders(const Mesh &mesh, const Layout &layout, uint32_t rank) {
  return mesh.group(rank, layout.axes());
}

/// What shard `shard` of the bucket has of a local tensor of `elements` elements.
static HeldElements heldByShard(const Layout &layout, uint64_t elements, uint64_t shard) {
  const uint64_t begin = shard * layout.shardElements, end = begin + layout.shardElements;
  const uint64_t from = std::max(begin, layout.offset), to = std::min(end, layout.offset + elements);
  if (from >= to)
    return {};
  return {from - layout.offset, to - from, from - begin};
}

HeldElements heldElements(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape,
                          uint32_t rank) {
  const uint64_t elements = localElements(mesh, layout, shape);
  if (!layout.isBucketed())
    return {0, elements, 0};
  return heldByShard(layout, elements, mesh.position(rank, layout.bucket));
}

uint64_t mostHeldElements(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape) {
  const uint64_t elements = localElements(mesh, layout, shape);
  if (!layout.isBucketed() || layout.shardElements == 0)
    return elements;
  // The first shard may hold a rest; the next one is full, or has all that is left.
  const uint64_t first = layout.offset / layout.shardElements;
  return std::max(heldByShard(layout, elements, first).count, heldByShard(layout, elements, first + 1).count);
}

ElementRuns::ElementRuns(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape,
                         uint32_t rank) {
  const HeldElements held = heldElements(mesh, layout, shape, rank);
  local = held.first;
  last = held.first + held.count;
  at = held.at;
  uint64_t stride = 1;
  bool whole = true; // of the dimensions so far, fastest first
  for (size_t d = shape.size(); d-- > 0;) {
    const uint64_t parts = partsOf(mesh, layout, d), size = static_cast<uint64_t>(shape[d]) / parts;
    const uint64_t begin = parts == 1 ? 0 : mesh.position(rank, layout.cuts[d]) * size * stride;
    if (whole) {
      block *= size;
      start = begin;
    } else {
      outer.insert(outer.begin(), {size, begin, stride});
    }
    whole = whole && parts == 1;
    stride *= static_cast<uint64_t>(shape[d]);
  }
}

/// Of the first element of a block, the logical number.
uint64_t ElementRuns::logicalOf(uint64_t first) const {
  uint64_t index = first / block, logical = start;
  for (size_t d = outer.size(); d-- > 0; index /= outer[d].size)
    logical += outer[d].start + index % outer[d].size * outer[d].stride;
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
