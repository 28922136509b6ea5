//===- Limits.h - What the operating system lets a job have -----------------------===//
//
// Whoever runs out of descriptors half-way through connecting sees only that its peers do not come. So what a
// job needs is asked for before it starts.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_LIMITS_H
#define DS_LIB_RUNTIME_COMM_CONTROL_LIMITS_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <string>

namespace ds::rt {

/// File descriptors that a rank opens at most: its connections to the other `world` - 1 ranks, and the files
/// of a run. `gloo`: data travels by Gloo, else from memory to memory.
uint64_t descriptorsOfRank(uint32_t world, uint32_t channels, bool gloo);

/// How many descriptors this process has open.
uint64_t openDescriptors();

/// Lets this process, and those that it starts, open `more` descriptors: raises the soft limit where it must
/// and can. ExitCode::Io if the hard limit is too low; `what` needs them.
Status reserveDescriptors(uint64_t more, const std::string &what);

/// Raises the soft limit of processes and threads to the hard one; whether that changed anything.
bool raiseProcessLimit();

/// What may help where a process or a thread cannot be started: names the limit.
std::string processHint();

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_LIMITS_H
