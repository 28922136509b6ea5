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
            static_cast<int32_t>(heads),
            number == 0,
            number == 2};
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
    part.ends = 1;
    return part;
  };
  launch(cuda::attentionPartsLaunch({{alone(one), alone(other), alone(third)}, 8}, DType::BF16));
  EXPECT_EQ(one.out, one.parts[0].words);
  EXPECT_TRUE(std::isnan(one.sum[0])) << "nor is it written";
}

} // namespace
} // namespace ds::rt
