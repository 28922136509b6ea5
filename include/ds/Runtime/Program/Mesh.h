//===- Mesh.h - Named axes along which ranks differ ----------------------------===//
//
// A mesh numbers the ranks of a job by coordinates: an ordered list of axes, each with a name and a size, of
// which the last counts fastest. What a rank holds, with whom it talks and what data it reads are functions
// of its coordinates, so that a program says once, by sets of axes, what is true of all ranks.
//
//   axes pp = 2, dp.node = 2, dp.local = 2, tp = 2:  rank 13 = 0b1101 has pp 1, dp.node 1, dp.local 0, tp 1
//   group of {dp.node, dp.local}:                    ranks 9, 11, 13, 15, of which rank 13 is number 2
//
// The usual names are pp (stages of a pipeline), dp (other data), ep (experts), sp (parts of a sequence) and
// tp (parts of tensors). An axis that is cut into sub-axes, by the places where ranks run, is several axes of
// the mesh, named "dp.node" and "dp.local"; "dp" then means both.
//
// Nothing here knows programs: planners use it too.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_MESH_H
#define DS_RUNTIME_PROGRAM_MESH_H

#include <bit>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ds::rt {

/// Axes of one mesh, by their numbers there. Bits that a file has beyond the mesh's axes are kept until the
/// verifier refuses them.
class AxisSet {
public:
  constexpr AxisSet() = default;
  constexpr AxisSet(std::initializer_list<unsigned> axes) {
    for (unsigned axis : axes)
      add(axis);
  }
  static constexpr AxisSet fromBits(uint32_t bits) {
    AxisSet set;
    set.mask = bits;
    return set;
  }
  /// Axes 0 to `count` - 1.
  static constexpr AxisSet first(unsigned count) { return fromBits((uint32_t(1) << count) - 1); }

  constexpr uint32_t bits() const { return mask; }
  constexpr bool isEmpty() const { return mask == 0; }
  constexpr unsigned count() const { return static_cast<unsigned>(std::popcount(mask)); }
  constexpr bool has(unsigned axis) const { return mask >> axis & 1; }
  constexpr bool hasAny(AxisSet other) const { return mask & other.mask; }
  constexpr bool hasAll(AxisSet other) const { return (other.mask & ~mask) == 0; }
  constexpr void add(unsigned axis) { mask |= uint32_t(1) << axis; }
  constexpr AxisSet operator|(AxisSet other) const { return fromBits(mask | other.mask); }
  constexpr AxisSet operator&(AxisSet other) const { return fromBits(mask & other.mask); }
  constexpr AxisSet operator-(AxisSet other) const { return fromBits(mask & ~other.mask); }
  /// Any total order, for maps that are the same on every rank.
  constexpr auto operator<=>(const AxisSet &) const = default;

private:
  uint32_t mask = 0;
};

struct MeshAxis {
  std::string name;
  uint32_t size = 1; ///< ranks along it

  bool operator==(const MeshAxis &) const = default;
};

/// Functions that take ranks, axes or sets of axes require such of this mesh, and a mesh without
/// `findMistake`.
class Mesh {
public:
  /// So many fit into any set.
  static constexpr unsigned kMaxAxes = 16;

  /// One rank and no axis.
  Mesh() = default;
  Mesh(std::initializer_list<MeshAxis> axes) : list(axes) {}
  explicit Mesh(std::vector<MeshAxis> axes) : list(std::move(axes)) {}

  /// Slowest first.
  const std::vector<MeshAxis> &axes() const { return list; }
  unsigned numAxes() const { return static_cast<unsigned>(list.size()); }
  AxisSet all() const { return AxisSet::first(numAxes()); }

  /// What keeps this from being a mesh of `ranks` ranks: too many axes, a name that is empty, taken, or taken
  /// by a sub-axis, a size of 0, another product. Empty where nothing does. Safe on any values.
  std::string findMistake(uint32_t ranks) const;

  /// The axis of this name; the sub-axes of an axis of this name; nothing where there are none.
  std::optional<AxisSet> find(std::string_view name) const;

  /// The names of `axes` in the mesh's order: an axis has its own, and all sub-axes of one have together the
  /// whole's. None for an empty set.
  std::vector<std::string> names(AxisSet axes) const;
  /// "dp.node, dp.local", in the mesh's order; "no axis" of an empty set.
  std::string spell(AxisSet axes) const;
  /// "[pp = 2, dp = 4]"
  std::string spell() const;

  /// Ranks of a group along `axes`, the product of their sizes. 1 of an empty set.
  uint32_t size(AxisSet axes) const;
  /// Ranks of the mesh.
  uint32_t size() const { return size(all()); }

  uint32_t coordinate(uint32_t rank, unsigned axis) const;
  std::vector<uint32_t> coordinates(uint32_t rank) const;
  /// The rank that has these coordinates, one for each axis and below its size.
  uint32_t rankAt(const std::vector<uint32_t> &coordinates) const;

  /// By how much a position among the group along `axes` grows with the coordinate along `axis`, one of them.
  uint32_t stride(unsigned axis, AxisSet axes) const;

  /// The group of `rank` along `axes` is the ranks that differ from it along these axes alone, in the order
  /// of their numbers, which is that of their coordinates. This is the rank's own number in it.
  uint32_t position(uint32_t rank, AxisSet axes) const;
  /// The ranks of that group, by position.
  std::vector<uint32_t> group(uint32_t rank, AxisSet axes) const;
  /// The first of them: the same for all of them, and for no rank of another group.
  uint32_t firstOfGroup(uint32_t rank, AxisSet axes) const;
  /// How many ranks of the group of rank 0 have numbers below `bound`: where ranks fill nodes one after
  /// another, those on the first node.
  uint32_t groupBelow(uint32_t bound, AxisSet axes) const;

  bool operator==(const Mesh &) const = default;

private:
  std::vector<MeshAxis> list;
};

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_MESH_H
