//===- DescribeResidency.h - What was chosen, for reports ---------------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_DESCRIBERESIDENCY_H
#define DS_LIB_PASSES_RESIDENT_DESCRIBERESIDENCY_H

#include "ResidencyModel.h"
#include "ds/Dialect/Decisions.h"

namespace mlir::ds {

/// What `plan` has chosen.
Residency describeResidency(const ResidencyModel &model, const ::ds::analysis::ResidencyPlan &plan);

/// Remarks at the makers of values that are recomputed what that buys.
void remarkRecompute(const ResidencyModel &model, const ::ds::analysis::ResidencyPlan &plan);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_DESCRIBERESIDENCY_H
