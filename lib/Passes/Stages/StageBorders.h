//===- StageBorders.h - Which stage has which op, and what passes between them -----===//
//
// Stages are runs of the units of a model (LayerUnits.h). How many units each has follows from what
// pipeline.partition asks for: equal numbers, equal parameters, equal numbers of layers of a kind, or equal
// time, what is sent included.
//
// Behind each stage but the last some values cross the border: what it, or one before it, has made and one
// after it reads. What skips stages is passed on by each of them.
//
//===------------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_STAGES_STAGEBORDERS_H
#define DS_LIB_PASSES_STAGES_STAGEBORDERS_H

#include "LayerUnits.h"
#include "ds/Cost/Rates.h"

namespace mlir::ds {

/// What layers are divided by.
struct StageRequest {
  int64_t stages = 1;
  std::string partition = "best"; ///< or "uniform", "parameters", "type:REGEX"
  ::ds::cost::Group neighbours;   ///< two ranks of stages that follow each other
};

struct StageBorders {
  DenseMap<Operation *, unsigned> stageOf;  ///< of what belongs to one
  SmallVector<SmallVector<Value>> crossing; ///< behind each stage, in the order in which they are made
  DenseSet<Value> trained;                  ///< of those, what parameters influence and the loss depends on
  SmallVector<std::string> firstLayers;     ///< of each stage: as the model calls it, or empty
};

/// Divides `forward`. Fails with a diagnostic where it has fewer units than stages, or what `request` asks
/// for divides nothing.
FailureOr<StageBorders> findBorders(func::FuncOp forward, const StageRequest &request,
                                    const ::ds::cost::Rates &rates);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STAGES_STAGEBORDERS_H
