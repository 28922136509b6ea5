//===- PipelineProgress.h - How far the stages of a pipeline have come ---------------===//
#ifndef DS_LIB_ANALYSIS_PIPELINES_PIPELINEPROGRESS_H
#define DS_LIB_ANALYSIS_PIPELINES_PIPELINEPROGRESS_H

#include "ds/Analysis/Pipelines/PipelineSchedule.h"

#include <optional>

namespace ds::analysis {

/// The parts of a work: the gradient of inputs, or of weights. Backward is both.
inline bool makesInputs(PipelineWork work) {
  return work == PipelineWork::Backward || work == PipelineWork::InputGradient;
}
inline bool makesWeights(PipelineWork work) {
  return work == PipelineWork::Backward || work == PipelineWork::WeightGradient;
}

double secondsOf(const PipelineChunk &chunk, PipelineWork work);

/// What has been done of each micro-batch, and when.
class PipelineProgress {
public:
  explicit PipelineProgress(const PipelineProblem &problem);

  /// What `entry` waits for on its own stage or another: an entry that has not been done; nothing where it
  /// can begin. The work of that which makes gradients is InputGradient.
  std::optional<PipelineEntry> missingFor(const PipelineEntry &entry) const;
  /// When all that `entry` reads is on its stage. Requires that nothing is missing.
  double readyAt(const PipelineEntry &entry) const;
  void finish(const PipelineEntry &entry, double end);
  /// Requires that it is done.
  double endOf(const PipelineEntry &entry) const { return at(entry.work, entry.chunk, entry.microBatch); }
  /// Whose result `entry` reads; two at most.
  std::vector<PipelineEntry> readBy(const PipelineEntry &entry) const;

  bool isDone(PipelineWork work, uint32_t chunk, uint32_t microBatch) const {
    return at(work, chunk, microBatch) >= 0;
  }

private:
  size_t indexOf(PipelineWork work, uint32_t chunk, uint32_t microBatch) const;
  double at(PipelineWork work, uint32_t chunk, uint32_t microBatch) const {
    return ends[indexOf(work, chunk, microBatch)];
  }

  const PipelineProblem &problem;
  std::vector<double>
      ends; ///< by work (Forward, InputGradient, WeightGradient), chunk, micro-batch; -1: not yet
};

} // namespace ds::analysis

#endif // DS_LIB_ANALYSIS_PIPELINES_PIPELINEPROGRESS_H
