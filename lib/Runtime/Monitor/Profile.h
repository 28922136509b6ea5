//===- Profile.h - Operations and time of a step by module ---------------------------===//
//
// DeepSpeed's `flops_profiler`: how many parameters, operations and seconds each module of the model has.
// Operations are the plan's, which counts those of products, convolutions and attention; seconds are
// measured, one command at a time, on the streams that compute. What is fused has the module of its last
// operation.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_MONITOR_PROFILE_H
#define DS_LIB_RUNTIME_MONITOR_PROFILE_H

#include "ds/Runtime/Engine/Executor.h"
#include "ds/Runtime/Program/Program.h"

#include <array>
#include <map>
#include <span>
#include <string>

namespace ds::rt {

/// What one part of a step has cost.
struct Cost {
  double flops = 0, seconds = 0;

  Cost &operator+=(const Cost &other) {
    flops += other.flops;
    seconds += other.seconds;
    return *this;
  }
};

/// A module with all modules inside it, by the names that the model gives them.
struct ModuleCost {
  uint64_t parameters = 0;
  std::array<Cost, static_cast<size_t>(kLastPart) + 1> parts; ///< by Part
  std::map<std::string, ModuleCost> inside;

  const Cost &of(Part part) const { return parts[static_cast<size_t>(part)]; }
  double seconds() const;
};

/// The model, from what one step has taken on this rank. Parameters are whole ones, whatever the rank holds.
ModuleCost profileOf(const Program &program, std::span<const Timing> timings);

/// "h.3" of a command at "matmul h.3"; empty for what belongs to no module.
std::string moduleOf(const Program &program, const Command &command);

/// The report of a step that took so many seconds.
std::string spellProfile(const Program &program, const ModuleCost &model, uint64_t step, double seconds,
                         const ProfileSettings &settings);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_MONITOR_PROFILE_H
