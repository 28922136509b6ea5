//===- Processors.h - How many processors are left for this process --------------===//
//
// A process may use those of its affinity mask, but not all of the time: a control group may have a quota,
// and where a launcher starts several ranks on a machine without giving each its own, they share them.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_SUPPORT_PROCESSORS_H
#define DS_SUPPORT_PROCESSORS_H

#include <cstdint>
#include <string>

namespace ds {

/// What is known of the processors of this process.
struct ProcessorShare {
  uint32_t mask = 1;       ///< processors of its affinity mask
  uint32_t parentMask = 1; ///< of the process that started it, where that has more; else as `mask`
  uint32_t localRanks = 1; ///< that the launcher has started on this machine, as far as it tells
  double quota = 0;        ///< processors' worth of time that its control group may use; 0: all
};

/// Processors that this process can keep busy, 1 or more. A launcher that binds gives each rank a part of its
/// own processors, and the mask counts; one that does not lets all ranks share them.
uint32_t processorsLeft(const ProcessorShare &share);

/// Of this process, with the number of ranks that the environment of OpenMPI, MPICH, Slurm or ds-run's own
/// launcher tells.
ProcessorShare processorShare();

/// The least quota of this process's control group and all above it, in processors; 0 without one. Files are
/// read below `root`, which only tests set.
double processorQuota(const std::string &root = "");

/// Ranks of this job on this machine, by the launcher's variables; 1 where nothing tells.
uint32_t localRanks();

} // namespace ds

#endif // DS_SUPPORT_PROCESSORS_H
