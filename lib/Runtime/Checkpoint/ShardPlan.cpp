//===- ShardPlan.cpp - Which rank writes what of a checkpoint -----------------------===//

#include "ds/Runtime/Checkpoint/ShardPlan.h"

#include "LocalBoxes.h"
#include "Program/Shape.h"
#include "Program/Stages.h"
#include "Program/StateNames.h"

#include "ds/Runtime/Formats/SafeTensors.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

namespace ds::rt {
namespace {

/// Tensors of fewer bytes are not divided.
constexpr uint64_t kLeastDivided = uint64_t(64) << 10;

/// Which states' values a checkpoint has, each once: not gradients, not what is rounded from a master, and of
/// copies on several stages the first, or the first of `stages` if they are given.
std::vector<size_t> writtenStates(const Program &program, const std::set<uint32_t> *stages = nullptr) {
  std::unordered_set<std::string_view> mastered, taken;
  for (const State &state : program.states)
    if (state.role == Role::Master)
      mastered.insert(state.owner);
  std::vector<size_t> written;
  for (size_t i = 0; i < program.states.size(); ++i) {
    const State &state = program.states[i];
    const bool rounded = state.role == Role::Parameter && mastered.contains(state.name);
    const bool here = !stages || stages->contains(state.stage);
    if (state.role != Role::Gradient && !rounded && here && taken.insert(state.name).second)
      written.push_back(i);
  }
  return written;
}

/// What a rank writes of a local tensor: elements [first, first + count) of it.
struct Share {
  uint64_t first = 0, count = 0;
};

/// The part of replica `replica` of what `replicas` ranks hold alike.
Share shareOf(const HeldElements &held, uint64_t row, uint64_t elementBytes, uint32_t replicas,
              uint32_t replica, size_t number) {
  if (replicas == 1)
    return {held.first, held.count};
  if (held.count * elementBytes < kLeastDivided)
    return number % replicas == replica ? Share{held.first, held.count} : Share{};
  const bool byRows =
      row > 0 && held.first % row == 0 && held.count % row == 0 && held.count / row >= replicas;
  const uint64_t unit = byRows ? row : 1, units = held.count / unit;
  const uint64_t begin = units * replica / replicas, end = units * (replica + 1) / replicas;
  return {held.first + begin * unit, (end - begin) * unit};
}

/// A box of one file, before the file's order is known.
struct Entry {
  ShardPiece piece;
  std::string tensor;
  FileDType dtype;
};

class Planner {
public:
  Planner(const Program &program, uint32_t rank, std::span<const uint32_t> node)
      : program(program), rank(rank), node(node) {
    others = program.mesh.all() - program.stageAxes;
  }

  /// Adds what the rank writes of state `number`.
  void add(size_t number) {
    const State &state = program.states[number];
    const uint64_t size = byteSize(program.buffers[state.buffer].dtype);
    const AxisSet alike = others - state.layout.axes();
    const HeldElements held = heldElements(program.mesh, state.layout, state.logicalShape, rank);
    const std::vector<int64_t> local = localShape(program.mesh, state.layout, state.logicalShape);
    uint64_t row = 1;
    for (size_t d = 1; d < local.size(); ++d)
      row *= static_cast<uint64_t>(local[d]);
    const auto [replicas, replica] = among(alike);
    const Share share = shareOf(held, row, size, replicas, replica, number);
    std::vector<Entry> boxes;
    for (LocalBox &each :
         localBoxesOf(program.mesh, state.layout, state.logicalShape, rank, share.first, share.count)) {
      const uint64_t bytes = each.box.elements() * size, at = held.at + (each.first - held.first);
      boxes.push_back({{state.name, std::move(each.box), at, bytes, std::move(each.repeats)},
                       state.role == Role::Master ? state.owner : state.name,
                       toFileDType(program.buffers[state.buffer].dtype)});
    }
    std::sort(boxes.begin(), boxes.end(), [](const Entry &a, const Entry &b) {
      return a.piece.bytes != b.piece.bytes ? a.piece.bytes > b.piece.bytes : a.piece.at < b.piece.at;
    });
    for (size_t i = 0; i < boxes.size(); ++i) {
      if (i == files.size())
        files.emplace_back();
      files[i].push_back(std::move(boxes[i]));
    }
  }

  std::vector<std::vector<Entry>> files;

private:
  /// Of the ranks that differ from this one along `alike` alone, and write to the same place: how many there
  /// are, and which of them this is.
  std::pair<uint32_t, uint32_t> among(AxisSet alike) const {
    if (node.empty())
      return {program.mesh.size(alike), program.mesh.position(rank, alike)};
    std::vector<uint32_t> here = program.mesh.group(rank, alike);
    std::erase_if(here, [&](uint32_t each) { return !std::ranges::binary_search(node, each); });
    const auto own = std::ranges::find(here, rank) - here.begin();
    return {static_cast<uint32_t>(here.size()), static_cast<uint32_t>(own)};
  }

