//===- FindTargets.h - Which elements of an input are the loss's targets --------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_FINDTARGETS_H
#define DS_LIB_RUNTIME_TRAINING_FINDTARGETS_H

#include "ds/Runtime/Program/Program.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ds::rt {

/// The targets of a program's cross-entropies, all of one input.
struct FoundTargets {
  size_t input = 0;                ///< its place in inputSpecs(program)
  std::vector<uint8_t> ofSample{}; ///< of each element of a sample, 1 where it is a target
  int64_t ignored = 0;             ///< the value that leaves one out
};

/// Finds them from what the program's commands read, on whatever stage. None where it has no cross-entropy,
/// or where one reads what is computed, elements of several inputs, other elements of each sample, or ignores
/// another value.
std::optional<FoundTargets> findTargets(const Program &program);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_FINDTARGETS_H
