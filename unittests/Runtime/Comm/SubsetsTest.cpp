//===- SubsetsTest.cpp - Groups of a mesh on the channels of all ranks -----------===//
//
// Four ranks as two by two, connected once by memory and once by Gloo: what a group along an axis gets is
// what its members alone would get, whatever the other groups of the channel do at the same time.
//
//===---------------------------------------------------------------------------===//
#include "Ranks.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace ds::rt {
namespace {

using test::runRanks;
using test::stagingFor;
using testing::HasSubstr;

const Mesh kMesh = {{"dp", 2}, {"tp", 2}};
const AxisSet kSets[] = {{0}, {1}, {0, 1}};

/// Numbers of very different size, so that the order of a sum shows in its bits.
std::vector<float> numbers(uint64_t count, uint32_t rank) {
  std::mt19937 random(100 + rank);
  std::uniform_real_distribution<float> mantissa(-1, 1);
  std::vector<float> values(count);
  for (float &value : values)
    value = std::ldexp(mantissa(random), static_cast<int>(random() % 24));
  return values;
}

/// One group, as one of its ranks sees it.
struct Side {
  RankGroup &group;
  AxisSet axes;
  std::vector<uint32_t> members = kMesh.group(group.rank(), axes);
  Communicator &with = group.subset(0, members);
  uint32_t size = with.size(), self = with.position();

