//===- Import.cpp - Others' checkpoints as ours ----------------------------------------===//

#include "ds/Runtime/CheckpointTool/Import.h"

#include "Files/Text.h"
#include "Formats/LostValues.h"
#include "Words.h"
#include "WriteWhole.h"

#include "ds/Runtime/Checkpoint/Checkpoint.h"
#include "ds/Runtime/Checkpoint/Store.h"
#include "ds/Runtime/Files/MappedFile.h"
#include "ds/Runtime/Foreign/ForeignCheckpoint.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <unordered_map>

namespace ds::rt {
namespace {

constexpr std::string_view kWrapper = "module.";
/// A config.json is some kilobytes.
constexpr size_t kMostConfigBytes = size_t(16) << 20;

/// A tensor of the new checkpoint: one of the folder, or a number of ours.
struct Source {
  const ForeignTensor *tensor = nullptr;
  std::string number; ///< its bytes
};

/// Collects what the manifest says, and where the elements come from.
class Collector {
public:
  explicit Collector(const ForeignCheckpoint &foreign) : foreign(foreign) {
    for (const std::vector<std::string> &names : foreign.tied())
      tied.emplace(names.front(), std::vector<std::string>(names.begin() + 1, names.end()));
    // A wrapper of modules leaves its name before every other.
    isWrapped = !foreign.tensors().empty();
    for (const ForeignTensor &tensor : foreign.tensors())
      isWrapped &= tensor.name.starts_with(kWrapper) && tensor.name.size() > kWrapper.size();
  }

  void addTensors() {
    for (const ForeignTensor &tensor : foreign.tensors())
      if (tensor.slot == "value")
        addValue(tensor);
      else if (tensor.slot != "step") // one number for all of them is kept
        addMoment(tensor);
  }

  template <class T>
  void addNumber(const char *name, FileDType dtype, T value) {
    add({name, Role::Scalar, {}, dtype, {}, {}, false, {}, dtype},
        {nullptr, std::string(reinterpret_cast<const char *>(&value), sizeof value)});
  }

  /// Puts elements of tensor `number` at `to`, and looks whether they are numbers.
  Status read(size_t number, uint64_t first, uint64_t count, std::byte *to) {
    const Source &source = sources[number];
    const FileDType dtype = tensors[number].dtype;
    if (!source.tensor) {
      std::memcpy(to, source.number.data(), source.number.size());
      return {};
    }
    LostValues &values = lost[number];
    values.mayBeInfinite = tensors[number].role == Role::Buffer;
    Status status = foreign.read(*source.tensor, first, count, to);
    if (status)
      values.look(dtype, {to, count * (bitSize(dtype) / 8)}, first);
    return status;
  }

  /// Says of all that was read what is not finite.
  void noteLost() {
    LostLines lines;
    for (const auto &[number, values] : lost)
      lines.add(values, tensors[number].name, tensors[number].shape);
    for (std::string &line : lines.all())
      report.notes.push_back(std::move(line));
  }

  std::vector<CheckpointTensor> tensors;
  ImportReport report;

private:
  std::string nameOf(const std::string &name) const {
    return isWrapped && name.starts_with(kWrapper) ? name.substr(kWrapper.size()) : name;
  }

  void addValue(const ForeignTensor &tensor) {
    const bool isBuffer = tensor.role == ForeignRole::Buffer;
    ++(isBuffer ? report.buffers : report.parameters);
    CheckpointTensor made;
    made.name = nameOf(tensor.name);
    made.role = isBuffer ? Role::Buffer : Role::Parameter;
    made.dtype = made.held = tensor.dtype;
    made.shape = tensor.shape;
    made.trainable = tensor.role == ForeignRole::Parameter;
    if (const auto found = tied.find(tensor.name); found != tied.end())
      for (const std::string &alias : found->second)
        made.aliases.push_back(nameOf(alias));
    add(std::move(made), {&tensor, {}});
  }

  void addMoment(const ForeignTensor &tensor) {
    ++report.moments;
    const std::string owner = nameOf(tensor.name);
    add({owner + "." + tensor.slot,
         Role::Moment,
         owner,
         tensor.dtype,
         tensor.shape,
         {},
         false,
         {},
         tensor.dtype},
        {&tensor, {}});
  }

  void add(CheckpointTensor tensor, Source source) {
    tensors.push_back(std::move(tensor));
    sources.push_back(std::move(source));
  }

