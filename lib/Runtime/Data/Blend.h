//===- Blend.h - Which source of a blend has which sample ----------------------===//
//
// Weights are decimals, so they are whole shares c_1, c_2, ... of their sum D, and what repeats after D
// positions need be decided for one period only. There, source k's j-th sample (j = 1, 2, ...) belongs into
// the positions from floor((j - 1) D / c_k) to before ceil(j D / c_k); of the samples that may come, the one
// whose end is nearest comes first. That never misses an end: the samples whose whole room lies in
// [s, e) number at most the sum of floor(e c_k / D) - ceil(s c_k / D), which is e - s at most. So after n
// positions source k has given more than n c_k / D - 1 samples and fewer than n c_k / D + 1.
//
// Weights 0.5 and 0.3 and 0.2 are shares 5, 3, 2 of 10, and the period is  0 1 0 2 0 1 0 1 0 2  of sources,
// say. Position 25 is place 5 of the third period: source 1, and that one's sample 3 + 3 + 1 = 7.
//
// The price is a table of 8 bytes a position of the period, 8 MiB at most: finer shares are rounded.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_DATA_BLEND_H
#define DS_LIB_RUNTIME_DATA_BLEND_H

#include "ds/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ds::rt {

/// Positions, and samples of a source, over all epochs.
using Position = unsigned __int128;

/// A weight as it is written: digits * 10^exponent, digits without zeros at their end.
struct Weight {
  uint64_t digits = 1;
  int exponent = 0;
};

/// "0.7", "7e-1", "70". Usage: no number, not greater than 0, or of more than 18 digits.
Result<Weight> parseWeight(std::string_view text);

/// The longest period.
inline constexpr uint32_t kLongestPeriod = 1 << 20;

/// The smallest whole numbers in the ratio of the weights; where these add up to more than the longest
/// period, the nearest ones that do not. Usage: a weight is so small beside the others that none is left.
Result<std::vector<uint32_t>> sharesOf(std::span<const Weight> weights);

/// The order of a blend. Any position costs the same.
class Blend {
public:
  /// Every share is at least 1, their sum at most the longest period.
  explicit Blend(const std::vector<uint32_t> &shares);

  struct Place {
    size_t source;
    Position sample; ///< of the source, counting on over its epochs
  };
  Place operator()(Position position) const;

  /// Samples of `source` among the first `positions`.
  Position count(size_t source, Position positions) const;

  size_t numSources() const { return begins.size() - 1; }
  uint32_t period() const { return uint32_t(sources.size()); }
  uint32_t share(size_t source) const { return begins[source + 1] - begins[source]; }

private:
  std::vector<uint32_t> sources; ///< at each place of a period
  std::vector<uint32_t> places;  ///< by source and rising: where it stands in a period
  std::vector<uint32_t> begins;  ///< of each source in `places`, and the end
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_DATA_BLEND_H
