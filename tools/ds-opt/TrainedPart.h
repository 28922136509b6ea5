//===- TrainedPart.h - --freeze and --lora: which part of a model is trained --------===//
#ifndef DS_TOOLS_DS_OPT_TRAINEDPART_H
#define DS_TOOLS_DS_OPT_TRAINEDPART_H

#include "CommandLine/Options.h"
#include "ds/Support/Error.h"

#include "mlir/IR/BuiltinOps.h"

namespace ds::opt {

/// Has what --freeze and --lora say trained of `module`, which has been read and not yet changed.
Status chooseTrained(mlir::ModuleOp module, const Options &options);

} // namespace ds::opt

#endif // DS_TOOLS_DS_OPT_TRAINEDPART_H