  std::string who() const { return "rank " + std::to_string(group.rank()) + " along " + kMesh.spell(axes); }
  /// Sums over the members in their order, element by element.
  std::vector<float> sums(uint64_t count) const {
    std::vector<float> sum = numbers(count, members[0]);
    for (uint32_t m = 1; m < size; ++m) {
      const std::vector<float> more = numbers(count, members[m]);
      for (uint64_t i = 0; i < count; ++i)
        sum[i] += more[i];
    }
    return sum;
  }
};

void onEachGroup(const std::function<void(const Side &)> &body) {
  runRanks(4, [&](RankGroup &group) {
    for (AxisSet axes : kSets)
      body(Side{group, axes});
  });
}

TEST(Subsets, know_their_members_by_position) {
  onEachGroup([](const Side &s) {
    EXPECT_EQ(s.size, kMesh.size(s.axes)) << s.who();
    EXPECT_EQ(s.self, kMesh.position(s.group.rank(), s.axes)) << s.who();
    EXPECT_EQ(&s.group.subset(0, s.members), &s.with) << "made once";
    if (s.size == 4)
      EXPECT_EQ(&s.group.channel(0), &s.with) << "all ranks are the channel itself";
  });
}

TEST(Subsets, gather) {
  onEachGroup([](const Side &s) {
    constexpr uint64_t kCount = 1000;
    const std::vector<float> in = numbers(kCount, s.group.rank());
    std::vector<float> out(kCount * s.size), expected;
    EXPECT_OK(s.with.allGather(in.data(), out.data(), kCount * 4, "w"));
    for (uint32_t member : s.members)
      for (float value : numbers(kCount, member))
        expected.push_back(value);
    EXPECT_EQ(out, expected) << s.who();
  });
}

TEST(Subsets, reduce_in_the_order_of_their_members) {
  onEachGroup([](const Side &s) {
    for (const uint64_t part : {1, 1000, 300001}) { // in one message, in parts, in several blocks
      if (part > 1000 && s.size > 2)
        continue; // large ones take their time
      const uint64_t count = part * s.size;
      std::vector<float> in = numbers(count, s.group.rank()), scattered(part), reduced(count);
      auto staging = stagingFor(CollectiveKind::ReduceScatter, DType::F32, part, s.size);
      EXPECT_OK(s.with.reduceScatter(in.data(), scattered.data(), staging.data(), part, DType::F32,
                                     Reduction::Sum, "g"));
      staging = stagingFor(CollectiveKind::AllReduce, DType::F32, count, s.size);
      EXPECT_OK(s.with.allReduce(in.data(), reduced.data(), staging.data(), count, DType::F32, Reduction::Sum,
                                 "g"));
      const std::vector<float> expected = s.sums(count);
      EXPECT_EQ(std::memcmp(reduced.data(), expected.data(), count * 4), 0) << s.who() << ", " << part;
      EXPECT_EQ(std::memcmp(scattered.data(), expected.data() + s.self * part, part * 4), 0)
          << s.who() << ", " << part;
    }
  });
}

TEST(Subsets, broadcast_and_exchange_by_position) {
  onEachGroup([](const Side &s) {
    for (uint32_t root = 0; root < s.size; ++root) {
      std::vector<uint32_t> data(5000, s.group.rank());
      EXPECT_OK(s.with.broadcast(data.data(), data.size() * 4, root, "w"));
      EXPECT_THAT(data, testing::Each(s.members[root])) << s.who();
    }
    std::vector<uint32_t> in(s.size), out(s.size);
    for (uint32_t to = 0; to < s.size; ++to)
      in[to] = 10 * s.group.rank() + to;
    EXPECT_OK(s.with.allToAll(in.data(), out.data(), 4, "x"));
    for (uint32_t from = 0; from < s.size; ++from)
      EXPECT_EQ(out[from], 10 * s.members[from] + s.self) << s.who();
  });
}

TEST(Subsets, send_to_positions) {
  onEachGroup([](const Side &s) {
    const uint32_t next = (s.self + 1) % s.size, before = (s.self + s.size - 1) % s.size;
    uint32_t mine = s.group.rank(), theirs = 99;
    if (s.self == 0) {
      EXPECT_OK(s.with.send(&mine, 4, next, "m"));
      EXPECT_OK(s.with.recv(&theirs, 4, before, "m"));
    } else {
      EXPECT_OK(s.with.recv(&theirs, 4, before, "m"));
      EXPECT_OK(s.with.send(&mine, 4, next, "m"));
    }
    EXPECT_EQ(theirs, s.members[before]) << s.who();
    EXPECT_OK(s.with.barrier("meet"));
  });
}

TEST(Subsets, do_as_all_ranks_do) {
  // Sums of whole numbers are exact: by rows and then by columns is by all at once.
  runRanks(4, [](RankGroup &group) {
    std::vector<float> together(5000), byAxes(5000);
    for (size_t i = 0; i < together.size(); ++i)
      together[i] = byAxes[i] = static_cast<float>(i % 100 * (group.rank() + 1));
    auto staging = stagingFor(CollectiveKind::AllReduce, DType::F32, together.size(), 4);
    const auto reduce = [&](Communicator &with, std::vector<float> &data) {
      EXPECT_OK(with.allReduce(data.data(), data.data(), staging.data(), data.size(), DType::F32,
                               Reduction::Sum, "g"));
    };
    reduce(group.channel(0), together);
    for (unsigned axis : {0, 1})
      reduce(group.subset(0, kMesh.group(group.rank(), {axis})), byAxes);
    EXPECT_EQ(byAxes, together);
    EXPECT_EQ(byAxes[7], 70.0f); // 7 * (1 + 2 + 3 + 4)
  });
}

/// Groups that overlap, in an order that is the same everywhere, with ranks that come early or late: what one
/// group leaves behind must not reach another.
TEST(Subsets, of_a_channel_do_not_disturb_each_other) {
  runRanks(4, [](RankGroup &group) {
    std::mt19937 order(5), pace(group.rank());
    const auto play = [&](uint32_t channel, int rounds) {
      for (int round = 0; round < rounds; ++round) {
        const AxisSet axes = kSets[order() % 3];
        const std::vector<uint32_t> members = kMesh.group(group.rank(), axes);
        Communicator &with = group.subset(channel, members);
        if (pace() % 4 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(pace() % 2000));
        const uint32_t mine = static_cast<uint32_t>(round) * 10 + group.rank();
        std::vector<uint32_t> all(members.size());
        EXPECT_OK(with.allGather(&mine, all.data(), 4, "round"));
        for (size_t m = 0; m < members.size(); ++m)
          EXPECT_EQ(all[m], static_cast<uint32_t>(round) * 10 + members[m]) << "round " << round;
      }
    };
    play(0, 300);
    play(1, 20);
  });
}

TEST(Subsets, of_two_channels_work_at_once) {
  runRanks(4, [](RankGroup &group) {
    constexpr uint64_t kCount = 200000;
    const auto work = [&](uint32_t channel, unsigned axis) {
      const std::vector<uint32_t> members = kMesh.group(group.rank(), {axis});
      Communicator &with = group.subset(channel, members);
      auto staging = stagingFor(CollectiveKind::AllReduce, DType::F32, kCount, 2);
      for (int i = 0; i < 5; ++i) {
        std::vector<float> data(kCount, static_cast<float>(group.rank() + 1));
        EXPECT_OK(with.allReduce(data.data(), data.data(), staging.data(), kCount, DType::F32, Reduction::Sum,
                                 "g"));
        const auto sum = static_cast<float>(members[0] + members[1] + 2);
        EXPECT_EQ(std::count(data.begin(), data.end(), sum), std::ptrdiff_t(kCount));
      }
    };
    std::thread other(work, 1, 0);
    work(0, 1);
    other.join();
  });
}

TEST(Subsets, of_one_rank_copy) {
  runRanks(2, [](RankGroup &group) {
    Communicator &alone = group.subset(0, {group.rank()});
    EXPECT_EQ(alone.size(), 1u);
    EXPECT_EQ(alone.position(), 0u);
    const float in[2] = {1, 2};
    float out[2];
    EXPECT_OK(alone.allReduce(in, out, nullptr, 2, DType::F32, Reduction::Sum, "g"));
    EXPECT_EQ(out[1], 2);
  });
}

TEST(Subsets, are_counted_by_their_size) {
  runRanks(4, [](RankGroup &group) {
    std::vector<float> data(400);
    for (AxisSet axes : kSets) {
      Communicator &with = group.subset(0, kMesh.group(group.rank(), axes));
      EXPECT_OK(with.allGather(data.data(), data.data(), 400, "w"));
    }
    const std::vector<CommStat> stats = group.channel(0).stats();
    ASSERT_EQ(stats.size(), 2u) << "both axes have two ranks";
    EXPECT_EQ(stats[0].ranks, 2u);
    EXPECT_EQ(stats[0].count, 2u);
    EXPECT_EQ(stats[0].bytes, 2u * 800);
    EXPECT_EQ(stats[1].ranks, 4u);
    EXPECT_EQ(stats[1].bytes, 1600u);
    EXPECT_DOUBLE_EQ(stats[0].busBandwidth(), stats[0].algorithmBandwidth() / 2);
    EXPECT_DOUBLE_EQ(stats[1].busBandwidth(), stats[1].algorithmBandwidth() * 3 / 4);
    EXPECT_EQ(group.subset(0, kMesh.group(group.rank(), {0})).stats().size(), 2u) << "those of the channel";
  });
}

TEST(Subsets, name_who_is_late_by_the_number_among_all) {
  runRanks(
      4,
      [](RankGroup &group) {
        if (group.rank() == 3) { // position 1 of both of its groups
          while (group.failure().empty())
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          return;
        }
        float value = 1;
        std::byte staging[64];
        const auto reduce = [&](unsigned axis, const char *name) {
          return group.subset(0, kMesh.group(group.rank(), {axis}))
              .allReduce(&value, &value, staging, 1, DType::F32, Reduction::Sum, name);
        };
        Status status = reduce(1, "by rows");
        if (status)
          status = reduce(0, "by columns");
        ASSERT_FALSE(status) << "rank " << group.rank();
        EXPECT_EQ(status.error().code, ExitCode::Peer);
        EXPECT_THAT(status.error().message, HasSubstr("rank 3 on host"));
        EXPECT_THAT(status.error().message, HasSubstr("did not take part in collective"));
      },
      std::chrono::milliseconds(1500), /*finish=*/false);
}

} // namespace
} // namespace ds::rt
