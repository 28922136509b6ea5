//===- AttentionPartsTest.cpp - Sums of what blocks of scores give --------------===//

#include "EmulatedLaunch.h"

namespace ds::rt {
namespace {

using cuda::AttentionPart;

/// A gradient of rows x heads x size in memory where heads lie `perHead` and rows `perRow` elements apart.
struct Gradient {
  DType dtype;
  int64_t rows, heads, perRow, perHead;
  std::vector<uint16_t> out;
  std::vector<float> sum;
  std::vector<Numbers> parts;

  Gradient(DType dtype, int64_t rows, int64_t heads, int64_t size, int64_t perRow, int64_t perHead)
      : dtype(dtype), rows(rows), heads(heads), perRow(perRow), perHead(perHead),
        out(static_cast<size_t>(rows * perRow), 0x4242), sum(static_cast<size_t>(rows * heads * size), NAN) {
    for (uint32_t seed : {1, 2, 3})
      parts.emplace_back(dtype, std::vector<int64_t>{rows, heads, size}, seed + static_cast<uint32_t>(rows));
  }
  AttentionPart part(size_t number) {
    return {parts[number].words.data(),
            sum.data(),
            number == 2 ? out.data() : nullptr,
            rows,
            perRow,
            perHead,
            number == 0 ? 0 : rows,
            number == 2 ? rows : 0,
            static_cast<int32_t>(heads)};
  }
  /// The sum in f32 in the order of the parts, rounded once; the elements between heads stay as they were.
  void check(int64_t size) const {
    std::vector<uint16_t> expected(out.size(), 0x4242);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t d = 0; d < size; ++d) {
          const auto at = static_cast<size_t>((row * heads + head) * size + d);
          float total = 0;
          for (const Numbers &each : parts)
            total += each.at(at);
          uint16_t &to = expected[static_cast<size_t>(row * perRow + head * perHead + d)];
          if (dtype == DType::F16)
            to = std::bit_cast<uint16_t>(static_cast<_Float16>(total));
          else
            to = static_cast<uint16_t>(
                (std::bit_cast<uint32_t>(total) + 0x7fff + (std::bit_cast<uint32_t>(total) >> 16 & 1)) >> 16);
        }
    EXPECT_EQ(out, expected);
  }
};

TEST(AttentionParts, AreAddedInF32AndRoundedOnce) {
  for (const DType dtype : {DType::BF16, DType::F16})
    for (const int32_t size : {8, 24, 64}) {
      Gradient queries(dtype, 13, 4, size, 5 * size, size), keys(dtype, 40, 1, size, 3 * size, size),
          values(dtype, 40, 1, size, size, size);
      for (size_t number = 0; number < 3; ++number)
        launch(cuda::attentionPartsLaunch(
            {{queries.part(number), keys.part(number), values.part(number)}, size}, dtype));
      for (const Gradient *each : {&queries, &keys, &values})
        each->check(size);
    }
}

/// A sum that begins and ends with one part is that part: what was in memory before is not read.
TEST(AttentionParts, OneAloneIsCopied) {
  Gradient one(DType::BF16, 3, 2, 8, 16, 8), other = one, third = one;
  const auto alone = [](Gradient &gradient) {
    AttentionPart part = gradient.part(0);
    part.out = gradient.out.data();
    part.ended = gradient.rows;
    return part;
  };
  launch(cuda::attentionPartsLaunch({{alone(one), alone(other), alone(third)}, 8}, DType::BF16));
  EXPECT_EQ(one.out, one.parts[0].words);
  EXPECT_TRUE(std::isnan(one.sum[0])) << "nor is it written";
}

/// Of a block's keys the first have had blocks before, and others have none behind. A part may have no rows.
TEST(AttentionParts, SumsBeginAndEndByRows) {
  Gradient keys(DType::BF16, 5, 1, 8, 8, 8), values = keys;
  const auto of = [](Gradient &gradient, size_t number, int64_t summed, int64_t ended) {
    AttentionPart part = gradient.part(number);
    part.out = gradient.out.data();
    part.summed = summed;
    part.ended = ended;
    return part;
  };
  AttentionPart none{};
  none.heads = 1;
  launch(cuda::attentionPartsLaunch({{none, of(keys, 0, 0, 2), of(values, 0, 0, 2)}, 8}, DType::BF16));
  for (size_t at = 0; at < 40; ++at) {
    const bool ended = at / 8 < 2;
    EXPECT_EQ(keys.out[at], ended ? keys.parts[0].words[at] : 0x4242) << at;
    EXPECT_EQ(std::isnan(keys.sum[at]), ended) << at;
  }
  // Rows 2 and 3 gain their second part, row 4 begins anew.
  keys.sum[32] = NAN;
  launch(cuda::attentionPartsLaunch({{none, of(keys, 1, 4, 0), of(values, 1, 4, 0)}, 8}, DType::BF16));
  EXPECT_EQ(keys.sum[16], keys.parts[0].at(16) + keys.parts[1].at(16));
  EXPECT_EQ(keys.sum[32], keys.parts[1].at(32));
}

/// Logarithms of two heads of three rows each, which lie four and two apart, and packed.
TEST(AttentionParts, SlopesMoveLogarithms) {
  const std::vector<float> from = {1, 0, 2, 0, 3, 0, 0, 0, 5, 0, 6, 0, 7, 0}, slopes = {0.5f, 0.25f};
  std::vector<float> to(6);
  launch(cuda::attentionShiftLaunch({from.data(), to.data(), slopes.data(), {8, 2}, {3, 1}, 2, 3, 8}));
  EXPECT_EQ(to, (std::vector<float>{5, 6, 7, 7, 8, 9}));
}

} // namespace
} // namespace ds::rt
