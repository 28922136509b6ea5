//===- ControlTest.cpp - Who is blamed when a rank dies while others connect ------===//
#include "Comm/ChannelSet.h"

#include <gmock/gmock.h>

#include <atomic>
#include <poll.h>
#include <sys/socket.h>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

Deadline in(int ms) { return Clock::now() + milliseconds(ms); }

/// Three ranks, of which the test plays rank 0.
class Connecting : public testing::Test {
protected:
  void SetUp() override {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      Card card{"alpha", "127.0.0.1", 0, randomHex()};
      Result<Socket> listener = listenOn(card.address, card.port);
      ASSERT_TRUE(listener);
      listeners.push_back(std::move(*listener));
      cards.push_back(card);
    }
  }
  /// What `rank` says when it could not connect, or else in its first exchange.
  std::string failureOf(uint32_t rank, std::function<std::string()> absence = {}) {
    Reception reception(cards, rank, std::move(listeners[rank]));
    const auto control = Control::connect(cards, rank, reception, in(60000), {.absence = std::move(absence)});
    if (!control)
      return control.error().message;
    const auto all = (*control)->exchange("here", "who is here", milliseconds(10000));
    return all ? "" : all.error().message;
  }
  /// Rank 0 takes a call and dies.
  void takeCallAndDie() {
    pollfd entry{listeners[0].get(), POLLIN, 0};
    ASSERT_EQ(::poll(&entry, 1, 10000), 1);
    EXPECT_TRUE(Socket(::accept(listeners[0].get(), nullptr, nullptr)));
  }

  std::vector<Card> cards;
  std::vector<Socket> listeners;
};

constexpr const char *kTruth = "rank 0 on host alpha is gone: it ended or was killed; noticed ";

/// Rank 2 calls when rank 1 has already given up; rank 0's system still takes its call.
TEST_F(Connecting, LateCallersAreToldWhy) {
  std::thread first([&] { EXPECT_THAT(failureOf(1), HasSubstr(kTruth)); });
  takeCallAndDie();
  std::this_thread::sleep_for(milliseconds(50)); // sooner, it hears the same in another way
  EXPECT_THAT(failureOf(2), HasSubstr(kTruth));
  first.join();
}

/// Rank 1 has gone for rank 0's sake: who meets a closed door there asks its peers first.
TEST_F(Connecting, APeerThatIsHeardIsBlamedBeforeOneThatCannotBeReached) {
  listeners[1] = Socket();
  std::thread dying([&] { takeCallAndDie(); });
  EXPECT_THAT(failureOf(2), HasSubstr(kTruth));
  dying.join();
}

TEST_F(Connecting, ARankThatCannotBeReachedIsNamed) {
  listeners[1] = Socket();
  EXPECT_THAT(failureOf(2),
              HasSubstr("rank 1 on host alpha came to the rendezvous but takes no connection: "));
}

/// Ranks 1 and 2 have left their cards, and rank 1 was killed before it called anybody.
TEST_F(Connecting, TheLauncherIsHeardWhileRanksConnect) {
  const Deadline begin = Clock::now();
  std::atomic<bool> killed{false};
  std::thread killing([&] {
    std::this_thread::sleep_for(milliseconds(200));
    killed = true;
  });
  const std::string failure =
      failureOf(0, [&] { return std::string(killed ? "rank 1 was killed by signal 9 (Killed)" : ""); });
  killing.join();
  EXPECT_THAT(failure,
              HasSubstr("rank 1 was killed by signal 9 (Killed); noticed while the ranks connected"));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(30));
}

/// Rank 0 dies between the connections that carry news and those that carry data.
TEST_F(Connecting, ADeathBeforeDataIsConnectedIsSaidToBeThen) {
  cards.pop_back();
  std::thread dying([&] {
    Reception reception(cards, 0, std::move(listeners[0]));
    EXPECT_TRUE(Control::connect(cards, 0, reception, in(60000), {}));
  });
  auto reception = std::make_unique<Reception>(cards, 1, std::move(listeners[1]));
  const auto control = Control::connect(cards, 1, *reception, in(60000), {});
  dying.join();
  ASSERT_TRUE(control) << control.error().message;
  const RankIdentity place{.rank = 1, .world = 2}; // on hosts of their own, whose data goes by Gloo
  ChannelSet channels(place, std::chrono::seconds(10), cards, std::move(reception), **control);
  const Status status = channels.connect(1, /*last=*/true, in(10000));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr(std::string(kTruth) + "while the ranks connected for data"));
}

} // namespace
} // namespace ds::rt
