//===- RunReport.h - What a run says of its steps ---------------------------------------===//
//
// To people on the terminal, to the log of JSON lines, to monitors and to the trace. What is measured for
// them is taken here too.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_RUNREPORT_H
#define DS_LIB_RUNTIME_TRAINING_RUNREPORT_H

#include "Monitor/Monitors.h"
#include "RunParts.h"
#include "StepLine.h"

#include "ds/Runtime/Formats/ChromeTrace.h"
#include "ds/Runtime/Formats/JsonLog.h"

#include <optional>
#include <string>

namespace ds::rt {

class RunReport {
public:
  /// `run` outlives the report.
  explicit RunReport(RunParts &run) : run(run) {}

  /// Opens the files that grow while the run goes on: rank 0's, and the logs of others where they are asked
  /// for. Once the run is prepared.
  Status open();
  /// Begins the trace, and prints what stands above the steps, which are of `tokens` each.
  void begin(uint64_t tokens);
  void printHeadOf(const DataSource &data) const;

  /// Measures the step `index`, from 0, if that is asked for.
  void beforeStep(uint64_t index) const;
  /// Takes what was measured of it since `begin`, on the clock of nowNs: for the trace, whatever has become
  /// of it.
  std::vector<Timing> take(uint64_t index, int64_t begin);
  /// The configuration's flops_profiler, of a step that was measured for it.
  void profile(uint64_t index, double seconds, const std::vector<Timing> &timings) const;
  /// Adds what the step's collectives cost, whether it was a graph, and to the first what came before it.
  void addTo(StepRecord &record);
  /// What rank 0's communication has cost, for the end of the run; empty where there was none.
  std::string summary() const;
  /// Leaves out what was measured beside training: the trace shows training, and so do the figures of
  /// communication.
  void skip();

  /// Writes down a step that is done, `samples` of the run by then; `last`: no other follows.
  void write(const StepRecord &record, uint64_t samples, bool last);
  /// The same of an evaluation alone.
  void writeLog(const StepRecord &record);
  Status writeTrace() const;

private:
  Status openLog(const std::string &path);
  bool isProfiled(uint64_t index) const;
  void addCommunication(StepRecord &record);
  void addGraph(StepRecord &record);

  RunParts &run;
  std::optional<JsonLog> log;
  std::optional<Monitors> monitors;
  std::optional<StepLine> line;        ///< on rank 0
  std::optional<PrintedSteps> printed; ///< likewise
  std::optional<ChromeTrace> trace;
  CommTotals communicated; ///< until the last step's end
  SentBytes sent;          ///< by this rank in a step
  bool toldOfGraph = false, toldOfStart = false;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_RUNREPORT_H
