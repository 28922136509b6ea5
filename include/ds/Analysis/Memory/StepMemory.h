//===- StepMemory.h - What is held of each space, from when to when ---------------===//
//
// What is kept, when a gather or a load begins, how large a workspace may be and where a buffer goes are
// answers to one question: how much of a space is taken at a moment. Moments are the commands of a function,
// or of a whole step; what is held are values before there are buffers, and allocations once there are. The
// two are described in one form (Resident/SegmentMemory.h of values, ds/Passes/CommandMemory.h of commands),
// and so they can be compared.
//
// Example, 4 moments of one space, of which 10 bytes are taken all the time:
//
//   hold 4 bytes in [0, 3)     14 14 14 10
//   hold 2 bytes in [2, 4)     14 14 16 12     the most is 16
//
// Price: what is held is known by what changes from one moment to the next, so that a step of a million holds
// is summed up once and not hold by hold. Who asks between two changes asks HeldBytes.h.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_ANALYSIS_MEMORY_STEPMEMORY_H
#define DS_ANALYSIS_MEMORY_STEPMEMORY_H

#include <cstdint>
#include <vector>

namespace ds::analysis {

/// Bytes of a space that are taken while moments [begin, end) pass.
struct MemoryHold {
  uint32_t space = 0;
  int64_t bytes = 0;
  uint32_t begin = 0, end = 0;
};

class StepMemory {
public:
  explicit StepMemory(uint32_t spaces, uint32_t moments = 0) : changes(spaces), moments(moments) {}

  uint32_t getMoments() const { return moments; }
  /// Adds as many moments behind the last. What is held throughout is held in them as well.
  void addMoments(uint32_t count) { moments += count; }
  /// Adds `hold`, which may be empty and ends with the last moment at the latest.
  void hold(const MemoryHold &hold);
  /// Takes back what was added as `hold`.
  void release(const MemoryHold &hold);
  void holdThroughout(uint32_t space, int64_t bytes) { change(space, 0) += bytes; }

  /// At each moment.
  std::vector<int64_t> liveBytes(uint32_t space) const;
  /// The most at one moment, 0 where there is none.
  int64_t mostBytes(uint32_t space) const;

private:
  int64_t &change(uint32_t space, uint32_t moment);

  std::vector<std::vector<int64_t>> changes; ///< of each space, from the moment before; 0 beyond its end
  uint32_t moments;
};

} // namespace ds::analysis

#endif // DS_ANALYSIS_MEMORY_STEPMEMORY_H
