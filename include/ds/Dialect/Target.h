//===- Target.h - For what a module is compiled ----------------------------------===//
#ifndef DS_DIALECT_TARGET_H
#define DS_DIALECT_TARGET_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::ds {

/// Attribute of a module for what it is compiled: "cuda:sm_90"; absent for the CPU.
inline constexpr llvm::StringLiteral kTargetAttr = "ds.target";

/// For what `module` is compiled: "cpu", "cuda:sm_90".
inline llvm::StringRef getTarget(ModuleOp module) {
  auto target = module->getAttrOfType<StringAttr>(kTargetAttr);
  return target ? target.getValue() : "cpu";
}

/// Whether the commands of `module` run on a GPU.
inline bool isForCuda(ModuleOp module) { return getTarget(module).starts_with("cuda:"); }

} // namespace mlir::ds

#endif // DS_DIALECT_TARGET_H
