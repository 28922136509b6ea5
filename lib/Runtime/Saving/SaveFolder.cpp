//===- SaveFolder.cpp - The directory of a run's checkpoints ---------------------------===//
#include "SaveFolder.h"

#include "Process/Messages.h"
#include "SaveDirectory.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace ds::rt {

Status SaveFolder::take(const Program &program, const Checkpoint *from, Team &team) {
  Result<SaveNode> found = findSaveNode(options.save, /*mustShare=*/!program.nodeLocalSaves, team);
  if (!found)
    return Error{found.error().code, "--save: " + found.error().message, found.error().hint};
  mine = std::move(*found);
  if (!mine.leads)
    return {};
  Result<StoreLock> taken = StoreLock::take(options.save);
  if (!taken)
    return Error{taken.error().code, "--save: " + taken.error().message, taken.error().hint};
  lock.emplace(std::move(*taken));
  return checkSaveDirectory(options, from);
}

std::string SaveFolder::pathOf(uint64_t step) const { return fmt::format("{}/step-{}", options.save, step); }

Result<std::string> SaveFolder::begin(uint64_t step) {
  return mine.leads ? beginSave(layer, options.save, step) : Result<std::string>(std::string());
}

Result<std::string> SaveFolder::commit(const std::string &unfinished, const Manifest &whole) {
  if (Status status = writeManifest(layer, unfinished, whole); !status)
    return status.error();
  if (!hasSetAside) {
    if (Status status = setAsideAbandoned(layer, options.save, begunAt); !status)
      return status.error();
    hasSetAside =
        true; // what is there from here on is this run's, also of saves that fail once they are visible
  }
  Result<std::string> path = publishChecked(layer, options, unfinished, whole.step);
  if (path)
    prune(nullptr);
  return path;
}

Status SaveFolder::stage(const std::string &unfinished, const Manifest &whole) {
  return writeManifest(layer, unfinished, whole);
}

Result<std::string> SaveFolder::publish(const std::string &unfinished, uint64_t step) {
  const Result<std::string> path = publishChecked(layer, options, unfinished, step);
  return path ? spellSaves(options.save) : path;
}

void SaveFolder::tidy(const std::set<std::string> &everywhere, uint64_t saved) {
  if (!std::exchange(hasSetAside, true)) // no second time: then the run has parts of its own
    if (const Status aside = setAsideAbandonedParts(layer, options.save, begunAt, everywhere, saved); !aside)
      logLine(aside.error().message);
  prune(&everywhere);
}

/// Removes the oldest ones. What is not a save's stays for good, and is told of once.
void SaveFolder::prune(const std::set<std::string> *everywhere) {
  const auto stays = [this](const Error &why) {
    if (toldOfStays.insert(why.message).second)
      logLine(why.message);
  };
  if (Status status = pruneCheckpoints(layer, options.save, options.keep, everywhere, stays); !status)
    logLine(fmt::format("old checkpoints stay: {}", status.error().message));
}

void SaveFolder::discard(const std::string &unfinished) {
  std::error_code unused;
  if (mine.leads && !unfinished.empty() && std::filesystem::exists(unfinished, unused))
    if (Status status = removeCheckpoint(layer, unfinished); !status)
      logLine(fmt::format("what was written of it stays: {}", status.error().message));
}

} // namespace ds::rt
