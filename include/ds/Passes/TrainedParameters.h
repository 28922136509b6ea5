//===- TrainedParameters.h - What of a model is trained -----------------------------===//
#ifndef DS_PASSES_TRAINEDPARAMETERS_H
#define DS_PASSES_TRAINEDPARAMETERS_H

#include "ds/Dialect/Ds.h"
#include "ds/Support/Adapters.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::ds {

/// Has the parameters not trained that have a name which one of `patterns` (globs) matches. Invalid, and
/// nothing is changed: a pattern matches none, or nothing would be left to train. Requires phase model.
::ds::Status freezeParameters(ModuleOp module, ArrayRef<std::string> patterns);

/// Gives the layers that `request` means an adapter each, and has nothing else trained. Invalid, and nothing
/// is changed: a rule matches no layer, or one that cannot have an adapter. Requires phase model, with
/// transpositions folded into products.
::ds::Status addAdapters(ModuleOp module, const ::ds::AdapterRequest &request);

} // namespace mlir::ds

#endif // DS_PASSES_TRAINEDPARAMETERS_H
