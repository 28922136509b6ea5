//===- Random.h - Numbers that packing searches shuffle by ----------------------===//
//
// Example: a search that is run again with seed 3 gives the packing that it gave, to the byte, on another
// machine too. The library's own engines would, but not its distributions.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_PACKING_RANDOM_H
#define DS_LIB_ANALYSIS_PACKING_RANDOM_H

#include <cstdint>

namespace ds::analysis::detail {

/// xorshift64*: the same numbers on every machine.
class Random {
public:
  explicit Random(uint32_t seed = 0) : state(0x9E3779B97F4A7C15ULL * (seed + 1)) {}

  /// Uniform in [0, bound).
  uint32_t below(uint32_t bound) { return uint32_t(((next() * 0x2545F4914F6CDD1DULL) >> 32) * bound >> 32); }
  /// The generator's own bits, of which the upper ones are the better.
  uint64_t next() {
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return state;
  }

private:
  uint64_t state;
};

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_PACKING_RANDOM_H
