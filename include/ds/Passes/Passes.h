//===- Passes.h - Passes and pipelines -----------------------------------------===//
//
// Each pass is described in Passes.td; Pipeline.cpp says in which order they run and why.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PASSES_PASSES_H
#define DS_PASSES_PASSES_H

#include "ds/Dialect/Ds.h"
#include "ds/Passes/WordOrNumber.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::ds {
#define GEN_PASS_DECL
#include "ds/Passes/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

#endif // DS_PASSES_PASSES_H
