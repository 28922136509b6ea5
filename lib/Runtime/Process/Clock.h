//===- Clock.h - The time that steps and commands are measured by ----------------===//
#ifndef DS_LIB_RUNTIME_PROCESS_CLOCK_H
#define DS_LIB_RUNTIME_PROCESS_CLOCK_H

#include <chrono>
#include <cstdint>

namespace ds::rt {

/// Nanoseconds of the monotonic clock; only differences mean anything.
inline int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// What the clock on the wall says, which may jump: for readers, never for measuring.
inline double secondsSince1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROCESS_CLOCK_H
