//===- Machine.h - For what a module is compiled ------------------------------------===//
#ifndef DS_DIALECT_MACHINE_H
#define DS_DIALECT_MACHINE_H

#include "llvm/ADT/Hashing.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace mlir::ds {

/// Bytes of its memory spaces that what a rank does must fit; nothing: it takes what it needs.
struct MemoryLimits {
  std::optional<int64_t> device, host;
  bool operator==(const MemoryLimits &) const = default;
};

/// `ds.machine = #ds.machine<...>` of a module; the CPU where that is absent.
struct Machine {
  std::string target = "cpu";  ///< "cpu", "cuda:sm_90"
  std::string cluster = "cpu"; ///< file, or name of a built-in one: its rates say how long everything takes
  int64_t threads = 1;         ///< of a rank; results of kernels and workspaces of the CPU depend on them
  MemoryLimits memory;
  /// On CUDA, of a piece of attention's gradient where one key head does not take more; 0: no workspace.
  int64_t attentionBytes = 256 << 20;
  /// On CUDA, attention's gradient may be added up in any order: two runs may differ in bits.
  bool hasFastAttention = false;
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

/// Says of `module` for what it is compiled; of the default nothing is said. Fails, with a diagnostic at the
/// module, for a target that there is not and for numbers that make no sense.
LogicalResult setMachine(ModuleOp module, const Machine &machine);

} // namespace mlir::ds

#endif // DS_DIALECT_MACHINE_H
