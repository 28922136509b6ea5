//===- AttentionMaskTest.cpp - What dropout leaves of attention's probabilities ----===//

#include "EmulatedLaunch.h"

namespace ds::rt {
namespace {

constexpr uint64_t kSeed = 987654321098;
constexpr uint32_t kCounter = 41, kDraw = 3;

/// An attention of `samples` samples and `heads` heads, of which some are drawn, and of those some queries
/// and keys; 0: all.
struct Drawn {
  int32_t samples, heads, queries, keys;
  int32_t before, after;
  int64_t firstSample = 0, drawnSamples = 1, firstHead = 0, drawnHeads = 1;
  int64_t firstQuery = 0, drawnQueries = 0, firstKey = 0, drawnKeys = 0;
  int32_t allHeads = 0;    ///< of which `heads` are some; 0: they are all
  int64_t headsBefore = 0; ///< of these
};

/// The CPU's uniform numbers of the draw from `first` on.
std::vector<float> uniform(int64_t first, int64_t count) {
  std::vector<float> numbers(static_cast<size_t>(count));
  fillRandom({numbers.data(), count, kSeed, kDraw | uint64_t(kCounter) << 32, 0.0f, 1.0f, false, 1, first},
             bestIsa());
  return numbers;
}

void checkMask(const Drawn &d, DType dtype, double probability) {
  SCOPED_TRACE(testing::Message() << d.queries << " x " << d.keys << ", " << d.before << " before");
  const int64_t generator[] = {static_cast<int64_t>(kSeed), kCounter};
  cuda::AttentionCall call{};
  call.batch = d.samples;
  call.heads = call.groups = d.heads;
  call.queries = d.queries;
  call.keys = d.keys;
  call.before = d.before;
  call.after = d.after;
  call.generator = generator;
  const int64_t allHeads = d.allHeads > 0 ? d.allHeads : d.heads;
  call.allHeads = static_cast<int32_t>(allHeads);
  call.firstHead = d.allHeads > 0 ? &d.headsBefore : nullptr;
  call.drawId = kDraw;
  call.least = static_cast<uint32_t>(std::ceil(static_cast<float>(probability) * 0x1p24));

  const int64_t queries = d.drawnQueries > 0 ? d.drawnQueries : d.queries,
                keys = d.drawnKeys > 0 ? d.drawnKeys : d.keys;
  const int64_t rows = d.drawnSamples * d.drawnHeads * queries, count = rows * keys;
  constexpr size_t kGuard = 16;
  alignas(16) static uint16_t mask[1 << 16];
  ASSERT_LE(static_cast<size_t>(count) + kGuard, std::size(mask));
  std::fill(std::begin(mask), std::end(mask), uint16_t(0x7fff)); // NaN of both types
  const cuda::ProbabilityRange range{d.firstSample, d.drawnSamples, d.firstHead, d.drawnHeads,
                                     d.firstQuery,  queries,        d.firstKey,  keys};
  launch(cuda::attentionMaskLaunch(call, range, mask, dtype));

  const uint16_t one = dtype == DType::F16 ? 0x3c00 : 0x3f80;
  const std::vector<float> numbers = uniform(0, d.samples * allHeads * d.queries * d.keys);
  constexpr int kVector = 8; // keys beside those that are seen are drawn with them
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < keys; ++column) {
      const int64_t query = d.firstQuery + row % queries, s = d.firstKey + column;
      const int64_t own = query + d.keys - d.queries, at = row * keys + column;
      const int64_t flat = d.firstSample * d.heads + d.firstHead + row / queries; // head of the command
      const int64_t head = flat / d.heads * allHeads + d.headsBefore + flat % d.heads;
      const int64_t number = (head * d.queries + query) * d.keys + s;
      const bool isSeen = s >= own - d.before && s <= own + d.after;
      const bool isFar = s < own - d.before - kVector || s > own + d.after + kVector;
      const uint16_t drawn = static_cast<double>(numbers[static_cast<size_t>(number)]) <
                                     static_cast<double>(static_cast<float>(probability))
                                 ? 0
                                 : one;
      if (isSeen)
        ASSERT_EQ(mask[at], drawn) << row << ", " << s;
      else if (isFar)
        ASSERT_EQ(mask[at], 0) << row << ", " << s;
      else
        ASSERT_TRUE(mask[at] == 0 || mask[at] == one) << row << ", " << s;
    }
  for (size_t at = static_cast<size_t>(count); at < static_cast<size_t>(count) + kGuard; ++at)
    ASSERT_EQ(mask[at], 0x7fff) << at;
}

TEST(AttentionMask, HasTheNumbersOfTheCpuWhereQueriesSeeKeys) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    checkMask({1, 2, 40, 40, 79, 0, 0, 1, 0, 2}, dtype, 0.1);   // causal
    checkMask({3, 4, 24, 24, 47, 0, 1, 2, 0, 4}, dtype, 0.5);   // two samples of three
    checkMask({2, 6, 24, 32, 55, 0, 1, 1, 2, 3}, dtype, 0.5);   // three heads of six, more keys
    checkMask({1, 2, 40, 40, 79, 79, 0, 1, 0, 2}, dtype, 0.25); // all see all
    checkMask({1, 1, 100, 304, 9, 0, 0, 1, 0, 1}, dtype, 0.9);  // a window, more than a warp's vectors
    checkMask({1, 2, 100, 80, 30, 5, 0, 1, 1, 1}, dtype, 0.3);  // some see nothing
    checkMask({1, 3, 13, 13, 25, 0, 0, 1, 1, 2}, dtype, 0.5);   // rows begin anywhere
    checkMask({2, 3, 21, 151, 171, 0, 1, 1, 2, 1}, dtype, 0.5); // more than a warp's draws
    checkMask({1, 1, 17, 2, 3, 3, 0, 1, 0, 1}, dtype, 0.5);     // shorter than a draw
    checkMask({3, 2, 24, 24, 47, 0, 1, 2, 0, 2, 0, 0, 0, 0, 6, 4}, dtype,
              0.5); // two heads of six, two samples
    checkMask({2, 3, 13, 13, 25, 0, 1, 1, 1, 2, 0, 0, 0, 0, 5, 2}, dtype, 0.5); // some of three of five
    checkMask({2, 3, 64, 64, 127, 0, 1, 1, 1, 2, 16, 32, 8, 40}, dtype, 0.5);   // a block, in whole vectors
    checkMask({2, 3, 64, 60, 20, 3, 0, 1, 0, 3, 7, 30, 13, 21}, dtype, 0.5); // a block that begins anywhere
  }
}

} // namespace
} // namespace ds::rt
