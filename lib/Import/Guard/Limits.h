//===- Limits.h - How much memory and time an import may take -------------------===//
//
// A pickle of a few kilobytes can ask for all memory and for hours. What an honest archive needs follows from
// its size and from the shapes of its inputs; the machine bounds it as well. Both processes derive the same
// limits: the one that imports applies them, the one that waits tells which was met.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_GUARD_LIMITS_H
#define DS_LIB_IMPORT_GUARD_LIMITS_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds {

/// What the limits follow from.
struct LimitsRequest {
  uint64_t archiveBytes = 0;
  std::vector<std::string> inputs; ///< as --input spells them; others than shapes do not count
  uint64_t memoryBytes = 0;        ///< of the command line; 0: derived
  uint64_t seconds = 0;            ///< of the command line; 0: derived
};

struct ImportLimits {
  uint64_t memoryBytes = 0;             ///< that the process may take besides LibTorch's own
  uint64_t processorSeconds = 0;        ///< of all threads
  uint64_t waitSeconds = 0;             ///< by the clock, after which the process is stopped
  uint64_t fileBytes = 0;               ///< of one file that is written
  std::string memorySource, timeSource; ///< where the limits come from, in words
};

/// The limits, within the memory of the machine or container where none is given.
ImportLimits deriveLimits(const LimitsRequest &request);

/// What to tell where a limit was met: which one, its value, where it comes from and how to raise it.
Error memoryError(const ImportLimits &limits);
Error timeError(const ImportLimits &limits);
Error waitError(const ImportLimits &limits);
Error fileSizeError(const ImportLimits &limits);

} // namespace ds

#endif // DS_LIB_IMPORT_GUARD_LIMITS_H
