//===- Monitors.cpp - The curves of a run, as DeepSpeed writes them ------------------===//

#include "Monitors.h"

#include "Files/Text.h"
#include "Process/Clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace ds::rt {
namespace fs = std::filesystem;

std::vector<Scalar> scalarsOf(const StepRecord &record) {
  std::vector<Scalar> scalars;
  const auto add = [&](const std::string &tag, const std::optional<double> &value) {
    if (value)
      scalars.push_back({tag, *value});
  };
  add("Train/Samples/train_loss", record.loss);
  add("Train/Samples/lr", record.lr);
  add("Train/Samples/loss_scale", record.lossScale);
  add("Train/Samples/grad_norm", record.gradNorm);
  if (!record.evaluations.empty())
    add("Train/Samples/eval_loss", record.evaluations.front().loss);
  for (const EvalLoss &each : record.evaluations)
    if (!each.name.empty())
      add("Train/Samples/eval_loss_" + each.name, each.loss);
  add("Train/Samples/step_seconds", record.stepSeconds);
  add("Train/Samples/samples_per_second", record.samplesPerSecond);
  return scalars;
}

/// The directory of a job, which is there afterwards.
static Result<std::string> makeDirectory(const MonitorSettings &settings) {
  const fs::path path = fs::path(settings.path) / settings.job;
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    return ioError("make the directory of a monitor", path.string(), error.value());
  return path.string();
}

//===----------------------------------------------------------------------===//
// csv_monitor
//===----------------------------------------------------------------------===//

/// A file without the rows behind `samples`, which a run that resumes writes again. Io: it cannot be read or
/// written.
static Status dropRows(const std::string &path, uint64_t samples) {
  std::ifstream file(path);
  std::string kept, line;
  bool dropped = false;
  while (std::getline(file, line)) {
    uint64_t own = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), own);
    const bool behind = error == std::errc() && *end == ',' && own > samples;
    dropped |= behind;
    kept += behind ? "" : line + "\n";
  }
  if (file.bad())
    return ioError("read", path, errno);
  if (!dropped)
    return {};
  const std::string changed = path + ".new";
  std::ofstream(changed, std::ios::trunc) << kept;
  std::error_code error;
  if (fs::file_size(changed, error) != kept.size() || error)
    return ioError("write", changed, error ? error.value() : ENOSPC);
  fs::rename(changed, path, error);
  return error ? Status(ioError("replace", path, error.value())) : Status();
}

Result<CsvMonitor> CsvMonitor::open(const MonitorSettings &settings, std::optional<uint64_t> resumedAt,
                                    AppendedFile::Warning warning) {
  const Result<std::string> directory = makeDirectory(settings);
  if (!directory)
    return directory.error();
  if (::access(directory->c_str(), W_OK | X_OK) != 0)
    return ioError("write to", *directory, errno);
  CsvMonitor monitor;
  monitor.directory = *directory;
  monitor.resumedAt = resumedAt;
  monitor.warning = std::move(warning);
  return monitor;
}

AppendedFile *CsvMonitor::fileOf(const std::string &tag) {
  const auto [found, isNew] = files.try_emplace(tag);
  std::optional<AppendedFile> &file = found->second;
  if (!isNew)
    return file ? &*file : nullptr;
  std::string name = tag;
  const std::string header = name.substr(name.rfind('/') + 1);
  std::replace(name.begin(), name.end(), '/', '_');
  const std::string path = directory + "/" + name + ".csv";
  std::error_code unused;
  const bool goesOn = resumedAt && fs::exists(path, unused);
  if (goesOn)
    if (Status status = dropRows(path, *resumedAt); !status)
      warning(status.error().message);
  Result<AppendedFile> opened =
      AppendedFile::open(path, {"table of " + header, "csv_monitor.job_name", goesOn}, warning);
  if (!opened) {
    warning(opened.error().message + "; training continues without it");
    return nullptr;
  }
  file.emplace(std::move(*opened));
  if (!goesOn)
    file->write("step," + header + "\n");
  return &*file;
}

void CsvMonitor::write(uint64_t samples, std::span<const Scalar> scalars) {
  for (const Scalar &scalar : scalars)
    if (AppendedFile *file = fileOf(scalar.tag))
      file->write(fmt::format("{},{}\n", samples, scalar.value));
}

//===----------------------------------------------------------------------===//
// tensorboard
//===----------------------------------------------------------------------===//

Result<EventMonitor> EventMonitor::open(const MonitorSettings &settings, std::optional<uint64_t> resumedAt,
                                        AppendedFile::Warning warning) {
  const Result<std::string> directory = makeDirectory(settings);
  if (!directory)
    return directory.error();
  char host[256] = "host";
  ::gethostname(host, sizeof host - 1);
  const double now = secondsSince1970();
  static std::atomic<unsigned> number{0}; // of this process
  const std::string path = fmt::format("{}/events.out.tfevents.{:010}.{}.{}.{}", *directory,
                                       static_cast<uint64_t>(now), host, ::getpid(), number++);
  Result<AppendedFile> file = AppendedFile::open(
      path, {"events", "tensorboard.output_path", /*append=*/false, /*hasLines=*/false}, std::move(warning));
  if (!file)
    return file.error();
  file->write(spellFirstEvent(now));
  if (resumedAt) // what is shown of later samples is written again
    file->write(spellRestartEvent(now, *resumedAt + 1));
  return EventMonitor(std::move(*file));
}

void EventMonitor::write(uint64_t samples, std::span<const Scalar> scalars) {
  file.write(spellScalarEvent(secondsSince1970(), samples, scalars));
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

Result<Monitors> Monitors::open(const WatchSettings &watch, std::optional<uint64_t> resumedAt,
                                const AppendedFile::Warning &warning) {
  Monitors monitors;
  if (watch.tensorboard) {
    Result<EventMonitor> events = EventMonitor::open(*watch.tensorboard, resumedAt, warning);
    if (!events)
      return events.error();
    monitors.events.emplace(std::move(*events));
  }
  if (watch.csv) {
    Result<CsvMonitor> tables = CsvMonitor::open(*watch.csv, resumedAt, warning);
    if (!tables)
      return tables.error();
    monitors.tables.emplace(std::move(*tables));
  }
  return monitors;
}

void Monitors::write(const StepRecord &record, uint64_t samples) {
  const std::vector<Scalar> scalars = scalarsOf(record);
  if (events)
    events->write(samples, scalars);
  if (tables)
    tables->write(samples, scalars);
}

} // namespace ds::rt
