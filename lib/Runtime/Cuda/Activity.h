//===- Activity.h - When kernels and copies run, as CUPTI measures it ---------------===//
//
// Events around a command measure its launches too, and the gaps between them. CUPTI's activity records have
// the device's own times. What belongs to a command is found by a number that the launching thread carries
// meanwhile. CUPTI serves one user of a process at a time: where a profiler has it, or it is missing, times
// are those of events.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_ACTIVITY_H
#define DS_LIB_RUNTIME_CUDA_ACTIVITY_H

#include "ds/Runtime/Engine/Device.h"

namespace ds::rt::cuda {

/// Starts to collect: false where it cannot be done. All calls come from one thread, and only a collection
/// that has started may be entered and finished.
bool startActivity();

/// What this thread launches from now on belongs to `index`; kNoActivity: to nothing.
void enterActivity(uint64_t index);
inline constexpr uint64_t kNoActivity = UINT64_MAX;

/// Ends the collection: for each index from the begin of its first piece of work to the end of its last one,
/// in nanoseconds since the start, by index. Requires that all work is done.
std::vector<DeviceTelemetry::Observed> finishActivity();

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_ACTIVITY_H
