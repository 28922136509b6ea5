//===- Checkpointer.cpp - Saves a run while it trains -------------------------------===//

#include "Checkpointer.h"

#include "Report.h"

#include "ds/Runtime/Checkpoint/Checkpoint.h"
#include "ds/Runtime/Checkpoint/ShardWriter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <sys/resource.h>
#include <unistd.h>

namespace ds::rt {

static constexpr const char *kWhat = "saving of a checkpoint";
/// How often ranks that wait for each other's disks ask.
static constexpr auto kAskAgain = std::chrono::milliseconds(5);

//===----------------------------------------------------------------------===//
// Before the first step
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<Checkpointer>> Checkpointer::open(const TrainOptions &options, const Program &program,
                                                         Team &team) {
  std::unique_ptr<Checkpointer> made(new Checkpointer(options, team));
  if (Status status = made->prepare(program); !status)
    return status.error();
  return made;
}

Status Checkpointer::prepare(const Program &program) {
  Result<std::vector<ShardFile>> planned = planShards(program, team.rank());
  if (!planned)
    return Error{planned.error().code, "--save: " + planned.error().message, planned.error().hint};
  files = std::move(*planned);
  manifest.writer = "ds-run";
  manifest.planHash = program.planHash;
  manifest.target = program.target;
  manifest.configText = program.configText;
  manifest.modelConfig = program.modelConfig;
  manifest.mesh = program.mesh;
  manifest.microBatch = program.microBatch;
  manifest.accumulation = program.accumulation;
  manifest.tensors = checkpointTensors(program);
  while (checkpointBytes(program) / manifest.chunkBytes > kMostChunks)
    manifest.chunkBytes *= 2;
  if (options.saveMode == SaveMode::Async) {
    Result<Snapshot> made = Snapshot::create(files);
    if (!made)
      return Error{made.error().code,
                   "--save: for the copy that is written while training goes on: " + made.error().message,
                   "save with --save-mode sync, which needs no copy"};
    copy.emplace(std::move(*made));
  }
  staged = std::make_unique<StagedWriter>(layer);
  if (!team.leads())
    return {};
  Result<StoreLock> taken = StoreLock::take(options.save);
  if (!taken)
    return Error{taken.error().code, "--save: " + taken.error().message, taken.error().hint};
  lock.emplace(std::move(*taken));
  return {};
}

void Checkpointer::continuesFrom(const std::string &path, uint64_t step) {
  newestPath = path;
  std::error_code error;
  const std::string own = fmt::format("{}/step-{}", options.save, step);
  if (std::filesystem::equivalent(path, own, error) && !error)
    newestStep = step;
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
  return stage == Stage::Writing ? collectFiles() : collectOutcome();
}

Status Checkpointer::begin(const Executor &executor, const RunPosition &position, bool atOnce) {
  lastBegun = std::chrono::steady_clock::now();
  unfinished.clear();
  manifest.step = position.step;
  manifest.seed = position.seed;
  manifest.data = position.data;
  const Result<std::string> made = team.fromLeader(
      team.leads() ? beginSave(layer, options.save, position.step) : Result<std::string>(std::string()),
      kWhat);
  if (!made)
    return made.error().code == ExitCode::Peer ? Status(made.error()) : noteFailure(made.error().message);
  unfinished = *made;
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

/// All ranks have written: rank 0 makes it a checkpoint, unless one of them could not.
Status Checkpointer::collectFiles() {
  const Result<std::vector<CheckpointFile>> &mine = *written;
  const std::string text = mine ? "1" + spellFiles(*mine) : "0" + mine.error().message;
  Result<std::vector<std::string>> texts = std::vector<std::string>{text};
  if (team.world() > 1)
    texts = team.ranks().exchange(text, kWhat);
  if (!texts)
    return texts.error();
  Manifest whole = manifest;
  std::string failed;
  for (size_t rank = 0; rank < texts->size() && failed.empty(); ++rank) {
    const std::string &each = (*texts)[rank];
    Result<std::vector<CheckpointFile>> list =
        each.starts_with('1') ? parseFiles(std::string_view(each).substr(1))
                              : Result<std::vector<CheckpointFile>>(Error{
                                    ExitCode::Io, each.empty() ? "has not said why" : each.substr(1), ""});
    if (list)
      whole.files.insert(whole.files.end(), list->begin(), list->end());
    else
      failed =
          team.world() > 1 ? fmt::format("rank {}: {}", rank, list.error().message) : list.error().message;
  }
  stage = Stage::Committing;
  savedBytes = 0;
  for (const CheckpointFile &file : whole.files)
    savedBytes += file.bytes;
  if (!failed.empty()) {
    committed.emplace(Error{ExitCode::Io, failed, ""});
    return collectOutcome();
  }
  if (!team.leads())
    return {};
  work([this, whole = std::move(whole)] { committed.emplace(commit(whole)); });
  return {};
}

/// Rank 0 is done: all learn how it went.
Status Checkpointer::collectOutcome() {
  const Result<std::string> outcome =
      team.fromLeader(team.leads() ? *committed : Result<std::string>(std::string()), kWhat);
  committed.reset();
  written.reset();
  stage = Stage::Idle;
  if (!outcome && outcome.error().code == ExitCode::Peer)
    return outcome.error();
  if (!outcome)
    return noteFailure(outcome.error().message);
  failures = 0;
  newestPath = *outcome;
  newestStep = manifest.step;
  if (team.leads())
    logLine(fmt::format("checkpoint saved to '{}': {} in {:.3g} s", newestPath, bytesText(double(savedBytes)),
                        std::chrono::duration<double>(std::chrono::steady_clock::now() - lastBegun).count()));
  return {};
}

Status Checkpointer::noteFailure(const std::string &why) {
  std::error_code unused;
  if (team.leads() && std::filesystem::exists(unfinished, unused))
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
    logLine(fmt::format("{}; training goes on ({} of {} failures in a row)", what, failures, kMostFailures));
  return {};
}

//===----------------------------------------------------------------------===//
// What a rank does alone
//===----------------------------------------------------------------------===//

void Checkpointer::work(std::function<void()> job) {
  busy = true;
  worker = std::thread([this, job = std::move(job)] {
    constexpr int kBehind = 10; // digests and copies take what training leaves of the processors
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kBehind);
    job();
    busy = false;
  });
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

/// Looks at a new checkpoint again: sizes and headers always, all contents where that is asked for.
Status Checkpointer::checkSaved(const std::string &path) const {
  const Result<Checkpoint> saved = Checkpoint::open(path);
  if (!saved)
    return saved.error();
  std::string damage;
  for (const CheckpointFile &file : saved->manifest().files)
    if (options.verifySaves) {
      Status status = saved->verify(file, [&](uint64_t offset, uint64_t) {
        damage =
            fmt::format("'{}/{}' does not read as it was written, from byte {}", path, file.name, offset);
      });
      if (!status)
        return status;
    }
  return damage.empty() ? Status() : Status(Error{ExitCode::Io, damage, ""});
}

/// Makes what all ranks have written a checkpoint; only when it reads well the oldest ones go.
Result<std::string> Checkpointer::commit(const Manifest &whole) {
  Result<std::string> path = commitSave(layer, options.save, unfinished, whole);
  if (!path)
    return path;
  if (Status status = checkSaved(*path); !status) {
    static_cast<void>(removeCheckpoint(layer, *path)); // what stays of it has no manifest
    return status.error();
  }
  if (Status status = pruneCheckpoints(layer, options.save, options.keep); !status)
    logLine(fmt::format("old checkpoints stay: {}", status.error().message));
  return path;
}

} // namespace ds::rt
