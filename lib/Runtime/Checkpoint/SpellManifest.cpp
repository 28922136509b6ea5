//===- SpellManifest.cpp - Writes what a checkpoint says of itself -----------------===//

#include "ds/Runtime/Checkpoint/Manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>

namespace ds::rt {

/// Keys stay in the order in which people read them.
using Json = nlohmann::ordered_json;

static Json spellAxes(const Mesh &mesh, AxisSet axes) {
  Json names = Json::array();
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
    if (axes.has(axis))
      names.push_back(mesh.axes()[axis].name);
  return names;
}

static Json spellLayout(const Mesh &mesh, const Layout &layout) {
  Json object = Json::object();
  if (!layout.view.empty())
    object["view"] = layout.view;
  if (layout.existing)
    object["existing"] = *layout.existing;
  if (!layout.pieces.empty())
    object["pieces"] = layout.pieces;
  if (!layout.cuts.empty()) {
    object["cuts"] = Json::array();
    for (AxisSet cut : layout.cuts)
      object["cuts"].push_back(spellAxes(mesh, cut));
  }
  if (layout.isBucketed()) {
    object["bucket"] = spellAxes(mesh, layout.bucket);
    object["offset"] = layout.offset;
    object["shard_elements"] = layout.shardElements;
  }
  return object;
}

static Json spellTensor(const Mesh &mesh, const CheckpointTensor &tensor) {
  Json object = {{"name", tensor.name},
                 {"role", spell(tensor.role)},
                 {"dtype", spell(tensor.dtype)},
                 {"shape", tensor.shape}};
  if (!tensor.owner.empty())
    object["owner"] = tensor.owner;
  if (!tensor.aliases.empty())
    object["aliases"] = tensor.aliases;
  if (tensor.trainable)
    object["trainable"] = true;
  if (tensor.held != tensor.dtype)
    object["held"] = spell(tensor.held);
  if (Json layout = spellLayout(mesh, tensor.layout); !layout.empty())
    object["layout"] = std::move(layout);
  return object;
}

static Json spellFile(const CheckpointFile &file) {
  return {{"name", file.name}, {"bytes", file.bytes}, {"digests", file.digests}};
}

std::string spellFiles(std::span<const CheckpointFile> files) {
  Json list = Json::array();
  for (const CheckpointFile &file : files)
    list.push_back(spellFile(file));
  return list.dump();
}

/// Requires a manifest of one part, as each is when it is written.
static Json spellParts(const Manifest &manifest) {
  Json nodes = Json::array();
  for (const CheckpointNode &node : manifest.nodes)
    nodes.push_back({{"host", node.host}, {"ranks", node.ranks}});
  return {{"save", manifest.save}, {"part", manifest.parts.front()}, {"of", std::move(nodes)}};
}

/// One entry a line, so that people can read what programs write.
static void appendList(std::string &text, const char *key, const std::vector<Json> &entries) {
  text += std::string(" \"") + key + "\": [";
  for (size_t i = 0; i < entries.size(); ++i)
    text += (i ? ",\n  " : "\n  ") + entries[i].dump(-1, ' ', false, Json::error_handler_t::replace);
  text += "]";
}

/// A list, for the first one counts. JSON has no number for a loss that is not finite: null.
static Json spellEvaluations(std::span<const EvalLoss> losses) {
  Json list = Json::array();
  for (const EvalLoss &each : losses)
    list.push_back({{"name", each.name}, {"loss", each.loss}});
  return list;
}

/// The oldest version of the form that has what `manifest` says.
static uint64_t formatOf(const Manifest &manifest) {
  uint64_t version = 1;
  for (const CheckpointTensor &tensor : manifest.tensors)
    if (!tensor.layout.pieces.empty())
      return 3;
    else if (!tensor.layout.view.empty())
      version = 2;
  return version;
}

std::string spellManifest(const Manifest &manifest) {
  Json head = {{"format", "deepstage-checkpoint"},
               {"version", formatOf(manifest)},
               {"step", manifest.step},
               {"writer", manifest.writer},
               {"seed", manifest.seed},
               {"data",
                {{"sign", manifest.data.sign},
                 {"samples", manifest.data.samples},
                 {"tokens", manifest.data.tokens},
                 {"shuffle", manifest.data.shuffle},
                 {"seed", manifest.data.seed}}},
               {"program",
                {{"plan_hash", manifest.planHash},
                 {"target", manifest.target},
                 {"micro_batch", manifest.microBatch},
                 {"accumulation", manifest.accumulation},
                 {"config", manifest.configText}}},
               {"mesh", Json::array()},
               {"chunk_bytes", manifest.chunkBytes}};
  if (!manifest.run.empty())
    head["run"] = manifest.run;
  if (!manifest.optimizer.empty())
    head["program"]["optimizer"] = manifest.optimizer;
  if (!manifest.evaluations.empty())
    head["evaluations"] = spellEvaluations(manifest.evaluations);
  if (!manifest.modelConfig.empty())
    head["model_config"] = manifest.modelConfig;
  for (const MeshAxis &axis : manifest.mesh.axes())
    head["mesh"].push_back({{"axis", axis.name}, {"size", axis.size}});
  if (!manifest.nodes.empty())
    head["nodes"] = spellParts(manifest);
  std::string text;
  for (const auto &[key, value] : head.items())
    text +=
        " " + Json(key).dump() + ": " + value.dump(-1, ' ', false, Json::error_handler_t::replace) + ",\n";
  std::vector<Json> entries;
  for (const CheckpointTensor &tensor : manifest.tensors)
    entries.push_back(spellTensor(manifest.mesh, tensor));
  appendList(text, "tensors", entries);
  text += ",\n";
  entries.clear();
  for (const CheckpointFile &file : manifest.files)
    entries.push_back(spellFile(file));
  appendList(text, "files", entries);
  text += "\n}\n";
  return "{\"digest\": \"" + digestOf(std::as_bytes(std::span(text))) + "\",\n" + text;
}

std::string optimizerOf(std::string_view configText) {
  static constexpr std::string_view kSetting = "optimizer.type = \"";
  const std::string text = "\n" + std::string(configText);
  const size_t found = text.find("\n" + std::string(kSetting));
  if (found == std::string::npos)
    return {};
  const size_t begin = found + 1 + kSetting.size();
  return text.substr(begin, text.find_first_of("\"\n", begin) - begin);
}

std::string manifestName(const Manifest &manifest) {
  return manifest.nodes.empty()
             ? kManifestName
             : fmt::format("manifest-{:05}-of-{:05}.json", manifest.parts.front() + 1, manifest.nodes.size());
}

std::string Manifest::spellNodes(bool here) const {
  std::string text;
  for (uint32_t node = 0; node < nodes.size(); ++node)
    if ((std::ranges::find(parts, node) != parts.end()) == here)
      text += fmt::format("{}node {} of {} (host {}, rank{} {})", text.empty() ? "" : ", ", node + 1,
                          nodes.size(), nodes[node].host, nodes[node].ranks.size() == 1 ? "" : "s",
                          fmt::join(nodes[node].ranks, ", "));
  return text;
}

} // namespace ds::rt
