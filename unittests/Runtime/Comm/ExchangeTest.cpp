//===- ExchangeTest.cpp - Messages that do not wait for each other ---------------===//
#include "Ranks.h"

#include <gmock/gmock.h>

#include <numeric>

namespace ds::rt {
namespace {

using test::runRanks;
using testing::HasSubstr;

constexpr uint64_t kLarge = 1 << 18; // floats: more than what connections hold back

/// What `from` sends to `to` as its message `number`.
std::vector<float> dataOf(uint32_t from, uint32_t to, uint32_t number, uint64_t count) {
  std::vector<float> data(count);
  std::iota(data.begin(), data.end(), static_cast<float>(1000 * from + 100 * to + 10 * number));
  return data;
}

/// Messages of one rank, with their memory.
class Messages {
public:
  explicit Messages(uint32_t self) : self(self) {}
  Messages &send(uint32_t to, uint32_t number = 0, uint64_t count = kLarge) {
    return add(true, to, dataOf(self, to, number, count), {});
  }
  Messages &receive(uint32_t from, uint32_t number = 0, uint64_t count = kLarge) {
    return add(false, from, std::vector<float>(count, -1), dataOf(from, self, number, count));
  }
  void pass(Communicator &through) {
    EXPECT_OK(through.exchange(list));
    for (size_t i = 0; i < list.size(); ++i)
      if (!list[i].isSend)
        EXPECT_EQ(memory[i], expected[i]) << "message " << i << " of rank " << self;
  }

private:
  Messages &add(bool isSend, uint32_t partner, std::vector<float> data, std::vector<float> wanted) {
    memory.push_back(std::move(data));
    expected.push_back(std::move(wanted));
    list.push_back({isSend, memory.back().data(), memory.back().size() * sizeof(float), partner, "m"});
    return *this;
  }
  const uint32_t self;
  std::vector<std::vector<float>> memory, expected;
  std::vector<Message> list;
};

TEST(Exchanges, pass_both_ways_at_once) {
  runRanks(2, [](RankGroup &group) {
    const uint32_t other = 1 - group.rank();
    for (int round = 0; round < 20; ++round) {
      Messages(group.rank()).send(other).receive(other).pass(group.channel(0));
      Messages(group.rank()).receive(other).send(other).pass(group.channel(0));
    }
  });
}

TEST(Exchanges, pass_around_a_ring_in_both_directions) {
  runRanks(4, [](RankGroup &group) {
    const uint32_t next = (group.rank() + 1) % 4, before = (group.rank() + 3) % 4;
    for (int round = 0; round < 5; ++round)
      Messages(group.rank()).send(next).send(before).receive(next).receive(before).pass(group.channel(0));
  });
}

/// Rank 0 asks for the message of rank 1 first, but that comes only once rank 0 has taken the one of rank 2.
TEST(Exchanges, take_what_comes_first) {
  runRanks(3, [](RankGroup &group) {
    Communicator &all = group.channel(0);
    for (int round = 0; round < 3; ++round) {
      if (group.rank() == 0)
        Messages(0).receive(1).receive(2).pass(all);
      if (group.rank() == 2) {
        Messages(2).send(0).pass(all);
        Messages(2).send(1).pass(all);
      }
      if (group.rank() == 1) {
        Messages(1).receive(2).pass(all);
        Messages(1).send(0).pass(all);
      }
    }
  });
}

TEST(Exchanges, keep_the_order_of_each_pair) {
  runRanks(3, [](RankGroup &group) {
    Communicator &all = group.channel(0);
    if (group.rank() == 0) // of three sizes, so that one in the place of another would be noticed
      Messages(0).receive(1, 0, 7).receive(2, 0, 8).receive(1, 1, 9).receive(1, 2, 7).pass(all);
    if (group.rank() == 1) {
      Messages(1).send(0, 0, 7).send(0, 1, 9).pass(all);
      Messages(1).send(0, 2, 7).pass(all);
    }
    if (group.rank() == 2)
      Messages(2).send(0, 0, 8).pass(all);
  });
}

TEST(Exchanges, of_nothing_are_over_at_once) {
  runRanks(2, [](RankGroup &group) {
    EXPECT_OK(group.channel(0).exchange({}));
    if (group.rank() == 0)
      Messages(0).send(1, 0, 0).pass(group.channel(0));
    else
      Messages(1).receive(0, 0, 0).pass(group.channel(0));
  });
}

TEST(Exchanges, are_counted_by_message) {
  runRanks(2, [](RankGroup &group) {
    const uint32_t other = 1 - group.rank();
    std::vector<float> given(100), got(50);
    if (group.rank() == 1)
      given.swap(got);
    const Message messages[] = {
        {true, given.data(), given.size() * 4, other, group.rank() ? "back" : "forth"},
        {false, got.data(), got.size() * 4, other, group.rank() ? "forth" : "back"}};
    for (int round = 0; round < 3; ++round)
      EXPECT_OK(group.channel(0).exchange(messages));
    const std::vector<CommStat> stats = group.channel(0).stats();
    ASSERT_EQ(stats.size(), 2u);
    EXPECT_EQ(stats[0].kind, CollectiveKind::Send);
    EXPECT_EQ(stats[1].kind, CollectiveKind::Recv);
    EXPECT_EQ(stats[0].name, group.rank() ? "back" : "forth");
    EXPECT_EQ(stats[1].name, group.rank() ? "forth" : "back");
    EXPECT_EQ(stats[0].bytes, 3u * 4 * given.size());
    EXPECT_EQ(stats[1].bytes, 3u * 4 * got.size());
    EXPECT_EQ(stats[0].count, 3u);
    EXPECT_DOUBLE_EQ(stats[0].seconds, stats[1].seconds);
    EXPECT_THAT(describe(stats), HasSubstr("recv             "));
  });
}

TEST(Exchanges, name_the_message_that_does_not_come) {
  runRanks(
      3,
      [](RankGroup &group) {
        if (group.rank() == 2) {
          while (group.failure().empty())
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          return;
        }
        const uint32_t other = 1 - group.rank();
        float data[3] = {};
        const Message messages[] = {{true, data, 4, other, "to the other"},
                                    {false, data + 1, 4, other, "of the other"},
                                    {false, data + 2, 4, 2, "of the last"}};
        const Status status = group.channel(0).exchange(messages);
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().code, ExitCode::Peer);
        EXPECT_THAT(status.error().message, HasSubstr("rank 2 on host"));
        EXPECT_THAT(status.error().message, HasSubstr("(recv of the last) within 1.5 s"));
      },
      std::chrono::milliseconds(1500), /*finish=*/false);
}

TEST(Exchanges, name_a_message_of_another_length) {
  test::runRanksOn(
      "memory", 2,
      [](RankGroup &group) {
        float data[8] = {};
        const Status status = group.rank() == 0 ? group.channel(0).send(data, 16, 1, "activation")
                                                : group.channel(0).recv(data, 32, 0, "activation");
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().code, ExitCode::Peer);
        EXPECT_THAT(status.error().message, HasSubstr("it sends 16 bytes where 32 are expected"));
        EXPECT_THAT(status.error().message, HasSubstr("(recv activation)"));
      },
      std::chrono::seconds(20), /*finish=*/false);
}

} // namespace
} // namespace ds::rt
