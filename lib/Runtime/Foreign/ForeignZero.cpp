//===- ForeignZero.cpp - Folders of ZeRO 1, 2 and 3 -----------------------------===//
//
// Stages 1 and 2 lay the parameters of a group one after another, pad the end, and give each rank an equal
// piece: joining the ranks' pieces gives the group. Stage 3 cuts each parameter by itself: a rank has
// ceil(n / ranks) elements of each, one parameter after another; the ranks' pieces of one parameter joined
// are the parameter and some padding. With 3 ranks, a parameter of 7 and one of 4:
//
//     stage 1, 2   | 0 0 0 0 | 0 0 0 1 | 1 1 1 - |          the group in thirds of 4
//     stage 3      | 0 0 0, 1 1 | 0 0 0, 1 1 | 0 - -, - - |  thirds of 3 and of 2
//
//===---------------------------------------------------------------------------===//

#include "ForeignStates.h"

#include "Files/Text.h"

#include <algorithm>
#include <charconv>
#include <set>

using namespace ds;
using namespace ds::rt;

namespace {

constexpr char kConvert[] = "convert the checkpoint with DeepSpeed's ds_to_universal.py";

/// The state files of a folder, by rank.
struct ZeroFiles {
  std::map<int64_t, std::string> optimizers, models;
  std::string model; ///< of all ranks: mp_rank_00_model_states.pt
};

/// A checkpoint while it is put together.
struct ZeroCheckpoint {
  std::vector<OptimizerStates> ranks;
  std::vector<ModelStates> models; ///< by rank, or one for all
  std::set<std::string> slots;     ///< of any group, and "value"

  /// What a rank has of a slot of a group: nothing where it has no such state.
  const FlatPart *part(size_t rank, size_t group, const std::string &slot) const {
    const FlatGroup &flat = ranks[rank].groups[group];
    if (slot == "value")
      return &flat.value;
    auto found = flat.slots.find(slot);
    return found == flat.slots.end() ? nullptr : &found->second;
  }
};

/// Digits at the start of `text`, which are cut off; -1 for none.
int64_t takeNumber(std::string_view &text) {
  int64_t number = -1;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || number < 0)
    return -1;
  text.remove_prefix(size_t(end - text.data()));
  return number;
}

bool takePrefix(std::string_view &text, std::string_view prefix) {
  if (!text.starts_with(prefix))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

} // namespace

/// Sorts one name into `files`: [bf16_|fp16_][zero_pp_rank_R_]mp_rank_MM_{model|optim}_states.pt.
static Status addFile(const std::string &folder, const std::string &name, ZeroFiles &files) {
  std::string_view rest = name;
  if (rest.starts_with("layer_"))
    return foreignInvalid(folder, "has " + quote(name) + ", a layer of a pipeline or an expert", kConvert);
  (void)(takePrefix(rest, "bf16_") || takePrefix(rest, "fp16_"));
  bool isOfRank = takePrefix(rest, "zero_pp_rank_");
  int64_t rank = isOfRank ? takeNumber(rest) : 0;
  if (isOfRank && (rank < 0 || !takePrefix(rest, "_")))
    rest = "";
  int64_t model = takePrefix(rest, "mp_rank_") ? takeNumber(rest) : -1;
  bool isModel = rest == "_model_states.pt", isOptimizer = rest == "_optim_states.pt" && isOfRank;
  if (model < 0 || (!isModel && !isOptimizer))
    return foreignInvalid(folder, "has " + quote(name) + ", which is not of a data parallel rank", kConvert);
  if (model > 0)
    return foreignInvalid(folder, "has " + quote(name) + ", of a second tensor parallel rank", kConvert);
  std::string &place = isOptimizer ? files.optimizers[rank] : isOfRank ? files.models[rank] : files.model;
  if (!place.empty())
    return foreignCorrupt(folder, "has " + quote(place) + " and " + quote(name) + ", both of rank " +
                                      std::to_string(rank));
  place = name;
  return {};
}

static Status listFiles(const std::string &folder, const std::vector<std::string> &names, ZeroFiles &files) {
  for (const std::string &name : names)
    if (name.ends_with("_states.pt"))
      if (Status status = addFile(folder, name, files); !status)
        return status;
  if (files.optimizers.empty())
    return foreignInvalid(folder,
                          "has no *_optim_states.pt: it was saved without ZeRO, or without the optimizer",
                          "save the module's state_dict() as pytorch_model.bin for the weights alone");
  if (files.optimizers.rbegin()->first + 1 != int64_t(files.optimizers.size()))
    return foreignCorrupt(folder, "has " + std::to_string(files.optimizers.size()) +
                                      " *_optim_states.pt, but one is " +
                                      quote(files.optimizers.rbegin()->second));
  return {};
}

