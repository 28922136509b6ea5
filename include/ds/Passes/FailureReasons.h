//===- FailureReasons.h - No pass fails without a word ------------------------------===//
//
// Problem: a pass that signals failure and emits no error leaves the user with a phase that was not reached.
// Idea: the pass manager counts errors; where a pass fails and there was none, it names the pass and what it
// ran on. That is a mistake of the compiler, and the message says so. Warnings, which a context shows nobody,
// go to the standard error stream.
//
//===---------------------------------------------------------------------------------===//
#ifndef DS_PASSES_FAILUREREASONS_H
#define DS_PASSES_FAILUREREASONS_H

#include "mlir/Pass/PassManager.h"

namespace mlir::ds {

/// Lets `manager` emit an error where a pass fails that has emitted none, and show warnings.
void addFailureReasons(PassManager &manager);

} // namespace mlir::ds

#endif // DS_PASSES_FAILUREREASONS_H
