//===- LostWeights.cpp - What is not finite in a file of weights -----------------------===//

#include "LostWeights.h"

#include "Program/StateNames.h"

#include "ds/Runtime/Files/StorageWatch.h"
#include "ds/Runtime/Formats/SafeTensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <unordered_set>

namespace ds::rt {

/// What is read before its pages are given back.
static constexpr uint64_t kPieceBytes = uint64_t(64) << 20;

static const TensorEntry *findEntry(const WeightFiles &files, const std::vector<std::string> &names) {
  for (const std::string &name : names)
    if (const TensorEntry *entry = files.find(name))
      return entry;
  return nullptr;
}

LostWeights::LostWeights(const Program &program) {
  for (const State &state : program.states) {
    if (!isInFiles(state))
      continue;
    Weight &weight = weights.emplace_back();
    weight.names = namesInFiles(state);
    weight.shape = state.logicalShape;
    weight.values.mayBeInfinite = state.role == Role::Buffer;
  }
}

Status LostWeights::look(const std::string &path, uint32_t rank, uint32_t world) {
  const Result<WeightFiles> files = WeightFiles::open(path);
  if (!files)
    return files.error();
  const StorageOperation reading("reading", path);
  std::unordered_set<const TensorEntry *> seen;
  for (Weight &weight : weights) {
    const TensorEntry *entry = findEntry(*files, weight.names);
    if (!entry || !seen.insert(entry).second) // tied over stages
      continue;
    const uint64_t size = bitSize(entry->dtype) / 8, count = size > 0 ? entry->bytes / size : 0;
    const uint64_t share = (count + world - 1) / world, end = std::min(count, (rank + 1) * share);
    for (uint64_t at = rank * share; at < end; at += kPieceBytes / size) {
      const uint64_t piece = std::min(kPieceBytes / size, end - at);
      weight.values.look(entry->dtype, {entry->data + at * size, piece * size}, at);
      if (piece == kPieceBytes / size)
        for (const SafeTensorsFile &file : files->files())
          file.file().forget();
    }
  }
  return {};
}

std::string LostWeights::pack() const {
  std::string text;
  for (size_t i = 0; i < weights.size(); ++i)
    if (const LostValues &values = weights[i].values; values.any())
      text += fmt::format("{} {} {} {}\n", i, values.nan, values.infinite, values.first);
  return text;
}

void LostWeights::add(const std::string &packed) {
  std::istringstream text(packed);
  size_t number = 0;
  for (LostValues values; text >> number >> values.nan >> values.infinite >> values.first;)
    if (number < weights.size())
      weights[number].values.add(values);
}

std::vector<std::string> LostWeights::lines() const {
  LostLines lines;
  for (const Weight &weight : weights)
    lines.add(weight.values, weight.names.front(), weight.shape);
  return lines.all();
}

} // namespace ds::rt
