//===- PipelineTimetable.h - What a stage computes, sends and receives, in one order ---===//
//
// A table (PipelineSchedule.h) says in which order stages compute. Messages between them stand in the same
// order: each behind what makes it and before what reads it, at both of its ends, as soon as a simulation has
// it made. So the entries of all stages are parts of one order, in which they could run one after the other,
// and no stage can wait for one that waits for it.
//
//   stage 0   F0  send F0  F1  send F1           receive B0  B0 ...
//   stage 1       receive F0   receive F1    F0  B0  send B0    ...
//
//===---------------------------------------------------------------------------===//
#ifndef DS_ANALYSIS_PIPELINES_PIPELINETIMETABLE_H
#define DS_ANALYSIS_PIPELINES_PIPELINETIMETABLE_H

#include "ds/Analysis/Pipelines/PipelineSchedule.h"

namespace ds::analysis {

/// What a stage does at one time. Values go forth from `chunk` to the next one, gradients back from `chunk`
/// to the one before.
struct PipelineItem {
  enum Kind : uint8_t { Compute, Send, Receive };
  Kind kind = Compute;
  PipelineEntry entry; ///< that computes, or of which the result is sent
  bool operator==(const PipelineItem &) const = default;
};

/// Of each stage all it does, in order. Requires a table without mistakes.
std::vector<std::vector<PipelineItem>> makeTimetable(const PipelineProblem &problem,
                                                     const PipelineTable &table);

/// Slots that a value needs of which micro-batch m lives from entry first[m] to entry last[m] of a stage, and
/// has slot m modulo their number: as few as keep any two apart that share one. Empty ranges, of which the
/// last is before the first, need none.
uint32_t countSlots(const std::vector<int64_t> &first, const std::vector<int64_t> &last);

} // namespace ds::analysis

#endif // DS_ANALYSIS_PIPELINES_PIPELINETIMETABLE_H
