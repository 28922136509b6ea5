//===- Monitors.h - The curves of a run, as DeepSpeed writes them --------------------===//
//
// The configuration's `tensorboard` and `csv_monitor`. Tags are DeepSpeed's, and so is the axis: samples that
// all ranks together have consumed. A file that cannot be written any more is told once and ends no training;
// one that cannot be made is refused before the first step.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_MONITOR_MONITORS_H
#define DS_LIB_RUNTIME_MONITOR_MONITORS_H

#include "EventRecords.h"

#include "ds/Runtime/Files/AppendedFile.h"
#include "ds/Runtime/Formats/JsonLog.h"
#include "ds/Runtime/Program/Program.h"

#include <map>
#include <optional>
#include <vector>

namespace ds::rt {

/// What monitors show of a step: values that the program has, NaN and infinity too.
std::vector<Scalar> scalarsOf(const StepRecord &record);

/// A file for each tag, `Train_Samples_train_loss.csv`, with `step,train_loss` above the rows.
class CsvMonitor {
public:
  /// Rows of an earlier run stay where this one goes on from `resumedAt` samples, but for those behind it;
  /// else its files are moved aside. Io: the directory cannot be made.
  static Result<CsvMonitor> open(const MonitorSettings &settings, std::optional<uint64_t> resumedAt,
                                 AppendedFile::Warning warning);
  void write(uint64_t samples, std::span<const Scalar> scalars);

private:
  CsvMonitor() = default;
  /// The file of a tag, made when its first value comes; null where that fails.
  AppendedFile *fileOf(const std::string &tag);

  std::string directory;
  std::optional<uint64_t> resumedAt;
  AppendedFile::Warning warning;
  std::map<std::string, std::optional<AppendedFile>> files; ///< by tag
};

/// One event file a run, beside those of earlier ones.
class EventMonitor {
public:
  /// Io: the directory or the file cannot be made.
  static Result<EventMonitor> open(const MonitorSettings &settings, std::optional<uint64_t> resumedAt,
                                   AppendedFile::Warning warning);
  void write(uint64_t samples, std::span<const Scalar> scalars);

private:
  explicit EventMonitor(AppendedFile file) : file(std::move(file)) {}
  AppendedFile file;
};

/// All that a program asks for.
class Monitors {
public:
  /// `resumedAt`: the samples behind which a resumed run goes on.
  static Result<Monitors> open(const WatchSettings &watch, std::optional<uint64_t> resumedAt,
                               const AppendedFile::Warning &warning);
  /// `samples`: consumed by all ranks, this step's included.
  void write(const StepRecord &record, uint64_t samples);

private:
  std::optional<EventMonitor> events;
  std::optional<CsvMonitor> tables;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_MONITOR_MONITORS_H
