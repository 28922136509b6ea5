//===- Memviz.h - A plan for PyTorch's memory visualiser ------------------------------===//
//
// The snapshot that torch.cuda.memory._snapshot() would give had the plan been a run: one segment for the
// arena, one trace of allocations and frees in the order of the commands. Each entry of PlanReport::ranks is
// a device of the snapshot. Buffers of the host and of storage are left out: the visualiser knows devices.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_REPORT_MEMVIZ_H
#define DS_REPORT_MEMVIZ_H

#include "ds/Report/PlanTimeline.h"

namespace ds::report {

enum class MemvizFormat {
  Json,  ///< for programs
  Pickle ///< what the visualiser opens: protocol 4, with no object but lists, dictionaries, texts and numbers
};

/// The snapshot of `timelines`. Replayed, allocations reach the plan's peak exactly.
std::string printMemviz(const std::vector<PlanTimeline> &timelines, MemvizFormat format);

} // namespace ds::report

#endif // DS_REPORT_MEMVIZ_H
