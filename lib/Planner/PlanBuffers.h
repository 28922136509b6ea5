//===- PlanBuffers.h - What a planned module reserves, and its fullest moment ----===//
//
// What the plan's report, its timeline and the explanation of its peak all read.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PLANNER_PLANBUFFERS_H
#define DS_LIB_PLANNER_PLANBUFFERS_H

#include "ds/Passes/ScheduledFunction.h"
#include "ds/Report/PlanReport.h"

namespace mlir::ds {

/// A buffer that lives for the whole step: a state or an input.
struct WholeBuffer {
  std::string name;
  ::ds::report::PeakPart part;
  BufferType type;
  int64_t offset = 0;     ///< in its arena
  bool isSharded = false; ///< the rank's part of it
};

/// All of them: states in the module's order, then inputs.
std::vector<WholeBuffer> findWholeBuffers(ModuleOp module);

/// The category of the report that an allocation counts in.
::ds::report::Category categoryOf(AllocOp alloc);

/// "4x64xbf16".
std::string spellType(BufferType type);

/// The first command at which most bytes are live.
struct Moment {
  func::FuncOp func; ///< null: there is none
  int64_t command = 0;
  int64_t bytes = -1; ///< of allocations alone

  /// "matmul h.3.mlp (last)".
  std::string spell(SymbolTable &symbols) const;
};

/// Bytes of allocations that are live at each command, segment after segment, and the fullest moment of all.
struct LiveCurve {
  std::vector<int64_t> bytes;
  Moment peak;
};

/// Of what `space` has.
LiveCurve findLiveCurve(ModuleOp module, Space space = Space::Device);

/// Bytes of the device that are live at some command of `module`'s computation under any schedule of its
/// gathers and reductions, and with workspaces of none: what is gathered counts where it is used, what a
/// reduction reads or writes from the first to the last command of compute that touches it.
int64_t findLeastLive(ModuleOp module);

} // namespace mlir::ds

#endif // DS_LIB_PLANNER_PLANBUFFERS_H
