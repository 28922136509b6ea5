//===- DescribeResidency.h - What was chosen, for reports ---------------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_DESCRIBERESIDENCY_H
#define DS_LIB_PASSES_RESIDENT_DESCRIBERESIDENCY_H

#include "ResidencyModel.h"

namespace mlir::ds {

/// The value of kResidencyAttr for `plan`.
DictionaryAttr describeResidency(const ResidencyModel &model, const ::ds::analysis::ResidencyPlan &plan);

/// Remarks at the makers of values that are made again what that buys.
void remarkRepeats(const ResidencyModel &model, const ::ds::analysis::ResidencyPlan &plan);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_DESCRIBERESIDENCY_H
