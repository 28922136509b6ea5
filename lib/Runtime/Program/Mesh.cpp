//===- Mesh.cpp - Named axes along which ranks differ --------------------------===//
#include "ds/Runtime/Program/Mesh.h"

#include "ds/Runtime/Program/Groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ds::rt {

/// Whether `name` is that of a sub-axis of `parent`.
static bool isPartOf(std::string_view name, std::string_view parent) {
  return name.size() > parent.size() && name[parent.size()] == '.' && name.starts_with(parent);
}

/// What keeps the names from telling axes apart.
static std::string findNameMistake(const std::vector<MeshAxis> &axes) {
  constexpr size_t kMaxName = 64;
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::string &name = axes[i].name;
    if (name.empty() || name.size() > kMaxName)
      return fmt::format("axis {} has a name of {} bytes, allowed are 1 to {}", i, name.size(), kMaxName);
    for (size_t k = 0; k < axes.size(); ++k) {
      if (k < i && axes[k].name == name)
        return fmt::format("axes {} and {} are both '{}'", k, i, name);
      if (isPartOf(axes[k].name, name))
        return fmt::format("'{}' is an axis and, by '{}', cut into several", name, axes[k].name);
    }
  }
  return {};
}

std::string Mesh::findMistake(uint32_t ranks) const {
  if (list.size() > kMaxAxes)
    return fmt::format("it has {} axes, the limit is {}", list.size(), kMaxAxes);
  if (std::string mistake = findNameMistake(list); !mistake.empty())
    return mistake;
  // Stops where the product exceeds what is asked for: it cannot overflow.
  uint64_t product = 1;
  for (const MeshAxis &axis : list) {
    if (axis.size < 1)
      return fmt::format("axis '{}' has size 0", axis.name);
    product *= axis.size;
    if (product > ranks)
      break;
  }
  if (product != ranks)
    return fmt::format("its axes have {}{} ranks, but the program is for {}",
                       product > ranks ? "at least " : "", product, ranks);
  return {};
}

std::optional<AxisSet> Mesh::find(std::string_view name) const {
  AxisSet found;
  for (unsigned axis = 0; axis < numAxes(); ++axis)
    if (list[axis].name == name || isPartOf(list[axis].name, name))
      found.add(axis);
  return found.isEmpty() ? std::nullopt : std::optional(found);
}

std::vector<std::string> Mesh::names(AxisSet axes) const {
  std::vector<std::string> names;
  AxisSet named;
  for (unsigned axis = 0; axis < numAxes(); ++axis) {
    if (!axes.has(axis) || named.has(axis))
      continue;
    const std::string &own = list[axis].name;
    const std::string whole = own.substr(0, own.find('.'));
    const std::optional<AxisSet> parts = find(whole);
    const bool hasAll = parts && axes.hasAll(*parts);
    if (hasAll)
      named = named | *parts;
    names.push_back(hasAll ? whole : own);
  }
  return names;
}

std::string Mesh::spell(AxisSet axes) const {
  std::string text;
  for (unsigned axis = 0; axis < numAxes(); ++axis)
    if (axes.has(axis))
      text += (text.empty() ? "" : ", ") + list[axis].name;
  return text.empty() ? "no axis" : text;
}

std::string Mesh::spell() const {
  std::string text;
  for (const MeshAxis &axis : list)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", axis.name, axis.size);
  return "[" + text + "]";
}

uint32_t Mesh::size(AxisSet axes) const {
  uint32_t ranks = 1;
  for (unsigned axis = 0; axis < numAxes(); ++axis)
    if (axes.has(axis))
      ranks *= list[axis].size;
  return ranks;
}

uint32_t Mesh::stride(unsigned axis, AxisSet axes) const {
  uint32_t stride = 1;
  for (unsigned faster = axis + 1; faster < numAxes(); ++faster)
    if (axes.has(faster))
      stride *= list[faster].size;
  return stride;
}

uint32_t Mesh::coordinate(uint32_t rank, unsigned axis) const {
  return rank / stride(axis, all()) % list[axis].size;
}

std::vector<uint32_t> Mesh::coordinates(uint32_t rank) const {
  std::vector<uint32_t> coordinates(list.size());
  for (unsigned axis = numAxes(); axis-- > 0; rank /= list[axis].size)
    coordinates[axis] = rank % list[axis].size;
  return coordinates;
}

uint32_t Mesh::rankAt(const std::vector<uint32_t> &coordinates) const {
  uint32_t rank = 0;
  for (unsigned axis = 0; axis < numAxes(); ++axis)
    rank = rank * list[axis].size + coordinates[axis];
  return rank;
}

uint32_t Mesh::position(uint32_t rank, AxisSet axes) const {
  const std::vector<uint32_t> own = coordinates(rank);
  uint32_t position = 0;
  for (unsigned axis = 0; axis < numAxes(); ++axis)
    if (axes.has(axis))
      position = position * list[axis].size + own[axis];
  return position;
}

uint32_t Mesh::firstOfGroup(uint32_t rank, AxisSet axes) const {
  std::vector<uint32_t> first = coordinates(rank);
  for (unsigned axis = 0; axis < numAxes(); ++axis)
    if (axes.has(axis))
      first[axis] = 0;
  return rankAt(first);
}

uint32_t Mesh::groupBelow(uint32_t bound, AxisSet axes) const {
  uint32_t count = 0;
  for (unsigned axis = 0; axis < numAxes() && bound > 0; ++axis) {
    const uint32_t ranks = stride(axis, all()), inGroup = stride(axis, axes); // of one coordinate
    const uint32_t coordinates = axes.has(axis) ? list[axis].size : 1;
    const uint32_t whole = std::min(bound / ranks, coordinates);
    count += whole * inGroup;
    if (whole == coordinates)
      return count;
    bound -= whole * ranks;
  }
  return numAxes() == 0 && bound > 0 ? 1 : count;
}

std::vector<uint32_t> Mesh::group(uint32_t rank, AxisSet axes) const {
  std::vector<uint32_t> ranks = {firstOfGroup(rank, axes)};
  // Each axis repeats what the slower ones have made.
  for (unsigned axis = 0; axis < numAxes(); ++axis) {
    if (!axes.has(axis))
      continue;
    std::vector<uint32_t> finer;
    for (uint32_t other : ranks)
      for (uint32_t at = 0; at < list[axis].size; ++at)
        finer.push_back(other + at * stride(axis, all()));
    ranks = std::move(finer);
  }
  return ranks;
}

std::vector<GroupUse> groupsOf(const Program &program) {
  std::set<GroupUse> uses;
  for (const Command &command : program.commands) {
    if (command.kind != CommandKind::Collective)
      continue;
    const AxisSet axes = program.collectives[command.callee].axes;
    if (program.mesh.size(axes) > 1)
      uses.insert({command.stream, axes});
  }
  return {uses.begin(), uses.end()};
}

} // namespace ds::rt