  const ForeignCheckpoint &foreign;
  std::vector<Source> sources;       ///< by tensor
  std::map<size_t, LostValues> lost; ///< by tensor, of those that were read
  std::unordered_map<std::string, std::vector<std::string>> tied;
  bool isWrapped = false;
};

uint64_t countOf(const std::optional<int64_t> &number, uint64_t otherwise) {
  return number && *number >= 0 ? static_cast<uint64_t>(*number) : otherwise;
}

/// How many steps the run has made: as the user says, or the files. Weights alone are the beginning of a run.
Result<uint64_t> stepOf(const ForeignCheckpoint &foreign, const ImportOptions &options, bool hasMoments) {
  if (!hasMoments && options.step.value_or(0) > 0)
    return Error{ExitCode::Usage,
                 fmt::format("--step {}: {} has no states of an optimizer to resume with", *options.step,
                             quote(options.from)),
                 "leave --step out: a run begins with these weights"};
  if (!hasMoments || options.step)
    return options.step.value_or(0);
  const ForeignProgress &progress = foreign.progress();
  if (progress.steps || progress.optimizerSteps)
    return countOf(progress.steps, countOf(progress.optimizerSteps, 0));
  return Error{ExitCode::Usage, fmt::format("{} does not say how many steps were made", quote(options.from)),
               "give --step N"};
}

/// The model's config.json in that folder; empty where there is none that can be used. With `isNamed` it must
/// say which model it is of: training scripts keep other files of that name.
std::string configIn(const std::string &folder, bool isNamed) {
  const Result<MappedFile> file = MappedFile::openBeneath(folder, "config.json");
  if (!file || file->bytes().size() > kMostConfigBytes)
    return {};
  const std::span<const std::byte> bytes = file->bytes();
  std::string text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return document.is_object() && (!isNamed || document.contains("model_type")) ? text : std::string();
}

/// The config.json that goes with what was read: beside weights, and of DeepSpeed's folder of a step also
/// beside that folder, where its trainers save the model.
std::string configOf(const ForeignCheckpoint &foreign) {
  const bool isStep = foreign.format() != ForeignFormat::Weights;
  const std::string text = configIn(foreign.folder(), isStep);
  return text.empty() && isStep ? configIn(foreign.folder() + "/..", isStep) : text;
}

/// With a scale that is no positive number every step would be skipped: a run finds one anew.
void addLossScale(Collector &collector, double scale) {
  const auto kept = static_cast<float>(scale);
  if (std::isfinite(kept) && kept > 0)
    collector.addNumber("loss_scale", FileDType::F32, kept);
  else
    collector.report.notes.push_back(fmt::format("the loss scale is {}: left out", scale));
}

/// What stands beside tensors: the optimizer's name and count of updates, and the loss scale of fp16.
void addProgress(Collector &collector, const ForeignCheckpoint &foreign, Manifest &manifest) {
  const ForeignProgress &progress = foreign.progress();
  ImportReport &report = collector.report;
  report.step = manifest.step;
  if (report.moments == 0)
    return;
  const uint64_t skipped = std::min(countOf(progress.skippedSteps, 0), manifest.step);
  manifest.optimizer = foreign.optimizer();
  report.updates = countOf(progress.optimizerSteps, manifest.step - skipped);
  report.samples = manifest.data.samples = countOf(progress.samples, 0);
  manifest.data.tokens = countOf(progress.tokens, 0);
  collector.addNumber("step", FileDType::I64, static_cast<int64_t>(report.updates));
  if (foreign.lossScale())
    addLossScale(collector, foreign.lossScale()->scale);
}

/// Refuses to replace a checkpoint that is there.
Status checkAbsent(const std::string &root, uint64_t step) {
  const std::string path = fmt::format("{}/step-{}", root, step);
  std::error_code unseen;
  if (std::filesystem::symlink_status(path, unseen).type() == std::filesystem::file_type::not_found)
    return {};
  return ioError("write", path, EEXIST, "name another directory, or remove it");
}

/// Refuses a directory with the checkpoints of a run: what is imported would be one of them by its number
/// alone.
Status checkNoRun(const std::string &root) {
  const Result<StoreListing> listing = listCheckpoints(root);
  if (!listing)
    return listing.error();
  for (const StoredCheckpoint &each : listing->checkpoints)
    if (!each.run.empty())
      return Error{
          ExitCode::Invalid,
          fmt::format("{} has the checkpoints of a run, the last one of step {}", quote(root), each.step),
          "name another directory"};
  return {};
}

} // namespace

Result<ImportReport> importCheckpoint(const ImportOptions &options) {
  const Result<ForeignCheckpoint> foreign = ForeignCheckpoint::open(options.from);
  if (!foreign)
    return foreign.error();
  Collector collector(*foreign);
  collector.addTensors();
  const Result<uint64_t> step = stepOf(*foreign, options, collector.report.moments > 0);
  if (!step)
    return step.error();
  Manifest manifest;
  manifest.step = *step;
  manifest.writer = "ds-ckpt import";
  manifest.seed = options.seed;
  manifest.modelConfig = configOf(*foreign);
  addProgress(collector, *foreign, manifest);
  manifest.tensors = collector.tensors;
  const Result<StoreLock> lock = StoreLock::take(options.to);
  if (!lock)
    return Error{lock.error().code, lock.error().message, "name another directory, or wait for that run"};
  if (Status status = checkAbsent(options.to, *step); !status)
    return status.error();
  if (Status status = checkNoRun(options.to); !status)
    return status.error();
  Result<std::string> path = writeWhole(options.to, std::move(manifest),
                                        [&](size_t number, uint64_t first, uint64_t count, std::byte *to) {
                                          return collector.read(number, first, count, to);
                                        });
  if (!path)
    return path.error();
  if (const Result<Checkpoint> written = Checkpoint::open(*path); !written) {
    static_cast<void>(removeCheckpoint(systemFiles(), *path)); // what stays of it has no manifest
    return written.error();
  }
  collector.noteLost();
  collector.report.path = *path;
  collector.report.description = foreign->describe();
  return collector.report;
}

} // namespace ds::rt
