//===- KernelClass.h - Which fused bodies one generated kernel computes --------===//
//
// Fusion asks here before it grows a group; code generation asks again. The answer costs microseconds: it
// resolves the indices of the body but emits nothing.
//
// A body is accepted when it falls in one of three classes. Its *anchor* is the input shape of its first
// reduction, or, where there is none, the shape of its first output; `kept` are the anchor's dimensions that
// the reduction leaves, `reduced` those it removes.
//
//   Pointwise  no reduction; every output has as many elements as the anchor.
//   Row        the anchor's last dimension (of size > 1) is reduced. Softmax, norms and their backward, sums
//   of
//              everything. One work unit is one row: one kept index.
//   Column     the anchor's last dimension is kept: gradients of biases and gains. One work unit is a block
//   of
//              columns, with one accumulator each.
//
// In Row and Column, every reduction of the body runs over the same number of elements and depends on the
// others by its kept index alone (a reduction of a value that contains another reduction of the same row is
// fine: softmax), and every output has as many elements as the anchor (it is written for every element) or as
// the kept dimensions (once a row). So a row reduction and a column reduction of one value do not share a
// kernel: the outputs of one of them fit neither count. Outputs are matched by row-major position, so shapes
// may differ by a reshape.
//
// Sizes are static, or the body works on tensor<?xT> alone, without reductions, reshapes, pads or
// concatenations.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_CODEGEN_KERNELCLASS_H
#define DS_CODEGEN_KERNELCLASS_H

#include "ds/Dialect/Ds.h"
#include <optional>
#include <string>

namespace mlir::ds {

enum class KernelKind { Pointwise, Row, Column };

/// What the launcher and the cost model need to know of a kernel before it is compiled.
struct KernelClass {
  KernelKind kind = KernelKind::Pointwise;
  int64_t extent = 0; ///< work units; 0: one per element of a `?` tensor
  int64_t grain = 1;  ///< units below which a launch is not worth splitting
  double flops = 0;   ///< per launch (per element of a `?` tensor); a multiply-add counts 2
};

/// Classifies `ops`, a group in order of definition that computes `outputs`; values from outside are read
/// from memory. Fails, with the reason, when one kernel cannot compute it.
LogicalResult classify(ArrayRef<Operation *> ops, ArrayRef<Value> outputs, KernelClass &result,
                       std::string *reason = nullptr);

/// Classifies the body of a ds.fused or ds.kernel.
LogicalResult classify(Block &body, KernelClass &result, std::string *reason = nullptr);

/// The shape that all values of `body`, of a ds.fused, have but for scalars that are repeated to it; nullopt
/// when it does anything but treat all elements alike.
std::optional<ArrayRef<int64_t>> uniformShape(Block &body);

/// True when output `output` of a ds.fused or ds.kernel body may be written over the memory of block argument
/// `argument`, both being contiguous and of one type: every read of the argument is of the element that the
/// same iteration writes. This holds for softmax and norms too, whose rows are read to the end before they
/// are written. It does not hold where a transpose or a shift stands between, be it after elementwise ops.
bool mayShareMemory(Block &body, unsigned argument, unsigned output);

} // namespace mlir::ds

#endif // DS_CODEGEN_KERNELCLASS_H
