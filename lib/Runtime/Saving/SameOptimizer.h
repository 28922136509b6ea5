//===- SameOptimizer.h - Whether a checkpoint is of a program's optimizer -----------===//
//
// Moments have names of their own, but optimizers share them: AdamW's exp_avg fits Lion's, and what SGD does
// not keep it would not miss. Which optimizer made them the manifest names; where it does not, as of an
// import without its configuration, what was kept of each parameter decides.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_SAVING_SAMEOPTIMIZER_H
#define DS_LIB_RUNTIME_SAVING_SAMEOPTIMIZER_H

#include "ds/Runtime/Checkpoint/Manifest.h"
#include "ds/Runtime/Program/Program.h"

namespace ds::rt {

/// Refuses (Invalid) the checkpoint in `directory` where it is of another optimizer than `program` trains by,
/// or has moments that the program's does not keep. Adam and AdamW, which keep the same of the same
/// gradients, go on with each other's; weights alone, without optimizer and moments, begin any.
Status checkSameOptimizer(const Program &program, const Manifest &manifest, const std::string &directory);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAVING_SAMEOPTIMIZER_H
