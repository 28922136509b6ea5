//===- DescribeStore.cpp - A directory of checkpoints in words ----------------------------===//

#include "Files/Text.h"
#include "Program/Shape.h"
#include "Words.h"

#include "ds/Runtime/Checkpoint/Store.h"
#include "ds/Runtime/CheckpointTool/Describe.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <sys/stat.h>

namespace ds::rt {

std::string meshText(const Mesh &mesh) {
  const std::string ranks = fmt::format("{} rank{}", mesh.size(), plural(mesh.size()));
  return mesh.numAxes() == 0 ? ranks : ranks + " " + mesh.spell();
}

std::string timeText(const std::string &directory) {
  struct stat info;
  const std::vector<std::string> names = manifestsIn(directory);
  if (names.empty() || ::stat((directory + "/" + names.back()).c_str(), &info) != 0)
    return {};
  std::tm time = {};
  if (!::gmtime_r(&info.st_mtim.tv_sec, &time))
    return {};
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", time);
}

uint64_t elementsOf(const CheckpointTensor &tensor) { return elementsOf(tensor.shape); }

uint64_t bytesOf(const CheckpointTensor &tensor) { return elementsOf(tensor) * (bitSize(tensor.dtype) / 8); }

Json evaluationsJson(const Manifest &manifest) {
  Json list = Json::array();
  for (const EvalLoss &each : manifest.evaluations)
    list.push_back({{"name", each.name}, {"loss", each.loss}});
  return list;
}

uint64_t bytesOf(const Manifest &manifest) {
  uint64_t bytes = 0;
  for (const CheckpointFile &file : manifest.files)
    bytes += file.bytes;
  return bytes;
}

namespace {

/// One line of the list; without a manifest the reason alone.
struct Line {
  std::string name, problem, time;
  std::optional<Manifest> manifest;
};

Line lineOf(const std::string &root, const StoredCheckpoint &checkpoint) {
  const std::string directory = root + "/" + checkpoint.name;
  Line line{checkpoint.name, checkpoint.problem, timeText(directory), {}};
  if (!line.problem.empty())
    return line;
  Result<Manifest> manifest = readManifestAlone(directory);
  if (manifest)
    line.manifest = std::move(*manifest);
  else // gone since it was listed
    line.problem = manifest.error().message;
  return line;
}

Json jsonOf(const Line &line) {
  if (!line.manifest)
    return {{"name", line.name}, {"whole", false}, {"problem", line.problem}};
  const Manifest &manifest = *line.manifest;
  Json mesh = Json::array();
  for (const MeshAxis &axis : manifest.mesh.axes())
    mesh.push_back({{"axis", axis.name}, {"size", axis.size}});
  return {{"name", line.name},
          {"whole", manifest.isWhole()},
          {"parts", manifest.parts.size()},
          {"of_parts", manifest.nodes.size()},
          {"step", manifest.step},
          {"samples", manifest.data.samples},
          {"tokens", manifest.data.tokens},
          {"evaluations", evaluationsJson(manifest)},
          {"bytes", bytesOf(manifest)},
          {"files", manifest.files.size()},
          {"ranks", manifest.mesh.size()},
          {"mesh", std::move(mesh)},
          {"writer", manifest.writer},
          {"written", line.time}};
}

/// Of the list's columns the one that is left out where no checkpoint was evaluated.
constexpr size_t kEvaluation = 4;
using Cells = std::array<std::string, 8>;

Cells cellsOf(const Line &line) {
  const Manifest &manifest = *line.manifest;
  return {line.name,
          exactText(manifest.step),
          exactText(manifest.data.samples),
          manifest.data.tokens ? exactText(manifest.data.tokens) : "-",
          manifest.evaluations.empty() ? "-" : fmt::format("{:.6g}", manifest.evaluations.front().loss),
          bytesText(bytesOf(manifest)),
          meshText(manifest.mesh) + (manifest.isWhole() ? "" : ", " + manifest.spellNodes(/*here=*/true)),
          line.time};
}

/// Columns as wide as they must be; numbers end where their column does.
std::string tableOf(const std::vector<Line> &lines) {
  std::vector<Cells> rows = {
      {"checkpoint", "step", "samples", "tokens", "eval_loss", "bytes", "mesh", "written"}};
  for (const Line &line : lines)
    if (line.manifest)
      rows.push_back(cellsOf(line));
  const bool evaluated = std::ranges::any_of(
      lines, [](const Line &line) { return line.manifest && !line.manifest->evaluations.empty(); });
  std::array<size_t, std::tuple_size_v<Cells>> widths = {};
  for (const Cells &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Cells &row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i)
      if (i != kEvaluation || evaluated)
        text += i >= 1 && i <= 5 ? fmt::format("{:>{}}  ", row[i], widths[i])
                                 : fmt::format("{:<{}}  ", row[i], widths[i]);
    text += row.back() + "\n";
  }
  return rows.size() > 1 ? text : std::string();
}

} // namespace

Result<std::string> describeStore(const std::string &root, bool json) {
  const Result<StoreListing> listing = listCheckpoints(root);
  if (!listing)
    return listing.error();
  std::vector<Line> lines;
  for (const StoredCheckpoint &checkpoint : listing->checkpoints)
    lines.push_back(lineOf(root, checkpoint));
  if (json) {
    Json document = {{"directory", root},
                     {"checkpoints", Json::array()},
                     {"leftovers", listing->leftovers},
                     {"set_aside", listing->aside}};
    for (const Line &line : lines)
      document["checkpoints"].push_back(jsonOf(line));
    return dump(document);
  }
  std::string text = tableOf(lines);
  for (const Line &line : lines)
    if (!line.manifest)
      text += fmt::format("not whole: {}: {}\n", line.name, line.problem);
  for (const std::string &name : listing->leftovers)
    text += fmt::format("{}: {}\n", spellOrigin(name), quote(name));
  for (const std::string &name : listing->aside)
    text += fmt::format("set aside by a run that went back before it: {}\n", quote(name));
  return text.empty() ? fmt::format("no checkpoint in {}\n", quote(root)) : text;
}

} // namespace ds::rt
