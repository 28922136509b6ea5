//===- KernelTable.h - One symbol for equal kernels ------------------------------===//
//
// Turns the body of a ds.fused and the buffers it is to run on into a ds.kernel, and finds the kernel again
// when another region says the same. Bodies that treat all elements alike are rewritten over tensor<?>, so
// that tensors of different size share them: one kernel updates all parameters.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_BUFFERS_KERNELTABLE_H
#define DS_LIB_PASSES_BUFFERS_KERNELTABLE_H

#include "ds/Dialect/Ds.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::ds {

/// What a launch of a region needs to know.
struct KernelUse {
  FlatSymbolRefAttr kernel;
  DenseI64ArrayAttr extents; ///< null unless the kernel serves any size
};

/// The kernels of one module.
class KernelTable {
public:
  explicit KernelTable(ModuleOp module);

  /// The kernel that computes `fused` on these buffers (inputs, then outputs), made if there is none yet.
  KernelUse getKernel(FusedOp fused, TypeRange buffers);

private:
  ModuleOp module;
  DenseMap<size_t, SmallVector<KernelOp, 1>> known; ///< by a hash of what they compute
  llvm::StringSet<> taken; ///< symbols of the module: a parameter may be called kernel_0
  unsigned nextNumber = 0; ///< of the next kernel's name
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_BUFFERS_KERNELTABLE_H
