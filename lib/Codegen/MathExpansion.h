//===- MathExpansion.h - Functions of f32 in a few instructions ----------------===//
#ifndef DS_LIB_CODEGEN_MATHEXPANSION_H
#define DS_LIB_CODEGEN_MATHEXPANSION_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::ds::codegen {

/// Replaces exp, log, tanh, erf, sin and cos of f32 (scalars and vectors) by straight code, and all functions
/// of f64, and pow, by calls of libm, lane by lane. Without `hasFma`, fused operations become a product and a
/// sum.
///
/// Largest errors over all f32 arguments, in units in the last place: exp and log 1.0, tanh 2.5, erf 1.6, sin
/// and cos 1.6 for |x| < 2^40 (beyond, the reduced argument has no correct bits). Infinities, NaN, zeros and
/// denormals are as in C. MathTest holds the code to these figures.
void expandMath(mlir::ModuleOp module, bool hasFma);

/// Replaces exp, log, pow, sin and cos of f64, and pow of f32, by straight code with fused operations, for
/// processors without libm. Infinities, NaN and zeros are as in C; sin and cos lose digits for |x| > 2^20.
void expandDoubles(mlir::ModuleOp module);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_MATHEXPANSION_H
