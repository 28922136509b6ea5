//===- Machine.h - For what a module is compiled ------------------------------------===//
#ifndef DS_DIALECT_MACHINE_H
#define DS_DIALECT_MACHINE_H

#include "llvm/ADT/Hashing.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace mlir::ds {

/// `ds.machine = #ds.machine<...>` of a module; the CPU where that is absent.
struct Machine {
  std::string target = "cpu"; ///< "cpu", "cuda:sm_90"
  /// Ranks may keep checkpoints where other nodes do not see them.
  bool hasNodeLocalSaves = false;

  bool operator==(const Machine &) const = default;
};

llvm::hash_code hash_value(const Machine &machine);

/// For what `module` is compiled.
Machine getMachine(ModuleOp module);
/// Its target, which lives as long as the context.
llvm::StringRef getTarget(ModuleOp module);
/// Whether the commands of `module` run on a GPU.
bool isForCuda(ModuleOp module);

/// Says of `module` for what it is compiled; of the CPU nothing is said. Fails, with a diagnostic at the
/// module, for a target that there is not.
LogicalResult setMachine(ModuleOp module, const Machine &machine);

} // namespace mlir::ds

#endif // DS_DIALECT_MACHINE_H
