//===- State.h - What the fake device knows -------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_CUDA_STATE_H
#define DS_UNITTESTS_RUNTIME_CUDA_STATE_H

#include <cuda.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace ds::rt::fake {

struct State {
  CUresult sticky = CUDA_SUCCESS; ///< once set, everything fails
  double clock = 0;               ///< pieces of work done
  uint64_t used = 0;              ///< bytes of device memory
  std::map<CUdeviceptr, uint64_t> allocations;
  std::string calls;
  std::map<std::string, uint64_t> runs; ///< by kernel
};
State &state();

/// Whoever looks at the device has it: threads of libraries put work on streams too.
[[nodiscard]] std::unique_lock<std::recursive_mutex> lockDevice();

/// Notes a call of the driver.
inline void call(const std::string &name) {
  const auto lock = lockDevice();
  state().calls += name + '\n';
}

} // namespace ds::rt::fake

#endif // DS_UNITTESTS_RUNTIME_CUDA_STATE_H
