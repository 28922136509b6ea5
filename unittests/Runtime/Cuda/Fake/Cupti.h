//===- Cupti.h - What streams tell the fake CUPTI ----------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_CUDA_FAKE_CUPTI_H
#define DS_UNITTESTS_RUNTIME_CUDA_FAKE_CUPTI_H

#include <cstdint>
#include <optional>

namespace ds::rt::fake {

/// A launch, and the number that its thread carried then.
struct ActivityNumber {
  uint32_t correlation;
  std::optional<uint64_t> index;
};

/// Numbers a launch; nothing unless records are collected.
std::optional<ActivityNumber> noteLaunch();
/// Its work ran in the last tick of the clock.
void noteRun(const ActivityNumber &number);

} // namespace ds::rt::fake

#endif // DS_UNITTESTS_RUNTIME_CUDA_FAKE_CUPTI_H
