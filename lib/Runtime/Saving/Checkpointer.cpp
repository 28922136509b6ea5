//===- Checkpointer.cpp - Saves a run while it trains -------------------------------===//

#include "Checkpointer.h"

#include "Process/Messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>

namespace ds::rt {

static constexpr const char *kWhat = "saving of a checkpoint";
/// How often ranks that wait for each other's disks ask.
static constexpr auto kAskAgain = std::chrono::milliseconds(5);

//===----------------------------------------------------------------------===//
// Before the first step
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<Checkpointer>> Checkpointer::open(const TrainOptions &options, const Program &program,
                                                         const Checkpoint *from, Team &team) {
  std::unique_ptr<Checkpointer> made(new Checkpointer(options, team));
  if (Status status = made->prepare(program, from); !status)
    return status.error();
  return made;
}

Status Checkpointer::prepare(const Program &program, const Checkpoint *from) {
  if (Status status = folder.take(program, from, team); !status)
    return status;
  const SaveNode &node = folder.node();
  if (Status status = files.plan(program, team.rank(), node.ranks()); !status)
    return status;
  if (Status status = describeRun(program); !status)
    return status;
  if (Status status = findBest(from); !status)
    return status;
  if (options.saveMode == SaveMode::Async)
    if (Status status = files.makeCopy(); !status)
      return status;
  if (!node.isShared() && team.leads())
    logLine(fmt::format("--save '{}' is a directory of each of {} nodes, which keep what their ranks hold",
                        options.save, node.nodes.size()));
  return {};
}

/// Fills in what all saves of the run say alike. Its letters are new, unless continuesFrom brings others.
Status Checkpointer::describeRun(const Program &program) {
  const Result<std::string> letters =
      team.fromLeader(team.leads() ? uniqueLetters() : std::string(), "letters of the run");
  if (!letters)
    return letters.error();
  manifest.run = *letters;
  manifest.writer = "ds-run";
  manifest.planHash = program.planHash;
  manifest.target = program.target;
  manifest.configText = program.configText;
  manifest.optimizer = optimizerOf(program.configText);
  manifest.modelConfig = program.modelConfig;
  manifest.mesh = program.mesh;
  manifest.microBatch = program.microBatch;
  manifest.accumulation = program.accumulation;
  manifest.tensors = checkpointTensors(program);
  manifest.nodes = folder.node().nodes;
  if (!folder.node().isShared())
    manifest.parts = {folder.node().number};
  while (checkpointBytes(program) / manifest.chunkBytes > kMostChunks)
    manifest.chunkBytes *= 2;
  return {};
}

/// Of the checkpoints that the run goes on behind, as who leads sees them.
Status Checkpointer::findBest(const Checkpoint *from) {
  if (options.keep.best == 0)
    return {};
  const std::optional<uint64_t> last = from ? std::optional(from->manifest().step) : std::nullopt;
  const Result<std::string> losses = team.fromLeader(
      team.leads() ? best.pack(options.save, last) : Result<std::string>(std::string()), "held-out losses");
  if (!losses)
    return losses.error();
  best.unpack(*losses);
  return {};
}

void Checkpointer::continuesFrom(const Checkpoint &checkpoint) {
  const Manifest &from = checkpoint.manifest();
  folder.resumesAt(from.step);
  if (!from.run.empty())
    manifest.run = from.run;
  newestSave.path = checkpoint.directory();
  std::error_code error;
  const std::string own = folder.pathOf(from.step);
  if (std::filesystem::equivalent(newestSave.path, own, error) && !error)
    newestSave.step = from.step;
}

bool Checkpointer::isDue(uint64_t step) const {
  if (!team.leads() || newestSave.step == step)
    return false;
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - save.begun;
  return (options.saveEvery > 0 && step % options.saveEvery == 0) || options.keep.isMilestone(step) ||
         (options.saveSeconds > 0 && since.count() >= options.saveSeconds);
}

//===----------------------------------------------------------------------===//
// What all ranks do together
//===----------------------------------------------------------------------===//

Status Checkpointer::endStep(const Executor &executor, const RunPosition &position, bool anyDue,
                             bool anyBusy) {
  if (save.stage != Stage::Idle && !anyBusy)
    if (Status status = advance(); !status)
      return status;
  if (!anyDue)
    return {};
  if (save.stage != Stage::Idle && team.leads() && !std::exchange(toldOfWaiting, true))
    logLine(
        fmt::format("step {}: a save is due, but the one before is not written yet: training waits for it",
                    position.step));
  if (Status status = settle(); !status)
    return status;
  return begin(executor, position, /*atOnce=*/options.saveMode == SaveMode::Sync);
}

Status Checkpointer::finish(const Executor &executor, const RunPosition &position) {
  if (Status status = settle(); !status)
    return status;
  if (newestSave.step == position.step)
    return {};
  if (Status status = begin(executor, position, /*atOnce=*/true); !status)
    return status;
  if (newestSave.step == position.step)
    return {};
  return Error{ExitCode::Io, fmt::format("the checkpoint of step {} could not be saved", position.step),
               newestSave.path.empty() ? "" : fmt::format("the newest one is '{}'", newestSave.path)};
}

Status Checkpointer::settle() {
  while (save.stage != Stage::Idle) {
    const Result<bool> anyBusy = team.anyOf(worker.isBusy());
    if (!anyBusy)
      return anyBusy.error();
    if (*anyBusy) {
      std::this_thread::sleep_for(kAskAgain);
      continue;
    }
    if (Status status = advance(); !status)
      return status;
  }
  return {};
}

/// No rank is busy: what comes next.
Status Checkpointer::advance() {
  worker.join();
  switch (save.stage) {
  case Stage::Writing:
    return collectFiles();
  case Stage::Staging:
    return collectManifests();
  case Stage::Committing:
    return collectOutcome();
  case Stage::Pruning:
  case Stage::Idle:
    break;
  }
  save.stage = Stage::Idle;
  return {};
}

Status Checkpointer::begin(const Executor &executor, const RunPosition &position, bool atOnce) {
  save.begun = std::chrono::steady_clock::now();
  manifest.step = position.step;
  manifest.seed = position.seed;
  manifest.data = position.data;
  manifest.evaluations = position.evaluations;
  const Result<std::string> mine = folder.begin(position.step);
  save.directory = mine ? *mine : std::string(); // to be removed if another has failed
  const Result<std::vector<std::string>> made = team.fromAll(mine, kWhat);
  if (!made)
    return giveUp(made.error());
  save.directory = (*made)[folder.node().leader()];
  if (!folder.node().isShared())
    manifest.save = made->front().substr(made->front().rfind('-') + 1);
  save.stage = Stage::Writing;
  if (atOnce) {
    save.written.emplace(files.write(&executor, save.directory, manifest.chunkBytes));
    return settle();
  }
  if (Status status = files.copy(executor); !status)
    return status;
  worker.run([this] { save.written.emplace(files.write(nullptr, save.directory, manifest.chunkBytes)); });
  return {};
}

/// All ranks have written: who leads makes it a checkpoint, or, of several nodes, all but its name.
Status Checkpointer::collectFiles() {
  const Result<std::vector<std::string>> texts = team.fromAll(
      *save.written ? Result<std::string>(spellFiles(**save.written)) : save.written->error(), kWhat);
  if (!texts)
    return giveUp(texts.error());
  save.stage = folder.node().isShared() ? Stage::Committing : Stage::Staging;
  save.done.emplace(std::string());
  if (!folder.node().leads)
    return {};
  Manifest whole = manifest;
  save.bytes = 0;
  for (uint32_t rank = 0; rank < texts->size(); ++rank) {
    const Result<std::vector<CheckpointFile>> list = parseFiles((*texts)[rank]);
    if (!list) {
      save.done.emplace(list.error());
      return {};
    }
    for (const CheckpointFile &file : *list)
      save.bytes += file.bytes;
    if (folder.node().isShared() || std::ranges::binary_search(folder.node().ranks(), rank))
      whole.files.insert(whole.files.end(), list->begin(), list->end());
  }
  worker.run([this, whole = std::move(whole)] {
    if (folder.node().isShared())
      return void(save.done.emplace(folder.commit(save.directory, whole)));
    const Status status = folder.stage(save.directory, whole);
    if (!status)
      save.done.emplace(status.error());
  });
  return {};
}

/// All nodes have all of their parts on their disks: from here on they become visible.
Status Checkpointer::collectManifests() {
  if (const Result<std::vector<std::string>> texts = team.fromAll(*save.done, kWhat); !texts)
    return giveUp(texts.error());
  save.stage = Stage::Committing;
  if (folder.node().leads)
    worker.run([this] { save.done.emplace(folder.publish(save.directory, manifest.step)); });
  return {};
}

/// Who leads is done: all learn how it went. Only when all nodes have their parts older ones may go.
Status Checkpointer::collectOutcome() {
  const Result<std::vector<std::string>> texts = team.fromAll(*save.done, kWhat);
  if (!texts) {
    if (folder.node().leads && *save.done) // of a save that others do not have
      save.directory = folder.pathOf(manifest.step);
    return giveUp(texts.error());
  }
  save.written.reset();
  save.stage = Stage::Idle;
  failures = 0;
  newestSave.path = folder.pathOf(manifest.step);
  newestSave.step = manifest.step;
  best.add(manifest.evaluations);
  if (team.leads())
    logLine(fmt::format(
        "checkpoint saved to '{}': {} in {:.3g} s", newestSave.path, bytesText(double(save.bytes)),
        std::chrono::duration<double>(std::chrono::steady_clock::now() - save.begun).count()));
  if (folder.node().isShared())
    return {};
  save.stage = Stage::Pruning;
  if (folder.node().leads)
    worker.run(
        [this, everywhere = savesOfAll(folder.node(), *texts)] { folder.tidy(everywhere, manifest.step); });
  return {};
}

/// Ends the save that is under way.
Status Checkpointer::giveUp(const Error &error) {
  save.written.reset();
  save.stage = Stage::Idle;
  return error.code == ExitCode::Peer ? Status(error) : noteFailure(error.message);
}

Status Checkpointer::noteFailure(const std::string &why) {
  folder.discard(save.directory);
  save.directory.clear();
  const std::string what =
      fmt::format("the checkpoint of step {} could not be saved: {}", manifest.step, why);
  if (++failures >= kMostFailures)
    return Error{ExitCode::Io, fmt::format("{}; {} saves in a row have failed", what, failures),
                 newestSave.path.empty() ? "free space, or name another directory with --save"
                                         : fmt::format("the newest checkpoint is '{}'", newestSave.path)};
  if (team.leads())
    logLine(
        fmt::format("{}; training continues ({} of {} failures in a row)", what, failures, kMostFailures));
  return {};
}

} // namespace ds::rt
