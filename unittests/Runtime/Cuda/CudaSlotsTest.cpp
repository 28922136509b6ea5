//===- CudaSlotsTest.cpp - Values that wait between segments, on a device -----------------===//
#include "CudaFixture.h"
#include "PassedOn.h"

namespace ds::rt {
namespace {

using test::PassedOn;
using testing::HasSubstr;
using testing::Not;

class CudaSlots : public test::CudaFixture {
protected:
  /// What the backward of each micro-batch has read in a step whose inputs are `base` + m.
  std::vector<float> seenBy(const PassedOn &p, float base) {
    EXPECT_TRUE(executor->runStep([&](uint32_t m) -> Status {
      std::fill_n(static_cast<float *>(executor->inputs(m).at(0)), PassedOn::kElements, base + m);
      return {};
    }));
    std::vector<float> seen;
    for (uint32_t m = 0; m < 3; ++m)
      EXPECT_TRUE(executor->inspect(static_cast<std::byte *>(executor->data(p.seen, m)), sizeof(float),
                                    [&](const std::byte *host) -> Status {
                                      seen.push_back(*reinterpret_cast<const float *>(host));
                                      return {};
                                    }));
    return seen;
  }
};

TEST_F(CudaSlots, EachBackwardReadsItsOwnForward) {
  for (bool poison : {false, true}) {
    PassedOn p;
    test::toCuda(p.b.program);
    ASSERT_TRUE(verifyProgram(p.b.program)) << verifyProgram(p.b.program).error().message;
    ASSERT_TRUE(load(p.b.program, poison));
    // One after another, then recorded, then as recorded.
    for (float base : {100.0f, 200.0f, 300.0f}) {
      EXPECT_EQ(seenBy(p, base), (std::vector<float>{base, base + 1, base + 2})) << "poison " << poison;
      EXPECT_EQ(executor->graph().recorded, !poison && base > 100);
    }
    executor->measure(true);
    EXPECT_EQ(seenBy(p, 400), (std::vector<float>{400, 401, 402}));
  }
}

TEST_F(CudaSlots, OneSlotIsNotEnough) {
  PassedOn p(1);
  test::toCuda(p.b.program);
  ASSERT_TRUE(load(p.b.program));
  for (float base : {100.0f, 200.0f})
    EXPECT_EQ(seenBy(p, base), (std::vector<float>{base + 1, base + 2, base + 2}));
}

// A graph of a segment that runs alone is that of one micro-batch.
TEST_F(CudaSlots, ASegmentRunsForAnyMicroBatch) {
  PassedOn p;
  test::toCuda(p.b.program);
  ASSERT_TRUE(load(p.b.program));
  for (int round = 0; round < 3; ++round)
    for (uint32_t m : {1, 0}) {
      std::fill_n(static_cast<float *>(executor->inputs(m).at(0)), PassedOn::kElements, 5.0f + m + round);
      ASSERT_TRUE(executor->run(0, m));
      EXPECT_EQ(executor->graph().recorded, round > 0);
      float value = 0;
      ASSERT_TRUE(executor->inspect(static_cast<std::byte *>(executor->data(p.a, m)), sizeof value,
                                    [&](const std::byte *host) -> Status {
                                      std::memcpy(&value, host, sizeof value);
                                      return {};
                                    }));
      EXPECT_EQ(value, 5.0f + m + round);
    }
}

} // namespace
} // namespace ds::rt
