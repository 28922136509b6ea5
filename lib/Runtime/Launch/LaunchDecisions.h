//===- LaunchDecisions.h - The parts of the local launcher that decide -----------===//
#ifndef DS_LIB_RUNTIME_LAUNCH_LAUNCHDECISIONS_H
#define DS_LIB_RUNTIME_LAUNCH_LAUNCHDECISIONS_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ds::rt {

/// How a rank has ended: by a signal, or with an exit code.
struct RankEnd {
  int signal = 0;
  int code = 0;
};

/// The exit code of a job whose ranks ended so, in this order, after these signals had asked for the end; see
/// launchRanks.
int chooseExitCode(const std::vector<RankEnd> &ends, const std::vector<int> &requests = {});

/// Each rank's share of `processors`: equal runs of neighbours, or one processor each in turn if there are
/// fewer processors than ranks.
std::vector<std::vector<int>> shareProcessors(const std::vector<int> &processors, uint32_t ranks);

/// How many ranks come together on so many processors in kRendezvousLimit, with room to spare on an idle
/// machine: each connects to each, so that the time grows with the square of their number.
uint32_t mostRanks(size_t processors);

/// The processors that this process may use.
std::vector<int> ownProcessors();

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_LAUNCH_LAUNCHDECISIONS_H
