//===- DataPositionTest.cpp - What a run that goes on needs of its data --------===//

#include "DataFixture.h"

#include "gmock/gmock.h"

#include <cstdio>

using namespace ds;
using namespace ds::rt;
using testing::ElementsAre;

namespace {

using DataPositionTest = DataSourceTest;

// A run of other ranks, micro-batch and accumulation goes on where the one before has stopped, also in the
// middle of an epoch and of a shuffled order.
TEST_F(DataPositionTest, GoesOnAtAPositionWithAnotherMesh) {
  for (bool shuffle : {false, true}) {
    DataOptions before = options(tenSamples(), 2, 1, 3); // 6 a step
    before.shuffle = shuffle;
    auto first = DataSource::open(before, xy(2));
    ASSERT_TRUE(first);
    EXPECT_EQ(first->position(0), 0u);
    EXPECT_EQ(first->position(7), 42u);

    DataOptions after = options(path("d.safetensors"), 1, 2, 2); // 4 a step
    after.shuffle = shuffle;
    after.firstStep = 7;
    after.firstSample = first->position(7);
    auto second = DataSource::open(after, xy(1));
    ASSERT_TRUE(second);
    EXPECT_EQ(second->sign(), first->sign());
    EXPECT_EQ(second->position(7), 42u);
    EXPECT_EQ(second->position(9), 50u);
    std::vector<int64_t> expected = labels(*first, 2, 7, 0, 0), got; // 42..47, of which 42..45 are two steps
    for (uint32_t rank : {1, 2})
      for (int64_t label : labels(*first, 2, 7, 0, rank))
        expected.push_back(label);
    for (auto [step, microStep, rank] :
         {std::tuple(7, 0, 0), {7, 0, 1}, {7, 1, 0}, {7, 1, 1}, {8, 0, 0}, {8, 0, 1}})
      got.push_back(labels(*second, 1, uint64_t(step), uint32_t(microStep), uint32_t(rank))[0]);
    EXPECT_EQ(got, expected);
  }
}

TEST_F(DataPositionTest, PositionsStandStillAtTheLastOne) {
  DataOptions late = options(tenSamples(), 5);
  late.firstStep = 3;
  late.firstSample = UINT64_MAX - 7;
  auto source = DataSource::open(late, xy(5));
  ASSERT_TRUE(source);
  EXPECT_EQ(source->position(4), UINT64_MAX - 2);
  EXPECT_EQ(source->position(5), UINT64_MAX);
  EXPECT_THAT(labels(*source, 5, 4, 0, 0), ElementsAre(3, 4, 5, 6, 7)); // 2^64 - 3 = ...613
}

TEST_F(DataPositionTest, SignIsOfTheDataAndItsOrder) {
  DataOptions plain = tokens(13);
  const std::string sign = DataSource::open(plain, ids(1, 4))->sign();
  EXPECT_THAT(sign,
              testing::MatchesRegex("13 tokens .U16., 3 samples of 4, digest [0-9a-f]{16}, in file order"));
  ASSERT_EQ(rename(path("t.bin").c_str(), path("u.bin").c_str()), 0);
  plain.path = path("u.bin");
  EXPECT_EQ(DataSource::open(plain, ids(1, 4))->sign(), sign); // a name is nothing of the data's
  EXPECT_NE(DataSource::open(plain, ids(1, 3))->sign(), sign); // 4 samples: a position is another one
  DataOptions shuffled = plain;
  shuffled.shuffle = true;
  shuffled.seed = 1;
  const std::string first = DataSource::open(shuffled, ids(1, 4))->sign();
  shuffled.seed = 2;
  EXPECT_NE(DataSource::open(shuffled, ids(1, 4))->sign(), first);
  EXPECT_NE(first, sign);
  std::string bytes = read(path("u.bin"));
  bytes[6] ^= 1;
  write("u.bin", bytes);
  EXPECT_NE(DataSource::open(plain, ids(1, 4))->sign(), sign);
}

// Of a long file only the beginning is read.
TEST_F(DataPositionTest, SignReadsTheFirstMiB) {
  std::vector<uint16_t> values(size_t(1) << 20, 7); // 2 MiB
  auto signOf = [&](size_t changed, size_t count) {
    std::vector<uint16_t> copy(values.begin(), values.begin() + ptrdiff_t(count));
    copy[changed] ^= 1;
    return DataSource::open(options(write("t.bin", bytesOf(copy))), ids(1, 4))->sign();
  };
  const size_t all = values.size();
  EXPECT_EQ(signOf(all - 1, all), signOf(all - 2, all));
  EXPECT_NE(signOf((size_t(1) << 19) - 1, all), signOf(all - 1, all));
  EXPECT_NE(signOf(0, all), signOf(0, all - 8));
}
} // namespace
