//===- BucketLayout.h - Which parameters lie side by side -------------------------===//
//
// Collectives cost a fixed time each, so parameters that are needed together travel together, in one flat
// array that all ranks cut into equal parts. A bucket is gathered as a whole: it should hold what one layer
// needs and nothing else, and be bounded, for it is what must fit at once. Small parameters, which every rank
// keeps whole, share buckets across layers, since nothing is ever gathered for them in forward or backward.
//
// The layout depends on the parameters and the limits only, never on what is sharded: all stages sum and
// update in the same order.
//
// Example: parameters of 100 and 3 elements of one layer, on 4 ranks, begin at 0 and 128 of one bucket, for
// members begin at multiples of 32. It has 160 elements, rounded up to a multiple of 4 * 32: 256, 64 a rank.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_ANALYSIS_PACKING_BUCKETLAYOUT_H
#define DS_ANALYSIS_PACKING_BUCKETLAYOUT_H

#include <cstdint>
#include <limits>
#include <vector>

namespace ds::analysis {

/// A parameter, in order of first use in forward.
struct BucketParameter {
  uint32_t layer = 0; ///< parameters of different layers share persistent buckets only
  int64_t elements = 0;
  uint32_t kind = 0; ///< those of different kinds (type, update) share no bucket
};

/// Numbers of elements, but for `ranks`.
struct BucketLimits {
  int64_t ranks = 1;
  int64_t maxElements = std::numeric_limits<int64_t>::max(); ///< of a bucket of several parameters
  int64_t parameterThreshold = 0; ///< a parameter of at most so many elements is kept whole ...
  int64_t modelThreshold = std::numeric_limits<int64_t>::max(); ///< ... while all these have at most so many
};

struct BucketPlan {
  std::vector<uint32_t> members; ///< indices of parameters, in order
  std::vector<int64_t> offsets;  ///< one per member, multiples of kBucketAlignment
  int64_t elements = 0;          ///< a multiple of ranks * kBucketAlignment
  bool isPersistent = false;     ///< every rank keeps the parameters whole
};

/// Elements: 64 bytes of the narrowest type.
inline constexpr int64_t kBucketAlignment = 32;

/// Puts each parameter into one bucket. Buckets are in order of their first members.
std::vector<BucketPlan> layOutBuckets(const std::vector<BucketParameter> &parameters,
                                      const BucketLimits &limits);

} // namespace ds::analysis

#endif // DS_ANALYSIS_PACKING_BUCKETLAYOUT_H
