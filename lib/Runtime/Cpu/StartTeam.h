//===- StartTeam.h - Starts the threads of parallel regions ------------------------===//
#ifndef DS_LIB_RUNTIME_CPU_STARTTEAM_H
#define DS_LIB_RUNTIME_CPU_STARTTEAM_H

#include "ds/Support/Error.h"

#include <cstdint>

namespace ds::rt {

/// Starts the team of `threads` that parallel regions of the calling thread run on, before any memory is
/// filled. Device where the system allows fewer threads.
Status startTeam(uint32_t threads);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CPU_STARTTEAM_H
