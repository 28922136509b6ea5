//===- State.h - What the fake device knows -------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_CUDA_STATE_H
#define DS_UNITTESTS_RUNTIME_CUDA_STATE_H

#include <cuda.h>

#include <cstdint>
#include <map>
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

/// Notes a call of the driver.
inline void call(const std::string &name) { state().calls += name + '\n'; }

} // namespace ds::rt::fake

#endif // DS_UNITTESTS_RUNTIME_CUDA_STATE_H
