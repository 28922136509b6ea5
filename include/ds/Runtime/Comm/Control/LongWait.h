//===- LongWait.h - When a wait for other ranks is told of ----------------------------===//
#ifndef DS_RUNTIME_COMM_CONTROL_LONGWAIT_H
#define DS_RUNTIME_COMM_CONTROL_LONGWAIT_H

#include <algorithm>
#include <chrono>

namespace ds::rt {

/// After so long a wait is told of, once.
inline std::chrono::milliseconds longWait(std::chrono::milliseconds timeout) {
  return std::min<std::chrono::milliseconds>(timeout / 4, std::chrono::seconds(30));
}

} // namespace ds::rt

#endif // DS_RUNTIME_COMM_CONTROL_LONGWAIT_H
