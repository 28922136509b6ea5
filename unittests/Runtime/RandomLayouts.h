//===- RandomLayouts.h - Layouts of all kinds, and where they put elements ---------===//
//
// Random meshes, shapes, views, cuts, padding and buckets, beside a model that places one element after the
// other by division alone.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_RANDOMLAYOUTS_H
#define DS_UNITTESTS_RUNTIME_RANDOMLAYOUTS_H

#include "ds/Runtime/Program/Layout.h"

#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ds::rt::test {

inline uint64_t productOf(const std::vector<int64_t> &shape) {
  uint64_t elements = 1;
  for (int64_t size : shape)
    elements *= static_cast<uint64_t>(size);
  return elements;
}

struct RandomLayout {
  Mesh mesh;
  Layout layout;
  std::vector<int64_t> shape; ///< of the state
  std::vector<int64_t> view;  ///< of the layout, or the shape if it has none
};

/// Sees `c`, which has its view's shape, as a state of fewer dimensions and perhaps of fewer rows.
inline void addView(RandomLayout &c, std::mt19937 &random) {
  std::vector<int64_t> existing = c.view;
  if (c.view.front() > 1 && random() % 2) {
    existing.front() = 1 + static_cast<int64_t>(random()) % (c.view.front() - 1);
    c.layout.existing = static_cast<uint64_t>(existing.front());
  }
  c.shape = {existing.front()};
  for (size_t d = 1; d < existing.size(); ++d)
    if (random() % 2)
      c.shape.back() *= existing[d];
    else
      c.shape.push_back(existing[d]);
  c.layout.view = c.view;
}

/// Divides the only dimension that is cut into pieces; others stay as they are.
inline void addPieces(RandomLayout &c, std::mt19937 &random) {
  std::vector<size_t> cut;
  for (size_t d = 0; d < c.layout.cuts.size(); ++d)
    if (!c.layout.cuts[d].isEmpty())
      cut.push_back(d);
  if (cut.size() != 1 || c.layout.existing)
    return;
  const int64_t parts = c.mesh.size(c.layout.cuts[cut.front()]);
  for (int64_t left = c.view[cut.front()] / parts; left > 0; left -= c.layout.pieces.back() / parts)
    c.layout.pieces.push_back(parts * (1 + static_cast<int64_t>(random()) % left));
}

/// Axes are dealt out among dimensions and bucket; sizes are multiples of their parts, the bucket has room.
inline RandomLayout randomLayout(std::mt19937 &random) {
  RandomLayout c;
  const auto upTo = [&](uint32_t most) { return static_cast<uint32_t>(random() % (most + 1)); };
  std::vector<MeshAxis> axes;
  for (uint32_t count = upTo(4); axes.size() < count;)
    axes.push_back({"a" + std::to_string(axes.size()), 1 + upTo(2)});
  c.mesh = Mesh(axes);
  c.layout.cuts.resize(upTo(4));
  for (unsigned axis = 0; axis < c.mesh.numAxes(); ++axis) {
    const size_t to = upTo(static_cast<uint32_t>(c.layout.cuts.size()) + 1);
    if (to < c.layout.cuts.size())
      c.layout.cuts[to].add(axis);
    else if (to == c.layout.cuts.size())
      c.layout.bucket.add(axis);
  }
  for (AxisSet cut : c.layout.cuts)
    c.view.push_back(c.mesh.size(cut) * (upTo(9) ? 1 + upTo(4) : 0));
  c.shape = c.view;
  if (!c.view.empty() && productOf(c.view) > 0 && upTo(2))
    addView(c, random);
  if (upTo(1))
    addPieces(c, random);
  if (c.layout.isBucketed()) {
    c.layout.offset = upTo(5);
    const uint64_t needed = c.layout.offset + localElements(c.mesh, c.layout, c.shape) + upTo(3),
                   shards = c.mesh.size(c.layout.bucket);
    c.layout.shardElements = (needed + shards - 1) / shards;
  }
  return c;
}

/// Which entry of its local dimension `d` entry `index` is on `rank`; nothing where it has not.
inline std::optional<int64_t> localEntry(const RandomLayout &c, size_t d, int64_t index, uint32_t rank) {
  const AxisSet cut = c.layout.cuts.empty() ? AxisSet() : c.layout.cuts[d];
  std::vector<int64_t> pieces = {c.view[d]};
  if (!cut.isEmpty() && !c.layout.pieces.empty())
    pieces = c.layout.pieces;
  int64_t before = 0;
  for (int64_t piece : pieces) {
    const int64_t part = piece / c.mesh.size(cut);
    if (index < piece)
      return index / part == c.mesh.position(rank, cut) ? std::optional(before + index % part) : std::nullopt;
    index -= piece;
    before += part;
  }
  return std::nullopt;
}

/// Which element of its local tensor element `element` of the view is on `rank`; nothing where it has not.
inline std::optional<uint64_t> localOf(const RandomLayout &c, uint64_t element, uint32_t rank) {
  std::vector<int64_t> index(c.view.size());
  uint64_t rest = element, local = 0;
  for (size_t d = c.view.size(); d-- > 0; rest /= static_cast<uint64_t>(c.view[d]))
    index[d] = static_cast<int64_t>(rest % static_cast<uint64_t>(c.view[d]));
  for (size_t d = 0; d < c.view.size(); ++d) {
    const AxisSet cut = c.layout.cuts.empty() ? AxisSet() : c.layout.cuts[d];
    const std::optional<int64_t> entry = localEntry(c, d, index[d], rank);
    if (!entry)
      return std::nullopt;
    local = local * static_cast<uint64_t>(c.view[d] / c.mesh.size(cut)) + static_cast<uint64_t>(*entry);
  }
  return local;
}

/// Where `rank` has element `element` of the view in its memory; nothing where it has not. Those of the state
/// are the first ones.
inline std::optional<uint64_t> placeOf(const RandomLayout &c, uint64_t element, uint32_t rank) {
  const std::optional<uint64_t> local = localOf(c, element, rank);
  if (!local || !c.layout.isBucketed())
    return local;
  const uint64_t inBucket = c.layout.offset + *local;
  if (inBucket / c.layout.shardElements != c.mesh.position(rank, c.layout.bucket))
    return std::nullopt;
  return inBucket % c.layout.shardElements;
}

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_RANDOMLAYOUTS_H
