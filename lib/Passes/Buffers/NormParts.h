//===- NormParts.h - The norm's squares on the host, a gradient at a time -------------===//
//
// A sum of squares over all gradients is a command behind the last of them: on the host, which reads no
// faster than its memory, tens of milliseconds in which nothing else runs. Its blocks do not depend on one
// another. So those of each gradient are summed up behind what last writes it, and what is left is a number
// for every 16384 elements:
//
//   to_host  %g0            %g1              ...  %gn                  to_host  %g0  %g1 ...  %gn
//   host                                         squares %g0..%gn  ->  host         %g0  ...      %gn  their
//   sums
//
// Orders of additions, and so all bits, are those of the one command.
//
//===---------------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_BUFFERS_NORMPARTS_H
#define DS_LIB_PASSES_BUFFERS_NORMPARTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Takes apart the sums of squares of several tensors on the host of `func`, which has buffers.
void takeNormsApart(func::FuncOp func);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_BUFFERS_NORMPARTS_H
