//===- LogitsEntry.h - The logits of chosen positions ------------------------------===//
#ifndef DS_LIB_PASSES_STEP_LOGITSENTRY_H
#define DS_LIB_PASSES_STEP_LOGITSENTRY_H

#include "StepSegment.h"
#include "StepStates.h"

namespace mlir::ds {

/// Makes `segment`, a forward without noise, give the logits of one position of each sample: it reads
/// kLogitsRowsState and writes kLogitsState (ScheduledFunction.h), and computes no loss. Fails, with a
/// diagnostic that says what the model lacks, where there are no such logits.
LogicalResult buildLogits(StepSegment &segment, StepStates &states);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STEP_LOGITSENTRY_H
