//===- Checkpointer.cpp - Saves a run while it trains -------------------------------===//

#include "Checkpointer.h"

#include "Process/Messages.h"
#include "SaveDirectory.h"

#include "ds/Runtime/Checkpoint/ShardWriter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>

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
  Result<SaveNode> found = findSaveNode(options.save, /*mustShare=*/!program.nodeLocalSaves, team);
  if (!found)
    return Error{found.error().code, "--save: " + found.error().message, found.error().hint};
  node = std::move(*found);
  if (Status status = takeDirectory(from); !status)
    return status;
  Result<std::vector<ShardFile>> planned = planShards(program, team.rank(), node.ranks());
  if (!planned)
    return Error{planned.error().code, "--save: " + planned.error().message, planned.error().hint};
  files = std::move(*planned);
  if (Status status = describeRun(program); !status)
    return status;
  if (options.saveMode == SaveMode::Async) {
    Result<Snapshot> made = Snapshot::create(files);
    if (!made)
      return Error{made.error().code,
                   "--save: for the copy that is written while training continues: " + made.error().message,
                   "save with --save-mode sync, which needs no copy"};
    copy.emplace(std::move(*made));
  }
  staged = std::make_unique<StagedWriter>(layer);
  if (!node.isShared() && team.leads())
    logLine(fmt::format("--save '{}' is a directory of each of {} nodes, which keep what their ranks hold",
                        options.save, node.nodes.size()));
  return {};
}

/// Who leads locks the directory, which then is this run's, and looks whether it may be.
Status Checkpointer::takeDirectory(const Checkpoint *from) {
  if (!node.leads)
    return {};
  Result<StoreLock> taken = StoreLock::take(options.save);
  if (!taken)
    return Error{taken.error().code, "--save: " + taken.error().message, taken.error().hint};
  lock.emplace(std::move(*taken));
  return checkSaveDirectory(options, from);
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
  manifest.nodes = node.nodes;
  if (!node.isShared())
    manifest.parts = {node.number};
  while (checkpointBytes(program) / manifest.chunkBytes > kMostChunks)
    manifest.chunkBytes *= 2;
  return {};
}

void Checkpointer::continuesFrom(const Checkpoint &checkpoint) {
  const Manifest &from = checkpoint.manifest();
  begunAt = from.step;
  if (!from.run.empty())
    manifest.run = from.run;
  newestPath = checkpoint.directory();
  std::error_code error;
  const std::string own = fmt::format("{}/step-{}", options.save, from.step);
  if (std::filesystem::equivalent(newestPath, own, error) && !error)
    newestStep = from.step;
}

Checkpointer::~Checkpointer() {
  if (worker.joinable())
    worker.join();
}

bool Checkpointer::isDue(uint64_t step) const {
  if (!team.leads() || newestStep == step)
    return false;
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - lastBegun;
  return (options.saveEvery > 0 && step % options.saveEvery == 0) ||
         (options.saveSeconds > 0 && since.count() >= options.saveSeconds);
}

//===----------------------------------------------------------------------===//
// What all ranks do together
//===----------------------------------------------------------------------===//

Status Checkpointer::endStep(const Executor &executor, const RunPosition &position, bool anyDue,
                             bool anyBusy) {
  if (stage != Stage::Idle && !anyBusy)
    if (Status status = advance(); !status)
      return status;
  if (!anyDue)
    return {};
  if (stage != Stage::Idle && team.leads() && !std::exchange(toldOfWaiting, true))
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
  if (newestStep == position.step)
    return {};
  if (Status status = begin(executor, position, /*atOnce=*/true); !status)
    return status;
  if (newestStep == position.step)
    return {};
  return Error{ExitCode::Io, fmt::format("the checkpoint of step {} could not be saved", position.step),
               newestPath.empty() ? "" : fmt::format("the newest one is '{}'", newestPath)};
}