/// Reads the optimizer files and holds them against one another.
static Status readRanks(ForeignView &view, const ZeroFiles &files, ZeroCheckpoint &out) {
  out.slots.insert("value");
  for (const auto &[rank, name] : files.optimizers) {
    Result<OptimizerStates> states = readOptimizerStates(view, name, rank == 0);
    if (!states)
      return states.error();
    if (states->numRanks != int64_t(files.optimizers.size()))
      return foreignCorrupt(view.folder, quote(name) + " is one of " + std::to_string(states->numRanks) +
                                             " ranks, but the folder has " +
                                             std::to_string(files.optimizers.size()));
    for (const FlatGroup &group : states->groups)
      for (const auto &slot : group.slots)
        out.slots.insert(slot.first);
    out.ranks.push_back(std::move(*states));
    const OptimizerStates &first = out.ranks.front(), &last = out.ranks.back();
    if (last.stage != first.stage || last.groups.size() != first.groups.size())
      return foreignCorrupt(view.folder, quote(name) + " has another stage or other groups than rank 0's");
    for (size_t i = 0; i < first.groups.size() && first.stage == 3; ++i)
      if (last.groups[i].value.numElements != first.groups[i].value.numElements)
        return foreignCorrupt(view.folder,
                              quote(name) + " has " + std::to_string(last.groups[i].value.numElements) +
                                  " elements in group " + std::to_string(i) + ", but rank 0 has " +
                                  std::to_string(first.groups[i].value.numElements));
  }
  return {};
}

static Status readModels(ForeignView &view, const ZeroFiles &files, ZeroCheckpoint &out) {
  std::vector<std::string> names;
  if (view.format == ForeignFormat::ZeroFlat)
    names.push_back(files.model.empty() ? "mp_rank_00_model_states.pt" : files.model);
  else
    for (const auto &[rank, optimizer] : files.optimizers) {
      auto found = files.models.find(rank);
      names.push_back(found != files.models.end()
                          ? found->second
                          : "zero_pp_rank_" + std::to_string(rank) + "_mp_rank_00_model_states.pt");
    }
  for (const std::string &name : names) {
    Result<ModelStates> model = readModelStates(view, name, out.models.empty());
    if (!model)
      return model.error();
    out.models.push_back(std::move(*model));
  }
  if (out.models.front().groups.empty())
    return foreignCorrupt(view.folder, quote(names.front()) + " has no 'param_shapes'");
  return {};
}

/// Stages 1 and 2: group by group, the ranks' pieces joined.
static Status joinFlat(ForeignView &view, const ZeroCheckpoint &from) {
  const std::vector<ForeignShapes> &groups = from.models.front().groups;
  if (groups.size() != from.ranks.front().groups.size())
    return foreignCorrupt(view.folder, "has shapes of " + std::to_string(groups.size()) +
                                           " groups, but elements of " +
                                           std::to_string(from.ranks.front().groups.size()));
  for (size_t group = 0; group < groups.size(); ++group)
    for (const std::string &slot : from.slots) {
      FlatVector whole;
      for (size_t rank = 0; rank < from.ranks.size(); ++rank) {
        const FlatPart *part = from.part(rank, group, slot);
        part ? whole.append(part->source, part->numElements)
             : whole.appendHole(from.part(rank, group, "value")->numElements);
      }
      uint64_t place = 0;
      for (const ForeignShape &shape : groups[group]) {
        ForeignPieces pieces;
        if (shape.numElements > whole.size() - place)
          return foreignCorrupt(view.folder, "group " + std::to_string(group) + " has " +
                                                 std::to_string(whole.size()) +
                                                 " elements, which end in parameter " + quote(shape.name));
        if (whole.cut(place, shape.numElements, 0, pieces))
          if (Status status = view.addTensor({shape.name, slot, {}, shape.dims, {}, {}}, std::move(pieces));
              !status)
            return status;
        place += shape.numElements;
      }
      // The end is padded, for each rank to have a multiple of two elements; the last rank may leave it out.
      uint64_t multiple = 2 * from.ranks.size();
      auto padded = [&](uint64_t count) { return (count + multiple - 1) / multiple; };
      if (padded(place) != padded(whole.size()))
        return foreignCorrupt(view.folder, "group " + std::to_string(group) + " has " +
                                               std::to_string(whole.size()) +
                                               " elements, but its parameters have " + std::to_string(place));
    }
  return {};
}

