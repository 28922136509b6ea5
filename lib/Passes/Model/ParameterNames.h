//===- ParameterNames.h - Parameters as people name them on a command line ----------===//
#ifndef DS_LIB_PASSES_MODEL_PARAMETERNAMES_H
#define DS_LIB_PASSES_MODEL_PARAMETERNAMES_H

#include "ds/Dialect/Ds.h"
#include "ds/Support/Error.h"

#include <string>

namespace mlir::ds {

/// The parameters of the model, in the order of their declaration.
SmallVector<StateOp> parametersOf(ModuleOp module);

/// All names of a parameter, its own first.
SmallVector<StringRef> namesOf(StateOp parameter);

/// For a pattern that matches none of `names`: those that are nearest, as a hint. Of a pattern with an
/// asterisk the ends of names are compared.
std::string nearestNames(StringRef pattern, ArrayRef<std::string> names);

/// Prints `status`, if it is an error, as the diagnostic of a pass.
LogicalResult emitStatus(ModuleOp module, const ::ds::Status &status);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_MODEL_PARAMETERNAMES_H
