//===- PadClasses.h - Classes that ranks do not divide --------------------------------===//
//
// A vocabulary of 50257 is cut by no number of ranks. Seen as 50272 rows, of which the last 15 are padding,
// it is: the table, its gradients and moments, logits and what goes from them to the loss grow together, or
// nothing does. Padding is zero in states, so that padded logits are what a bias of zero makes them; the loss
// counts them as minus infinity, and their gradients are zero, so that padding stays what it is. No file
// knows of it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_SHARD_PADCLASSES_H
#define DS_LIB_PASSES_SHARD_PADCLASSES_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// Pads the classes of the losses of `module` where `ranks` do not divide them, in all segments. Returns how
/// many there are for each padded number of columns, by that number. Classes that something reads in another
/// way than padding allows, or that are no dimension 0 of their parameters, stay as they are.
DenseMap<int64_t, int64_t> padClasses(ModuleOp module, int64_t ranks);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SHARD_PADCLASSES_H
