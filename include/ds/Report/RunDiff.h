//===- RunDiff.h - What a plan expects against what a run has taken ------------------===//
//
// `ds-opt --trace` draws a planned step with the names that `ds-run --trace` gives to what it measures. So a
// planned command finds its measured one by name, and what they take is added up by kind and by layer. The
// first of several measured steps warms up and is left out. Ranks that take longer than the others are named.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_REPORT_RUNDIFF_H
#define DS_REPORT_RUNDIFF_H

#include "ds/Report/PlanReport.h"
#include "ds/Support/Error.h"

#include <map>
#include <string>
#include <vector>

namespace ds::report {

/// What all runs of a command take in one step.
struct TracedCommand {
  std::string kind; ///< "compute", "collective", "copy" or "storage"
  double count = 0, seconds = 0, bytes = 0, flops = 0;
};

/// One step: of a plan, or the mean of a rank's measured ones.
struct StepTrace {
  uint32_t rank = 0;
  uint64_t steps = 1;                            ///< that the mean is of
  std::map<std::string, TracedCommand> commands; ///< by name and layer: "matmul h.3.attn"
};

/// Whether `text` may be a Chrome trace.
bool isTrace(const std::string &text);

/// Reads what `--trace` of either tool has written. Corrupt: it is none, or has no commands. `path` is for
/// messages.
Result<StepTrace> readTrace(const std::string &text, const std::string &path);

/// Tables by kind, layer and command, and of ranks; `planName` is that of the plan's file.
std::string diffRun(const StepTrace &plan, const std::vector<StepTrace> &ranks, const std::string &planName,
                    const std::string &runName);

/// One line of `ds-run --log-jsonl`, as far as a plan says the same.
struct LoggedStep {
  double seconds = 0;
  int64_t device = 0, host = 0, nvme = 0; ///< peak bytes
};

/// Reads such a log. Corrupt: it is none.
Result<std::vector<LoggedStep>> readRunLog(const std::string &text, const std::string &path);

/// The step's time and the memory that a plan expects, beside those of a log.
std::string diffLog(const PlanReport &plan, const std::vector<LoggedStep> &steps, const std::string &planName,
                    const std::string &logName);

} // namespace ds::report

#endif // DS_REPORT_RUNDIFF_H
