//===- StagePartition.h - Which layers each stage of a pipeline has -------------------===//
//
// A step is as slow as its slowest stage, so layers in a row are divided into as many runs as there are
// stages with the most that one run takes as little as can be: the linear partition problem, by dynamic
// programming over (layers, stages), O(stages x layers^2). What a stage passes on and what it is passed count
// with it. Among equals the runs are as even as can be: the sum of squares decides.
//
//   layers   1 3 3 3 3 2, three stages   ->   2 2 2: (1 3)(3 3)(3 2), the slowest takes 6
//
//===---------------------------------------------------------------------------===//
#ifndef DS_ANALYSIS_PIPELINES_STAGEPARTITION_H
#define DS_ANALYSIS_PIPELINES_STAGEPARTITION_H

#include <cstdint>
#include <vector>

namespace ds::analysis {

/// A layer, or what else cannot be parted.
struct PartitionUnit {
  double cost = 0;       ///< of a micro-batch; of any unit, which is that of all
  double borderCost = 0; ///< more for each of two stages that part behind it
};

/// How many of `units` each of `stages` has, in order, at least one. Empty where there are fewer units than
/// stages, or no stage.
std::vector<uint32_t> partitionUnits(const std::vector<PartitionUnit> &units, uint32_t stages);

} // namespace ds::analysis

#endif // DS_ANALYSIS_PIPELINES_STAGEPARTITION_H
