//===- Collect.cpp - Removes what a directory of checkpoints needs no more ----------------===//

#include "ds/Runtime/CheckpointTool/Collect.h"

#include "Files/Text.h"
#include "Words.h"

#include "ds/Runtime/Checkpoint/Store.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

namespace ds::rt {
namespace fs = std::filesystem;
namespace {

/// Bytes of the files in a directory, as far as they can be seen.
uint64_t bytesIn(const std::string &directory) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code unseen;
    const uint64_t size = entry->is_regular_file(unseen) ? entry->file_size(unseen) : 0;
    bytes += unseen ? 0 : size;
  }
  return bytes;
}

/// What is to go, the oldest first: whoever ends this half-way has the newest ones still.
std::vector<Removed> chooseRemoved(const StoreListing &listing, const CollectOptions &options,
                                   const Notice &notice) {
  std::vector<Removed> chosen;
  const std::set<std::string> forGood =
      keptForGood(listing, options.keep.value_or(KeepRule()), [](const StoredCheckpoint &) { return true; });
  uint32_t whole = 0;
  for (const StoredCheckpoint &each : listing.checkpoints)
    if (each.isLink) {
      notice(fmt::format("stays, for it is a link: {}", quote(options.root + "/" + each.name)));
    } else if (each.problem.empty()) {
      if (++whole > (options.keep ? options.keep->atLeast() : UINT32_MAX) && !forGood.contains(each.name))
        chosen.push_back({each.name, "older", 0});
    } else if (options.damaged) {
      chosen.push_back({each.name, "not whole", 0});
    } else {
      notice(fmt::format("stays, for --damaged was not given: {}", each.problem));
    }
  for (const std::string &name : listing.leftovers)
    if (whole == 0 && readManifest(options.root + "/" + name))
      notice(fmt::format("stays, for there is no other whole checkpoint: {}", quote(name)));
    else
      chosen.push_back({name, spellOrigin(name), 0});
  for (const std::string &name : listing.aside)
    if (options.setAside)
      chosen.push_back({name, "set aside", 0});
    else
      notice(fmt::format("stays, for --set-aside was not given: {}", quote(name)));
  return {chosen.rbegin(), chosen.rend()};
}

} // namespace

Status collectGarbage(const CollectOptions &options, const std::function<void(const Removed &)> &told,
                      const Notice &notice) {
  std::optional<StoreLock> lock;
  if (!options.dryRun) {
    Result<StoreLock> taken = StoreLock::take(options.root);
    if (!taken)
      return Error{taken.error().code, taken.error().message, "wait for that run, or end it"};
    lock.emplace(std::move(*taken));
  }
  const Result<StoreListing> listing = listCheckpoints(options.root);
  if (!listing)
    return listing.error();
  for (Removed &each : chooseRemoved(*listing, options, notice)) {
    const std::string directory = options.root + "/" + each.name;
    each.bytes = bytesIn(directory);
    const Status status =
        options.dryRun ? checkRemovable(directory) : removeCheckpoint(systemFiles(), directory);
    if (!status && status.error().code == ExitCode::Invalid) {
      notice(status.error().message); // what no save has made is not ours
      continue;
    }
    if (!status)
      return status;
    told(each);
  }
  return {};
}

} // namespace ds::rt
