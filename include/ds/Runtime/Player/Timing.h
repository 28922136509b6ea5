//===- Timing.h - When commands ran -------------------------------------------------===//
#ifndef DS_RUNTIME_PLAYER_TIMING_H
#define DS_RUNTIME_PLAYER_TIMING_H

#include <cstdint>

namespace ds::rt {

/// When one command ran, in nanoseconds of the monotonic clock.
struct Timing {
  uint32_t command;
  uint32_t stream;
  int64_t beginNs, endNs;
};

} // namespace ds::rt

#endif // DS_RUNTIME_PLAYER_TIMING_H
