//===- JsonLog.h - One JSON object a step, for machines ------------------------===//
//
// `--log-jsonl`, written as AppendedFile.h says.
//
// JSON has no NaN. A value that is not finite is written as null, and the object gains
// `"non_finite":{"loss":"nan","grad_norm":"inf"}`. A value that the program does not produce has no key at
// all.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_FORMATS_JSONLOG_H
#define DS_RUNTIME_FORMATS_JSONLOG_H

#include "ds/Runtime/Files/AppendedFile.h"
#include "ds/Runtime/Formats/EvalLoss.h"
#include "ds/Runtime/Program/Program.h"
#include "ds/Support/Error.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ds::rt {

/// Bytes that a rank sends, by kind of collective, then by axes of the mesh: {"all_gather": {"dp.local":
/// 64}}.
using SentBytes = std::map<std::string, std::map<std::string, uint64_t>>;

/// What is known after a step. The keys of the JSON, in this order: step, time, samples, tokens, loss,
/// grad_norm, lr, loss_scale, skipped, targets, step_seconds, samples_per_second, peak_bytes, comm_bytes,
/// communication_bytes_by_axes, comm_seconds, comm_exposed_seconds, eval_loss (of the first
/// evaluation), eval (of all that have names), graph, graph_reason, startup_seconds, non_finite.
struct StepRecord {
  uint64_t step = 0;               ///< counts from 1
  std::optional<double> time;      ///< after it and its evaluation: seconds since 1970, UTC
  std::optional<uint64_t> samples; ///< consumed by all ranks together, since the first step
  std::optional<uint64_t> tokens;  ///< likewise
  std::optional<double> loss;      ///< mean of the micro-batch means over the global batch
  std::optional<double> gradNorm;  ///< global norm before clipping, unscaled
  std::optional<double> lr;
  std::optional<double> lossScale;
  std::optional<bool> skipped; ///< the update was skipped for an overflow, or because no target counts
  /// Of the step on all ranks, those that the loss counts; none where the data cannot leave any out. A step
  /// with 0 was not made, and has neither loss nor norm.
  std::optional<uint64_t> targets;
  bool spiked = false;  ///< it was skipped for its loss (not written)
  bool givesUp = false; ///< at the smallest loss scale: the run ends (not written)
  std::optional<double> stepSeconds;
  std::optional<double> samplesPerSecond;
  std::optional<ArenaBytes> peakBytes;
  std::optional<uint64_t> commBytes;        ///< of the step's collectives on this rank; see CommStat
  std::optional<SentBytes> sentBytes;       ///< by this rank in the step, as plans count them
  std::optional<double> commSeconds;        ///< in them, on all streams
  std::optional<double> commExposedSeconds; ///< that compute stood still for them
  std::vector<EvalLoss> evaluations;        ///< after the steps at which held-out data were evaluated
  std::optional<bool> graph;                ///< on a GPU: the step was started as one recorded graph
  std::string graphReason;                  ///< why steps cannot be; empty if they can
  /// In a process's first step: the phases before it, with their seconds.
  std::vector<std::pair<std::string, double>> startupSeconds;
};

/// The record as one line of JSON, without the newline.
std::string toJson(const StepRecord &record);

/// Cuts a log off before the first line of a step later than `step`, which the run that resumes there
/// repeats, so that each step is there once. Returns how many lines went; 0 also where there is no such file,
/// or it is a pipe or a device. Io: it cannot be read or cut.
Result<uint64_t> dropLaterSteps(const std::string &path, uint64_t step);

/// The open log. One thread at a time.
class JsonLog {
public:
  using Warning = AppendedFile::Warning;

  /// Io: the file cannot be opened. With `append` (a resumed run) earlier lines are kept; else see
  /// AppendedFile.
  static Result<JsonLog> open(const std::string &path, bool append, Warning warning);

  /// Writes one line. Never fails.
  void write(const StepRecord &record);

private:
  explicit JsonLog(AppendedFile file) : file(std::move(file)) {}
  AppendedFile file;
};

} // namespace ds::rt

#endif // DS_RUNTIME_FORMATS_JSONLOG_H