Status Checkpointer::settle() {
  while (stage != Stage::Idle) {
    const Result<bool> anyBusy = team.anyOf(busy);
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
  if (worker.joinable())
    worker.join();
  switch (stage) {
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
  stage = Stage::Idle;
  return {};
}

Status Checkpointer::begin(const Executor &executor, const RunPosition &position, bool atOnce) {
  lastBegun = std::chrono::steady_clock::now();
  manifest.step = position.step;
  manifest.seed = position.seed;
  manifest.data = position.data;
  const Result<std::string> mine =
      node.leads ? beginSave(layer, options.save, position.step) : Result<std::string>(std::string());
  unfinished = mine ? *mine : std::string(); // to be removed if another has failed
  const Result<std::vector<std::string>> made = team.fromAll(mine, kWhat);
  if (!made)
    return giveUp(made.error());
  unfinished = (*made)[node.leader()];
  if (!node.isShared())
    manifest.save = made->front().substr(made->front().rfind('-') + 1);
  stage = Stage::Writing;
  if (atOnce) {
    written.emplace(writeFiles(&executor));
    return settle();
  }
  if (Status status = copy->take(executor, files); !status)
    return status;
  work([this] { written.emplace(writeFiles(nullptr)); });
  return {};
}

/// All ranks have written: who leads makes it a checkpoint, or, of several nodes, all but its name.
Status Checkpointer::collectFiles() {
  const Result<std::vector<std::string>> texts =
      team.fromAll(*written ? Result<std::string>(spellFiles(**written)) : written->error(), kWhat);
  if (!texts)
    return giveUp(texts.error());
  stage = node.isShared() ? Stage::Committing : Stage::Staging;
  done.emplace(std::string());
  if (!node.leads)
    return {};
  Manifest whole = manifest;
  savedBytes = 0;
  for (uint32_t rank = 0; rank < texts->size(); ++rank) {
    const Result<std::vector<CheckpointFile>> list = parseFiles((*texts)[rank]);
    if (!list) {
      done.emplace(list.error());
      return {};
    }
    for (const CheckpointFile &file : *list)
      savedBytes += file.bytes;
    if (node.isShared() || std::ranges::binary_search(node.ranks(), rank))
      whole.files.insert(whole.files.end(), list->begin(), list->end());
  }
  work([this, whole = std::move(whole)] {
    if (node.isShared())
      return void(done.emplace(commit(whole)));
    const Status status = writeManifest(layer, unfinished, whole);
    if (!status)
      done.emplace(status.error());
  });
  return {};
}

/// All nodes have all of their parts on their disks: from here on they become visible.
Status Checkpointer::collectManifests() {
  if (const Result<std::vector<std::string>> texts = team.fromAll(*done, kWhat); !texts)
    return giveUp(texts.error());
  stage = Stage::Committing;
  if (node.leads)
    work([this] { done.emplace(publish()); });
  return {};
}

/// Who leads is done: all learn how it went. Only when all nodes have their parts older ones may go.
Status Checkpointer::collectOutcome() {
  const Result<std::vector<std::string>> texts = team.fromAll(*done, kWhat);
  if (!texts) {
    if (node.leads && *done) // of a save that others do not have
      unfinished = fmt::format("{}/step-{}", options.save, manifest.step);
    return giveUp(texts.error());
  }
  written.reset();
  stage = Stage::Idle;
  failures = 0;
  newestPath = fmt::format("{}/step-{}", options.save, manifest.step);
  newestStep = manifest.step;
  if (team.leads())
    logLine(fmt::format("checkpoint saved to '{}': {} in {:.3g} s", newestPath, bytesText(double(savedBytes)),
                        std::chrono::duration<double>(std::chrono::steady_clock::now() - lastBegun).count()));
  if (node.isShared())
    return {};
  stage = Stage::Pruning;
  if (node.leads)
    work([this, everywhere = savesOfAll(node, *texts)] {
      if (!std::exchange(hasSetAside, true)) // no second time: then the run has parts of its own
        if (const Status aside =
                setAsideAbandonedParts(layer, options.save, begunAt, everywhere, manifest.step);
            !aside)
          logLine(aside.error().message);
      prune(&everywhere);
    });
  return {};
}

/// Ends the save that is under way.
Status Checkpointer::giveUp(const Error &error) {
  written.reset();
  stage = Stage::Idle;
  return error.code == ExitCode::Peer ? Status(error) : noteFailure(error.message);
}

Status Checkpointer::noteFailure(const std::string &why) {
  std::error_code unused;
  if (node.leads && !unfinished.empty() && std::filesystem::exists(unfinished, unused))
    if (Status status = removeCheckpoint(layer, unfinished); !status)
      logLine(fmt::format("what was written of it stays: {}", status.error().message));
  unfinished.clear();
  const std::string what =
      fmt::format("the checkpoint of step {} could not be saved: {}", manifest.step, why);
  if (++failures >= kMostFailures)
    return Error{ExitCode::Io, fmt::format("{}; {} saves in a row have failed", what, failures),
                 newestPath.empty() ? "free space, or name another directory with --save"
                                    : fmt::format("the newest checkpoint is '{}'", newestPath)};
  if (team.leads())
    logLine(
        fmt::format("{}; training continues ({} of {} failures in a row)", what, failures, kMostFailures));
  return {};
}

//===----------------------------------------------------------------------===//
// What a rank does alone
//===----------------------------------------------------------------------===//

void Checkpointer::work(std::function<void()> job) {
  busy = true;
  try {
    worker = std::thread([this, job] {
      constexpr int kBehind = 10; // digests and copies take what training leaves of the processors
      ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kBehind);
      job();
      busy = false;
    });
  } catch (const std::system_error &) { // no thread is left: training waits, but the save is made
    job();
    busy = false;
  }
}

/// Writes this rank's files from the copy, or from `executor` if there is one.
Result<std::vector<CheckpointFile>> Checkpointer::writeFiles(const Executor *executor) const {
  std::vector<CheckpointFile> done;
  for (size_t i = 0; i < files.size(); ++i) {
    Result<ShardWriter> writer =
        ShardWriter::create(layer, *staged, unfinished, files[i].name,
                            files[i].header.size() + files[i].dataBytes, manifest.chunkBytes);
    if (!writer)
      return writer.error();
    if (Status status = writeFile(i, executor, *writer); !status)
      return status.error();
    Result<CheckpointFile> finished = writer->finish();
    if (!finished)
      return finished.error();
    done.push_back(std::move(*finished));
  }
  if (!files.empty())
    if (const int failure = layer.syncDirectory(unfinished))
      return Error{ExitCode::Io, fmt::format("cannot sync '{}': {}", unfinished, std::strerror(failure)), ""};
  return done;
}

Status Checkpointer::writeFile(size_t number, const Executor *executor, ShardWriter &writer) const {
  if (!executor)
    return writer.writeImage(copy->image(number));
  if (Status status = writer.write(std::as_bytes(std::span(files[number].header))); !status)
    return status;
  return visitPieces(*executor, files[number], [&](const std::byte *, std::span<const std::byte> bytes) {
    return writer.write(bytes);
  });
}

/// Removes the oldest ones. What is not a save's stays for good, and is told of once.
void Checkpointer::prune(const std::set<std::string> *everywhere) {
  const auto stays = [this](const Error &why) {
    if (toldOfStays.insert(why.message).second)
      logLine(why.message);
  };
  if (Status status = pruneCheckpoints(layer, options.save, options.keep, everywhere, stays); !status)
    logLine(fmt::format("old checkpoints stay: {}", status.error().message));
}

/// Makes what all ranks have written a checkpoint; only when it reads well the oldest ones go.
Result<std::string> Checkpointer::commit(const Manifest &whole) {
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

/// Makes this node's part visible; returns the saves of which the node has a part.
Result<std::string> Checkpointer::publish() {
  const Result<std::string> path = publishChecked(layer, options, unfinished, manifest.step);
  return path ? spellSaves(options.save) : path;
}

} // namespace ds::rt
