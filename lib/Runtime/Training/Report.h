//===- Report.h - What a run tells its user ------------------------------------===//
//
// stdout has the result: the resolved configuration and one line a step. stderr has the log. A reader that
// goes away or a full disk does not end the run: of a closed stdout the log tells once, of a closed stderr
// nothing does.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_REPORT_H
#define DS_LIB_RUNTIME_TRAINING_REPORT_H

#include "Process/PhaseClock.h"

#include "ds/Runtime/Engine/Executor.h"
#include "ds/Runtime/Formats/ChromeTrace.h"
#include "ds/Runtime/Formats/JsonLog.h"

namespace ds::rt {

/// The resolved configuration and what the run is going to be, of all stages: on stdout.
void printHead(const Program &program, const std::string &data, const std::string &weights, uint64_t steps,
               uint64_t seed);

/// Tokens of the global batch: elements of the first integer input of rank 2 on any stage, or 0.
uint64_t tokensPerStep(const Program &program);

/// Adds the commands of step `step` on `rank`, measured from `beginNs` on, to a trace: a track per stream.
void addToTrace(ChromeTrace &trace, const Program &program, uint32_t rank, uint64_t step, int64_t beginNs,
                const std::vector<Timing> &timings);

/// "ready after 5.3 s: device 0.91, states 3.2", of the phases that took a hundredth of a second or more.
std::string describePhases(const PhaseClock::Phases &phases);

/// Names the tracks of a rank's trace.
void nameTracks(ChromeTrace &trace, const Program &program, uint32_t rank);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_REPORT_H
