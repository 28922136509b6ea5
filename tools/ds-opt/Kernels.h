//===- Kernels.h - Generates the kernels of a program ----------------------------===//
#ifndef DS_TOOLS_DS_OPT_KERNELS_H
#define DS_TOOLS_DS_OPT_KERNELS_H

#include "CommandLine/Options.h"
#include "Model.h"
#include "ds/Runtime/Program/Program.h"

namespace ds::opt {

/// Generates the kernels of `program`, which was lowered from `model`, for the target that is asked for, and
/// puts them into it.
Status addKernels(const Model &model, const Options &options, rt::Program &program);

} // namespace ds::opt

#endif // DS_TOOLS_DS_OPT_KERNELS_H
