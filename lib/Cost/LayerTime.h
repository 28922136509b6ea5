//===- LayerTime.h - One transformer layer of one micro-batch ------------------------===//
#ifndef DS_LIB_COST_LAYERTIME_H
#define DS_LIB_COST_LAYERTIME_H

#include "ds/Cost/Estimate.h"

namespace ds::cost {

/// The layer's time on one rank.
LayerSeconds layerSeconds(const ModelShape &shape, const ParallelPlan &plan, const Rates &rates);

/// The projection onto the vocabulary with its loss, forward and backward, of one micro-batch.
double logitSeconds(const ModelShape &shape, const ParallelPlan &plan, const Rates &rates);

} // namespace ds::cost

#endif // DS_LIB_COST_LAYERTIME_H
