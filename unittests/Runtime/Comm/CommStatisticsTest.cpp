//===- CommStatisticsTest.cpp - What is counted of collectives, and what is said --===//
#include "Ranks.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

namespace ds::rt {
namespace {

using test::runRanks;
using test::stagingFor;

TEST(Statistics, count_as_nccl_tests_do) {
  runRanks(2, [](RankGroup &group) {
    Communicator &channel = group.channel(0);
    std::vector<float> in(2000), out(2000);
    auto staging = stagingFor(CollectiveKind::ReduceScatter, DType::F32, 1000, 2);
    for (int i = 0; i < 3; ++i) {
      EXPECT_OK(channel.allGather(in.data(), out.data(), 4000, "gather"));
      EXPECT_OK(channel.reduceScatter(in.data(), out.data(), staging.data(), 1000, DType::F32, Reduction::Sum,
                                      "scatter"));
    }
    EXPECT_OK(
        channel.allReduce(in.data(), out.data(), staging.data(), 10, DType::F32, Reduction::Sum, "norm"));
    EXPECT_OK(channel.barrier("uncounted"));
    const std::vector<CommStat> stats = channel.stats();
    ASSERT_EQ(stats.size(), 3u);
    EXPECT_EQ(stats[0].name, "gather");
    EXPECT_EQ(stats[0].count, 3u);
    EXPECT_EQ(stats[0].bytes, 24000u); // 3 * 2 ranks * 4000
    EXPECT_EQ(stats[1].kind, CollectiveKind::ReduceScatter);
    EXPECT_EQ(stats[1].bytes, 24000u); // 3 * 2000 elements * 4
    EXPECT_EQ(stats[2].bytes, 40u);
    EXPECT_GT(stats[2].seconds, 0);
  });
}

TEST(Statistics, derive_bandwidths) {
  CommStat stat{CollectiveKind::AllReduce, "g", 4, 2, 4000000000, 2.0};
  EXPECT_DOUBLE_EQ(stat.algorithmBandwidth(), 2e9);
  EXPECT_DOUBLE_EQ(stat.busBandwidth(), 3e9); // * 2 * 3/4
  stat.kind = CollectiveKind::AllGather;
  EXPECT_DOUBLE_EQ(stat.busBandwidth(), 1.5e9); // * 3/4
  stat.kind = CollectiveKind::Broadcast;
  EXPECT_DOUBLE_EQ(stat.busBandwidth(), 2e9);
  EXPECT_THAT(describe({stat}), testing::HasSubstr("broadcast"));
  EXPECT_EQ(describe({}), "");
}

/// Three collectives in two lines: the one that took longest, and 3 calls of 8 MiB and 0.75 s besides.
TEST(Statistics, say_what_takes_longest) {
  const std::vector<CommStat> stats = {{CollectiveKind::AllGather, "small", 2, 1, 2 << 20, 0.25},
                                       {CollectiveKind::AllReduce, "large", 2, 9, 5 << 20, 4.0},
                                       {CollectiveKind::AllGather, "middle", 2, 2, 6 << 20, 0.5}};
  const std::string text = describe(stats, 1);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_THAT(text, testing::HasSubstr("large"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("middle")));
  EXPECT_THAT(text, testing::ContainsRegex("others +2 \\(--summary all\\) +3 +8.00 +0.750\n"));
  EXPECT_EQ(describe(stats, 3), describe(stats));
}

/// A name that is longer than its heading's room moves all columns.
TEST(Statistics, columns_stand_below_one_another) {
  const std::vector<CommStat> stats = {
      {CollectiveKind::ReduceScatter, "transformer.h.0.attn.c_proj.weight", 4, 6, 5 << 20, 4.0},
      {CollectiveKind::AllReduce, "loss", 4, 6, 1 << 20, 1.0}};
  std::istringstream lines(describe(stats));
  std::string heading, line;
  std::getline(lines, heading);
  while (std::getline(lines, line))
    EXPECT_EQ(line.size(), heading.size()) << line;
}

} // namespace
} // namespace ds::rt
