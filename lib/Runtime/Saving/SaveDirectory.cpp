//===- SaveDirectory.cpp - Where a run saves, and whether it may ----------------------===//

#include "SaveDirectory.h"

#include "Process/Messages.h"

#include "ds/Runtime/Checkpoint/Store.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace ds::rt {
namespace fs = std::filesystem;

/// Whether the checkpoint `path` is one of those in `root`.
static bool isIn(const std::string &path, const std::string &root) {
  std::error_code error;
  const fs::path own = fs::canonical(path, error);
  return !error && fs::equivalent(own.parent_path(), root, error) && !error;
}

/// A run that is not resumed finds what an earlier one has left.
static Status checkIsNew(const std::string &directory, const StoreListing &listing) {
  const auto last = std::ranges::find_if(listing.checkpoints, &StoredCheckpoint::hasManifest);
  if (last == listing.checkpoints.end())
    return {};
  return Error{ExitCode::Invalid,
               fmt::format("--save '{}': there are checkpoints of an earlier run, the last one of step {}",
                           directory, last->step),
               "resume that run by --resume auto, or name another directory with --save"};
}

Status checkSaveDirectory(const TrainOptions &options, const Checkpoint *from) {
  const Result<StoreListing> listing = listCheckpoints(options.save);
  if (!listing)
    return Error{listing.error().code, "--save: " + listing.error().message, listing.error().hint};
  if (options.resume.empty())
    return checkIsNew(options.save, *listing);
  if (!from)
    return {};
  const std::string &run = from->manifest().run;
  if (run.empty() && isIn(from->directory(), options.save)) // of before runs had letters, or imported
    return {};
  const auto other = std::ranges::find_if(listing->checkpoints, [&](const StoredCheckpoint &each) {
    return !each.run.empty() && each.run != run;
  });
  if (other == listing->checkpoints.end())
    return {};
  return Error{
      ExitCode::Invalid,
      fmt::format("--save '{}': there are checkpoints of another run than '{}', the last one of step {}",
                  options.save, from->directory(), other->step),
      "name an empty directory with --save, or resume that run by --resume auto"};
}

static Status setAsideAndTell(FileLayer &layer, const std::string &root,
                              const std::function<bool(const StoredCheckpoint &)> &isAbandoned) {
  const auto renamed = setAside(layer, root, isAbandoned);
  if (!renamed)
    return renamed.error();
  for (const auto &[name, aside] : *renamed)
    logLine(fmt::format("'{0}/{1}' is not of the way that the run takes now: it is kept as '{0}/{2}'", root,
                        name, aside));
  return {};
}

Status setAsideAbandoned(FileLayer &layer, const std::string &root, std::optional<uint64_t> since) {
  return setAsideAndTell(layer, root, [&](const StoredCheckpoint &each) {
    return each.hasManifest && each.save.empty() && (!since || each.step > *since);
  });
}

Status setAsideAbandonedParts(FileLayer &layer, const std::string &root, std::optional<uint64_t> since,
                              const std::set<std::string> &everywhere, uint64_t saved) {
  return setAsideAndTell(layer, root, [&](const StoredCheckpoint &each) {
    return everywhere.contains(each.save) && each.step != saved && (!since || each.step > *since);
  });
}

/// Looks at a new checkpoint again: sizes and headers always, all `contents` where that is asked for.
static Status checkSaved(const std::string &path, bool contents) {
  const Result<Checkpoint> saved = Checkpoint::open(path);
  if (!saved)
    return saved.error();
  if (!contents)
    return {};
  std::string damage;
  for (const CheckpointFile &file : saved->manifest().files) {
    Status status = saved->verify(file, [&](uint64_t offset, uint64_t) {
      damage = fmt::format("'{}/{}' does not read as it was written, from byte {}", path, file.name, offset);
    });
    if (!status)
      return status;
  }
  return damage.empty() ? Status() : Status(Error{ExitCode::Io, damage, ""});
}

Result<std::string> publishChecked(FileLayer &layer, const TrainOptions &options,
                                   const std::string &unfinished, uint64_t step) {
  Result<std::string> path = publishSave(layer, options.save, unfinished, step);
  if (!path)
    return path;
  if (Status status = checkSaved(*path, options.verifySaves); !status) {
    static_cast<void>(removeCheckpoint(layer, *path)); // what stays of it has no manifest
    return status.error();
  }
  return path;
}

} // namespace ds::rt
