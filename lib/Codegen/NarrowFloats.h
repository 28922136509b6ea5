//===- NarrowFloats.h - 16-bit floats as bits, and as f32 ----------------------===//
//
// Memory and registers hold f16 and bf16 as i16; arithmetic is f32. Conversions are the same on every
// processor: bf16 is integer arithmetic everywhere (vcvtneps2bf16 would flush denormals), f16 is vcvtph2ps
// and vcvtps2ph, or the integer arithmetic that gives what they give.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CODEGEN_NARROWFLOATS_H
#define DS_LIB_CODEGEN_NARROWFLOATS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::ds::codegen {

/// True for f16 and bf16.
bool isNarrow(mlir::Type element);

/// The f32 value of `bits`, an i16 or a vector of them that holds `element`s; exact.
mlir::Value widen(mlir::OpBuilder &b, mlir::Location loc, mlir::Value bits, mlir::Type element);

/// The bits of the `element` nearest to `value` (f32 or f64), ties to even; NaN stays NaN. `nativeBf16`: bf16
/// by LLVM's truncation, on processors whose instruction keeps denormals.
mlir::Value narrow(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, mlir::Type element,
                   bool nativeBf16 = false);

/// Replaces the f16 conversions in `module` for processors without F16C.
void expandHalf(mlir::ModuleOp module);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_NARROWFLOATS_H
