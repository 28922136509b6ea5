//===- OrderInstances.h - Order problems shaped like training steps -------------===//
#ifndef DS_UNITTESTS_ANALYSIS_ORDERINSTANCES_H
#define DS_UNITTESTS_ANALYSIS_ORDERINSTANCES_H

#include "ds/Analysis/Ordering/IssueOrder.h"

namespace ds::analysis::testing {

/// A chain of `layers`: forward keeps `activation` bytes each, backward makes a gradient of `weight` bytes
/// each, and all updates come last, as a frontend writes them. Masks are all made first if `earlyMasks`.
OrderProblem trainingStep(int layers, int64_t activation, int64_t weight, bool earlyMasks = false);

/// `numOps` ops on `numBuffers` buffers at random.
OrderProblem randomOrderProblem(int numOps, int numBuffers, uint64_t seed);

} // namespace ds::analysis::testing

#endif // DS_UNITTESTS_ANALYSIS_ORDERINSTANCES_H