  const Program &program;
  const uint32_t rank;
  const std::span<const uint32_t> node; ///< see planShards
  AxisSet others;                       ///< all axes but those of the stages
};

Planner planEntries(const Program &program, uint32_t rank, std::span<const uint32_t> node = {}) {
  Planner planner(program, rank, node);
  const uint32_t stage = stageWithin(program, rank);
  std::set<uint32_t> stages;
  for (const uint32_t each : node)
    stages.insert(stageWithin(program, each));
  for (const size_t number : writtenStates(program, node.empty() ? nullptr : &stages))
    if (program.states[number].stage == stage)
      planner.add(number);
  return planner;
}

/// What PyTorch's reader of such files asks for: where in each tensor a file's part begins.
std::string spellOffsets(const std::vector<Entry> &entries) {
  std::map<std::string, nlohmann::json> byName;
  for (const Entry &entry : entries)
    byName[entry.tensor] = {{"saved_offsets", entry.piece.box.offsets}};
  return nlohmann::json(byName).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<ShardFile> makeFile(std::string name, std::vector<Entry> entries) {
  std::vector<TensorSource> sources;
  for (const Entry &entry : entries)
    sources.push_back({entry.tensor, entry.dtype, entry.piece.box.shape, nullptr});
  Result<SafeTensorsHeader> header = serialiseHeader(
      sources, {{"format", "pt"}, {"DCP_VERSION", "1.0"}, {"DCP_SHARDING_INFO", spellOffsets(entries)}});
  if (!header)
    return header.error();
  ShardFile file{std::move(name), std::move(header->bytes), {}, header->dataBytes};
  for (const size_t index : header->order)
    file.pieces.push_back(std::move(entries[index].piece));
  return file;
}

} // namespace

uint64_t ShardPiece::runs() const {
  uint64_t runs = 1;
  for (const Repeat &repeat : repeats)
    runs *= repeat.count;
  return runs;
}

uint64_t ShardPiece::runAt(uint64_t run) const {
  uint64_t first = at;
  for (size_t i = repeats.size(); i-- > 0; run /= repeats[i].count)
    first += run % repeats[i].count * repeats[i].stride;
  return first;
}

std::vector<CheckpointTensor> checkpointTensors(const Program &program) {
  std::map<std::pair<uint32_t, std::string_view>, const State *> parameters;
  for (const State &state : program.states)
    if (state.role == Role::Parameter)
      parameters[{state.stage, state.name}] = &state;
  std::vector<CheckpointTensor> tensors;
  for (const size_t number : writtenStates(program)) {
    const State &state = program.states[number];
    const bool master = state.role == Role::Master;
    const State &origin = master ? *parameters.at({state.stage, state.owner}) : state;
    tensors.push_back({origin.name, origin.role, origin.owner,
                       toFileDType(program.buffers[state.buffer].dtype), state.logicalShape, origin.aliases,
                       origin.trainable, state.layout, toFileDType(program.buffers[origin.buffer].dtype)});
  }
  return tensors;
}

Result<std::vector<ShardFile>> planShards(const Program &program, uint32_t rank,
                                          std::span<const uint32_t> node) {
  std::vector<std::vector<Entry>> entries = planEntries(program, rank, node).files;
  std::vector<ShardFile> files;
  for (size_t i = 0; i < entries.size(); ++i) {
    Result<ShardFile> file =
        makeFile(fmt::format("shard-{:05}-model-{:05}-of-{:05}.safetensors", rank, i + 1, entries.size()),
                 std::move(entries[i]));
    if (!file)
      return file.error();
    files.push_back(std::move(*file));
  }
  return files;
}

/// All tensors are divided as shareOf does; of small ones each goes to one of its replicas, by its number.
uint64_t mostSnapshotBytes(const Program &program) {
  uint64_t divided = 0;
  std::map<uint32_t, std::map<size_t, uint64_t>> small; // by replicas, by number among them
  std::map<uint32_t, uint64_t> buckets;                 // by buffer
  for (const size_t number : writtenStates(program)) {
    const State &state = program.states[number];
    const uint64_t size = byteSize(program.buffers[state.buffer].dtype);
    const uint64_t held = mostHeldElements(program.mesh, state.layout, state.logicalShape);
    const uint32_t replicas =
        program.nodeLocalSaves
            ? 1
            : program.mesh.size(program.mesh.all() - program.stageAxes - state.layout.axes());
    if (replicas == 1 && state.layout.isBucketed()) { // a shard has no more than its bucket's states together
      uint64_t &bytes = buckets[state.buffer];
      bytes = std::min(bytes + held * size, state.layout.shardElements * size);
      continue;
    }
    if (held * size < kLeastDivided) {
      small[replicas][number % replicas] += held * size;
      continue;
    }
    const std::vector<int64_t> local = localShape(program.mesh, state.layout, state.logicalShape);
    const uint64_t row =
        elementsOf(local) / static_cast<uint64_t>(std::max<int64_t>(local.empty() ? 1 : local.front(), 1)) +
        1;
    const uint64_t share = std::min(held, (held + replicas - 1) / replicas + (replicas > 1 ? row : 0));
    // Where shards end within a state, some rank may hold too little of it to divide.
    divided += std::max(share * size, state.layout.isBucketed() ? kLeastDivided : 0);
  }
  for (const auto &[buffer, bytes] : buckets)
    divided += bytes;
  for (const auto &[replicas, sums] : small) {
    uint64_t most = 0;
    for (const auto &[residue, bytes] : sums)
      most = std::max(most, bytes);
    divided += most;
  }
  return divided;
}

uint64_t checkpointBytes(const Program &program) {
  uint64_t bytes = 0;
  for (const size_t number : writtenStates(program)) {
    bytes += elementsOf(program.states[number].logicalShape) *
             byteSize(program.buffers[program.states[number].buffer].dtype);
  }
  return bytes;
}

uint64_t snapshotBytes(const Program &program, uint32_t rank) {
  uint64_t bytes = 0;
  for (const std::vector<Entry> &file : planEntries(program, rank).files)
    for (const Entry &entry : file)
      bytes += entry.piece.bytes;
  return bytes;
}

} // namespace ds::rt
