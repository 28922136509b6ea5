//===- StageTimes.h - When a stage runs which part of which micro-batch ------------===//
#ifndef DS_LIB_PASSES_STAGES_STAGETIMES_H
#define DS_LIB_PASSES_STAGES_STAGETIMES_H

#include "SegmentParts.h"
#include "ds/Analysis/Pipelines/PipelineTimetable.h"

namespace mlir::ds {

/// The part of one stage in the timetable of all.
class StageTimes {
public:
  /// The segment that does a part of a micro-batch; null for none.
  using FindSegment = llvm::function_ref<func::FuncOp(unsigned microBatch, SegmentPart part)>;

  /// By `schedule`, as ds-pipeline-segments has it. Fails with a diagnostic at `module` where that is no
  /// schedule of so many stages and micro-batches.
  static FailureOr<StageTimes> make(ModuleOp module, int64_t stages, int64_t microBatches,
                                    StringRef schedule);

  /// Makes the runs of `schedule` those of the timetable, with what each waits for, and gives states and
  /// inputs of `module` the slots that they need for it.
  LogicalResult write(ModuleOp module, ScheduleOp schedule, FindSegment find) const;

private:
  std::vector<::ds::analysis::PipelineItem> items;
  unsigned stage = 0;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STAGES_STAGETIMES_H
