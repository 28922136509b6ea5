//===- Throughput.h - How fast a plan trains, and what a run of it takes ------------===//
#ifndef DS_REPORT_THROUGHPUT_H
#define DS_REPORT_THROUGHPUT_H

#include "ds/Report/PlanReport.h"

namespace ds::report {

/// What the predicted step of a plan amounts to; empty where it is not known.
struct Throughput {
  std::optional<double> tokensPerSecond; ///< of all ranks
  /// Shares of the devices' peak: of what the model needs (MFU), and with what backward recomputes (HFU).
  std::optional<double> modelUtilisation, hardwareUtilisation;
};

Throughput throughputOf(const PlanReport &report);

/// What a run of whole steps takes.
struct RunFigures {
  double steps = 0, seconds = 0, deviceHours = 0;
  std::optional<double> cost; ///< where a price is known
};

/// The run that `report` was asked about, of steps of `stepSeconds`; empty without a question, or without
/// tokens in a step.
std::optional<RunFigures> runOf(const PlanReport &report, double stepSeconds);

/// "1.2e+12 tokens: 286,103 steps, 31.2 days, 5,990 device-hours, 11,980 at 2 an hour"; empty where runOf is.
std::string spellRun(const PlanReport &report, double stepSeconds);

/// Lines for a plan's text: the throughput, and the run where one was asked about.
std::string printThroughput(const PlanReport &report);

} // namespace ds::report

#endif // DS_REPORT_THROUGHPUT_H