/// Elements of a parameter that rank `rank` has in stage 3, without padding; all but the last ones have
/// `chunk`.
static uint64_t sliceOf(uint64_t numElements, size_t numRanks, size_t rank, uint64_t &chunk) {
  chunk = numElements / numRanks + (numElements % numRanks != 0);
  return std::min(chunk, numElements - std::min(numElements, rank * chunk));
}

/// Adds a parameter of which rank r has elements from `place` on of `ranks[r]`. No tensor where a part of it
/// has no such state.
static Status joinSliced(ForeignView &view, const ForeignShape &shape, const std::string &slot,
                         ForeignRole role, const std::vector<FlatVector> &ranks, uint64_t place) {
  ForeignPieces pieces;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    uint64_t chunk, count = sliceOf(shape.numElements, ranks.size(), rank, chunk);
    if (count > 0 && !ranks[rank].cut(place, count, rank * chunk, pieces))
      return {};
  }
  return view.addTensor({shape.name, slot, {}, shape.dims, role, {}}, std::move(pieces));
}

/// Stage 3: parameter by parameter. Groups are joined first, for a parameter may lie in two.
static Status joinSlices(ForeignView &view, const ZeroCheckpoint &from) {
  for (const std::string &slot : from.slots) {
    std::vector<FlatVector> ranks(from.ranks.size());
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      for (size_t group = 0; group < from.ranks[rank].groups.size(); ++group) {
        const FlatPart *part = from.part(rank, group, slot);
        part ? ranks[rank].append(part->source, part->numElements)
             : ranks[rank].appendHole(from.part(rank, group, "value")->numElements);
      }
    uint64_t place = 0, size = ranks.front().size();
    for (const ForeignShapes &group : from.models.front().groups)
      for (const ForeignShape &shape : group) {
        uint64_t chunk = sliceOf(shape.numElements, ranks.size(), 0, chunk);
        if (chunk > size - place)
          return foreignCorrupt(view.folder, "a rank has " + std::to_string(size) +
                                                 " elements, which end in " + quote(shape.name) +
                                                 "; with offload to NVMe they lie elsewhere");
        if (Status status = joinSliced(view, shape, slot, ForeignRole::Parameter, ranks, place); !status)
          return status;
        place += chunk;
      }
    if (place != size)
      return foreignCorrupt(view.folder, "a rank has " + std::to_string(size) +
                                             " elements, but the parameters have " + std::to_string(place));
  }
  return {};
}

/// Frozen parameters lie in the model files: whole, or in stage 3 a part in each.
static Status addFrozen(ForeignView &view, const ZeroCheckpoint &from) {
  for (const ForeignShape &shape : from.models.front().frozen) {
    std::vector<FlatVector> ranks(from.models.size());
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      auto part = from.models[rank].frozenParts.find(shape.name);
      uint64_t chunk, needed = sliceOf(shape.numElements, ranks.size(), rank, chunk);
      if (part == from.models[rank].frozenParts.end() ||
          view.sources[part->second].tensor.numElements() < needed)
        return foreignCorrupt(view.folder, "rank " + std::to_string(rank) +
                                               " has too few elements of the frozen " + quote(shape.name));
      ranks[rank].append(part->second, view.sources[part->second].tensor.numElements());
    }
    if (Status status = joinSliced(view, shape, "value", ForeignRole::Frozen, ranks, 0); !status)
      return status;
  }
  return {};
}

Status ds::rt::readZero(ForeignView &view, const std::vector<std::string> &names) {
  ZeroFiles files;
  if (Status status = listFiles(view.folder, names, files); !status)
    return status;
  ZeroCheckpoint checkpoint;
  if (Status status = readRanks(view, files, checkpoint); !status)
    return status;
  int64_t stage = checkpoint.ranks.front().stage;
  view.format = stage == 3 ? ForeignFormat::ZeroSliced : ForeignFormat::ZeroFlat;
  view.description =
      "ZeRO " + std::to_string(stage) + " of " + std::to_string(checkpoint.ranks.size()) + " ranks";
  if (Status status = readModels(view, files, checkpoint); !status)
    return status;
  if (Status status = stage == 3 ? joinSlices(view, checkpoint) : joinFlat(view, checkpoint); !status)
    return status;
  if (Status status = addFrozen(view, checkpoint); !status)
    return status;
  for (const auto &[name, source] : checkpoint.models.front().buffers)
    if (Status status = view.addWhole({name, "value", {}, {}, ForeignRole::Buffer, {}}, source); !status)
      return status;
  for (const auto &[alias, name] : checkpoint.models.front().tied)
    view.tie(name, alias);
  return {};
}
