//===- MarkTargets.h - Which elements of an input are targets of losses ----------------===//
#ifndef DS_LIB_PASSES_MODEL_MARKTARGETS_H
#define DS_LIB_PASSES_MODEL_MARKTARGETS_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// Has `ds.indices` of the module say which elements of each sample of an input its cross-entropies read as
/// targets, and of how many classes: the host counts those that are not ignored before it runs a step. Says
/// nothing where they are computed, elements of several inputs, others in each sample, or where losses ignore
/// different values.
void markTargets(ModuleOp module);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_MODEL_MARKTARGETS_H
