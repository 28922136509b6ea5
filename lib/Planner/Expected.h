//===- Expected.h - What was expected of a step before it had buffers -------------===//
//
// What a step's memory holds is chosen in phase resident, by an estimate that stays with the module
// (Residency). The plan that is made of it shows by how much that was off.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PLANNER_EXPECTED_H
#define DS_LIB_PLANNER_EXPECTED_H

#include "ds/Dialect/Ds.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::ds {

/// A share of a step's time that is worth another choice, or another plan.
inline constexpr double kWorthTime = 0.002;

/// What was expected of `module` when it was chosen what its memory holds; nothing where nothing was.
struct Expected {
  explicit Expected(ModuleOp module);

  int64_t bytes = 0; ///< of the device, at the most
  double seconds = 0;
  bool fits = false;     ///< so that less could have been kept; it is not known to save memory
  bool hasPaid = false;  ///< time was given up for memory
  int64_t slowCalls = 0; ///< gradients of attention that are to do without cuDNN
};

/// Bytes of the device's arena of a planned module.
int64_t arenaBytes(ModuleOp planned);
/// Bytes that the arena of a plan of `module` must fit, by its machine; 0: no limit.
int64_t limitOf(ModuleOp module);

} // namespace mlir::ds

#endif // DS_LIB_PLANNER_EXPECTED_H
