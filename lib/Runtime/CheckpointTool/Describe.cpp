//===- Describe.cpp - One checkpoint in words ---------------------------------------------===//

#include "ds/Runtime/CheckpointTool/Describe.h"

#include "Files/Text.h"
#include "Words.h"

#include "ds/Runtime/Checkpoint/Store.h"

#include <fmt/format.h>

namespace ds::rt {
namespace {

/// What the tensors of one role take together.
struct Share {
  Role role;
  uint64_t tensors = 0, elements = 0, bytes = 0;
};

std::vector<Share> sharesOf(const Manifest &manifest) {
  std::vector<Share> shares = {{Role::Parameter}, {Role::Buffer}, {Role::Moment}, {Role::Scalar}};
  for (const CheckpointTensor &tensor : manifest.tensors)
    for (Share &share : shares)
      if (share.role == tensor.role) {
        ++share.tensors;
        share.elements += elementsOf(tensor);
        share.bytes += bytesOf(tensor);
      }
  return shares;
}

/// "dim 1 over tp, then flat over dp", or "whole" of what every rank held; where dimensions are those of a
/// view, "as [50264, 768] with 7 rows of padding, dim 0 over tp"; where it has pieces, "dim 0 over tp in
/// pieces of 64, 16, 16".
std::string layoutText(const Mesh &mesh, const Layout &layout) {
  std::string text;
  if (!layout.view.empty())
    text = "as " + spellShape(layout.view);
  if (layout.existing) {
    const uint64_t rows = static_cast<uint64_t>(layout.view.front()) - *layout.existing;
    text += fmt::format(" with {} row{} of padding", rows, rows == 1 ? "" : "s");
  }
  for (size_t d = 0; d < layout.cuts.size(); ++d)
    if (!layout.cuts[d].isEmpty())
      text += fmt::format("{}dim {} over {}", text.empty() ? "" : ", ", d, mesh.spell(layout.cuts[d]));
  if (!layout.pieces.empty())
    text += fmt::format(" in pieces of {}", fmt::join(layout.pieces, ", "));
  if (layout.isBucketed())
    text += fmt::format("{}flat over {}", text.empty() ? "" : ", then ", mesh.spell(layout.bucket));
  return text.empty() ? "whole" : text;
}

std::string typeText(const CheckpointTensor &tensor) {
  std::string text(spell(tensor.dtype));
  return tensor.held == tensor.dtype ? text : text + fmt::format(" (held as {})", spell(tensor.held));
}

std::string tensorLine(const Mesh &mesh, const CheckpointTensor &tensor) {
  std::string line = fmt::format("  {} {} {} {}, {}", quote(tensor.name), spell(tensor.role),
                                 typeText(tensor), spellShape(tensor.shape), layoutText(mesh, tensor.layout));
  if (!tensor.aliases.empty())
    line += ", also " + spellNames(tensor.aliases);
  return line + "\n";
}

/// Text of several lines whose other control characters do nothing to a terminal.
std::string printable(const std::string &text) {
  std::string safe;
  for (const char c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
      safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      safe += c;
  return safe;
}

std::string describeText(const std::string &directory, const Manifest &manifest,
                         const DescribeOptions &options) {
  const DataCursor &data = manifest.data;
  std::string text = fmt::format("{}\n", quote(directory));
  const auto add = [&](const char *key, const std::string &value) {
    text += fmt::format("  {:<12} {}\n", key, value);
  };
  add("step", fmt::format("{}, written by {} at {}", exactText(manifest.step), quote(manifest.writer),
                          timeText(directory)));
  add("data",
      fmt::format("{} samples{} consumed{}", exactText(data.samples),
                  data.tokens ? fmt::format(", {} tokens", exactText(data.tokens)) : "",
                  data.shuffle ? fmt::format(", in an order of seed {}", data.seed) : ", in their order"));
  if (!data.sign.empty())
    add("", quote(data.sign));
  for (const EvalLoss &each : manifest.evaluations)
    add("eval_loss", fmt::format("{:.9g}{}", each.loss, each.name.empty() ? "" : " of " + quote(each.name)));
  add("seed", std::to_string(manifest.seed));
  add("program", fmt::format("{} for {}", quote(manifest.planHash), quote(manifest.target)));
  add("optimizer", manifest.optimizer.empty() ? "not named" : quote(manifest.optimizer));
  add("batch",
      fmt::format("{} sample{} a rank, {} micro-step{}", manifest.microBatch, plural(manifest.microBatch),
                  manifest.accumulation, plural(manifest.accumulation)));
  add("mesh", meshText(manifest.mesh));
  if (!manifest.nodes.empty())
    add("parts", manifest.spellNodes(/*here=*/true));
  add("files", fmt::format("{}, {} ({} bytes)", manifest.files.size(), bytesText(bytesOf(manifest)),
                           exactText(bytesOf(manifest))));
  for (const Share &share : sharesOf(manifest))
    if (share.tensors > 0)
      add(spell(share.role), fmt::format("{} tensor{}, {} elements, {}", share.tensors, plural(share.tensors),
                                         exactText(share.elements), bytesText(share.bytes)));
  add("config.json", manifest.modelConfig.empty() ? "none" : "kept, of the model's source");
  if (options.tensors)
    for (const CheckpointTensor &tensor : manifest.tensors)
      text += tensorLine(manifest.mesh, tensor);
  if (options.config)
    text += printable(manifest.configText) + (manifest.configText.ends_with('\n') ? "" : "\n");
  return text;
}

Json tensorJson(const Mesh &mesh, const CheckpointTensor &tensor) {
  return {{"name", tensor.name},           {"role", spell(tensor.role)},
          {"dtype", spell(tensor.dtype)},  {"held", spell(tensor.held)},
          {"shape", tensor.shape},         {"bytes", bytesOf(tensor)},
          {"trainable", tensor.trainable}, {"owner", tensor.owner},
          {"aliases", tensor.aliases},     {"layout", layoutText(mesh, tensor.layout)}};
}

std::string describeJson(const std::string &directory, const Manifest &manifest,
                         const DescribeOptions &options) {
  const DataCursor &data = manifest.data;
  Json document = {{"directory", directory},
                   {"step", manifest.step},
                   {"writer", manifest.writer},
                   {"written", timeText(directory)},
                   {"seed", manifest.seed},
                   {"run", manifest.run},
                   {"data",
                    {{"samples", data.samples},
                     {"tokens", data.tokens},
                     {"shuffle", data.shuffle},
                     {"seed", data.seed},
                     {"sign", data.sign}}},
                   {"evaluations", evaluationsJson(manifest)},
                   {"plan_hash", manifest.planHash},
                   {"target", manifest.target},
                   {"optimizer", manifest.optimizer},
                   {"micro_batch", manifest.microBatch},
                   {"accumulation", manifest.accumulation},
                   {"ranks", manifest.mesh.size()},
                   {"mesh", Json::array()},
                   {"whole", manifest.isWhole()},
                   {"parts", manifest.parts},
                   {"of_parts", manifest.nodes.size()},
                   {"files", manifest.files.size()},
                   {"bytes", bytesOf(manifest)},
                   {"chunk_bytes", manifest.chunkBytes},
                   {"roles", Json::object()},
                   {"has_model_config", !manifest.modelConfig.empty()}};
  for (const MeshAxis &axis : manifest.mesh.axes())
    document["mesh"].push_back({{"axis", axis.name}, {"size", axis.size}});
  for (const Share &share : sharesOf(manifest))
    document["roles"][spell(share.role)] = {
        {"tensors", share.tensors}, {"elements", share.elements}, {"bytes", share.bytes}};
  if (options.tensors) {
    document["tensors"] = Json::array();
    for (const CheckpointTensor &tensor : manifest.tensors)
      document["tensors"].push_back(tensorJson(manifest.mesh, tensor));
  }
  if (options.config)
    document["config"] = manifest.configText;
  return dump(document);
}

} // namespace

Result<std::string> describeCheckpoint(const std::string &directory, const DescribeOptions &options) {
  const Result<Manifest> manifest = readManifest(directory);
  if (!manifest)
    return manifest.error();
  return options.json ? describeJson(directory, *manifest, options)
                      : describeText(directory, *manifest, options);
}

} // namespace ds::rt
