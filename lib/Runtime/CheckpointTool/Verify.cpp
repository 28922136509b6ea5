//===- Verify.cpp - Whether a checkpoint is what was written ---------------------------===//

#include "ds/Runtime/CheckpointTool/Verify.h"

#include "Files/Text.h"
#include "VerifyFile.h"
#include "Words.h"

#include "ds/Runtime/Checkpoint/Checkpoint.h"
#include "ds/Runtime/Checkpoint/Store.h"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>
#include <unordered_set>

namespace ds::rt {
namespace {

/// Names in the directory that the manifest does not have.
Result<std::vector<std::string>> findExtra(const std::string &directory, const Manifest &manifest) {
  std::unordered_set<std::string_view> known;
  for (const CheckpointFile &file : manifest.files)
    known.insert(file.name);
  std::vector<std::string> extra;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    if (std::string name = entry->path().filename(); !known.contains(name) && !isManifestName(name))
      extra.push_back(std::move(name));
  if (error)
    return ioError("look through", directory, error.value());
  std::sort(extra.begin(), extra.end());
  return extra;
}

/// Each thread takes the next file that nobody has taken, the largest first.
std::vector<std::optional<Result<std::vector<Damage>>>>
verifyFiles(const std::string &directory, const Manifest &manifest, unsigned threads) {
  std::vector<size_t> order(manifest.files.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return manifest.files[a].bytes > manifest.files[b].bytes; });
  std::vector<std::optional<Result<std::vector<Damage>>>> found(order.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i; (i = next++) < order.size();)
      found[order[i]] = verifyFile(directory, manifest.files[order[i]], manifest.chunkBytes);
  };
  std::vector<std::jthread> others;
  for (unsigned i = 1; i < std::min<size_t>(threads, order.size()); ++i)
    others.emplace_back(work);
  work();
  others.clear(); // waits for them
  return found;
}

} // namespace

Result<VerifyReport> verifyCheckpoint(const std::string &directory, unsigned threads) {
  VerifyReport report;
  report.directory = directory;
  const Result<Manifest> manifest = readManifestAlone(directory);
  if (!manifest && manifest.error().code != ExitCode::Corrupt)
    return manifest.error();
  if (!manifest) {
    report.damages.push_back({directory + "/" + kManifestName, 0, 0, manifest.error().message, {}});
    return report;
  }
  Result<std::vector<std::string>> extra = findExtra(directory, *manifest);
  if (!extra)
    return extra.error();
  report.extra = std::move(*extra);
  report.files = manifest->files.size();
  report.bytes = bytesOf(*manifest);
  for (auto &found : verifyFiles(directory, *manifest, threads)) {
    if (!*found)
      return found->error();
    std::move((*found)->begin(), (*found)->end(), std::back_inserter(report.damages));
  }
  if (!report.damages.empty())
    return report;
  const Result<Checkpoint> opened = Checkpoint::open(directory);
  if (!opened && opened.error().code != ExitCode::Corrupt)
    return opened.error();
  if (!opened)
    report.damages.push_back({directory, 0, 0, opened.error().message, {}});
  return report;
}

Status verifyStore(const std::string &root, unsigned threads, const Notice &notice,
                   const std::function<void(VerifyReport)> &told) {
  const Result<StoreListing> listing = listCheckpoints(root);
  if (!listing)
    return listing.error();
  if (listing->checkpoints.empty())
    return Error{ExitCode::Io, fmt::format("there is no checkpoint in {}", quote(root)),
                 "name the directory that ds-run --save was given, or one step-N in it"};
  for (const std::string &name : listing->leftovers)
    notice(fmt::format("{}, and not looked at: {}", spellOrigin(name), quote(name)));
  for (const StoredCheckpoint &each : listing->checkpoints) {
    const std::string directory = root + "/" + each.name;
    Result<VerifyReport> report = verifyCheckpoint(directory, threads);
    const bool isGood = report && report->damages.empty();
    if (!isGood && each.hasManifest && manifestsIn(directory).empty())
      notice(fmt::format("removed meanwhile, and not looked at: {}", quote(each.name)));
    else if (!report)
      return report.error();
    else
      told(std::move(*report));
  }
  return {};
}

/// One line without its end. What names its place itself is repeated as it is.
static std::string spellDamage(const Damage &damage) {
  std::string text = quote(damage.file) + " " + damage.what;
  if (damage.bytes > 0)
    text = fmt::format("{}: {} bytes from byte {} on {}", quote(damage.file), damage.bytes, damage.first,
                       damage.what);
  else if (damage.what.starts_with('\''))
    text = damage.what;
  if (!damage.tensors.empty())
    text += "; there lie " + spellNames(damage.tensors);
  return text;
}

std::string spellReport(const VerifyReport &report) {
  if (report.damages.empty())
    return fmt::format("{}: whole, {} file{}, {}\n", quote(report.directory), report.files,
                       plural(report.files), bytesText(report.bytes));
  std::string text;
  for (const Damage &damage : report.damages)
    text += spellDamage(damage) + "\n";
  return text;
}

std::string spellReportsAsJson(const std::vector<VerifyReport> &reports) {
  Json list = Json::array();
  for (const VerifyReport &report : reports) {
    Json damages = Json::array();
    for (const Damage &damage : report.damages)
      damages.push_back({{"file", damage.file},
                         {"first_byte", damage.first},
                         {"bytes", damage.bytes},
                         {"what", damage.what},
                         {"tensors", damage.tensors}});
    list.push_back({{"directory", report.directory},
                    {"whole", report.damages.empty()},
                    {"files", report.files},
                    {"bytes", report.bytes},
                    {"damages", std::move(damages)},
                    {"extra", report.extra}});
  }
  return dump({{"checkpoints", std::move(list)}});
}

} // namespace ds::rt
