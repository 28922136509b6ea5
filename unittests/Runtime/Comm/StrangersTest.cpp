//===- StrangersTest.cpp - Callers that are no ranks of the job ---------------------===//
//
// A machine has scanners, other jobs and remains of them. Whoever calls a rank, at whatever port it listens,
// changes nothing and costs next to no time.
//
//===---------------------------------------------------------------------------===//
#include "Ranks.h"

#include "Comm/Control/Reception.h"

#include <gmock/gmock.h>

#include <atomic>
#include <deque>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

Deadline in(int ms) { return Clock::now() + milliseconds(ms); }
bool never() { return false; }

/// The reception of rank 0 of three.
class ReceptionTest : public testing::Test {
protected:
  ReceptionTest() {
    for (int rank = 0; rank < 3; ++rank)
      cards.push_back({"alpha", "127.0.0.1", 1, randomHex()});
    Result<Socket> listener = listenOn("127.0.0.1", cards[0].port);
    reception.emplace(cards, 0, std::move(*listener));
  }
  Socket stranger() { return std::move(*connectTo("127.0.0.1", cards[0].port, in(5000))); }
  /// A stranger who says something.
  Socket stranger(const Hello &hello, size_t bytes = sizeof(Hello)) {
    Socket socket = stranger();
    EXPECT_TRUE(sendAll(socket, &hello, bytes, in(5000)));
    return socket;
  }
  Hello helloOf(uint32_t caller, CallPurpose purpose) const {
    Hello hello{};
    std::copy_n(cards[caller].secret.data(), sizeof hello.secretOfCaller, hello.secretOfCaller);
    std::copy_n(cards[0].secret.data(), sizeof hello.secretOfCalled, hello.secretOfCalled);
    hello.caller = caller;
    hello.purpose = purpose;
    return hello;
  }
  Socket call(uint32_t caller, CallPurpose purpose = kNewsCall) {
    return std::move(*callRank(cards, caller, 0, purpose, in(5000)));
  }

  std::vector<Card> cards;
  std::optional<Reception> reception;
};

TEST_F(ReceptionTest, silentCallersKeepNobodyWaiting) {
  std::vector<Socket> silent;
  for (int i = 0; i < 200; ++i)
    silent.push_back(stranger());
  const Deadline begin = Clock::now();
  const Socket one = call(1), two = call(2);
  EXPECT_THAT(reception->await({1, 2}, kNewsCall, in(60000), never), IsEmpty());
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(15)); // one after the other they would have 7 minutes
  EXPECT_TRUE(reception->take(1, kNewsCall));
  EXPECT_FALSE(reception->take(1, kNewsCall)); // once
  EXPECT_TRUE(reception->take(2, kNewsCall));
}

TEST_F(ReceptionTest, whoDoesNotKnowTheSecretsIsNobody) {
  Hello wrong = helloOf(1, kNewsCall);
  wrong.secretOfCaller[31] ^= 1;
  Hello old = helloOf(1, kNewsCall);
  old.secretOfCalled[0] ^= 1;
  Hello self = helloOf(0, kNewsCall), unknown = helloOf(1, kNewsCall);
  unknown.caller = 3;
  std::vector<Socket> strangers;
  for (const Hello &hello : {wrong, old, self, unknown})
    strangers.push_back(stranger(hello));
  strangers.push_back(stranger(helloOf(1, kNewsCall), sizeof(Hello) - 1)); // all but one byte
  EXPECT_THAT(reception->await({1, 2}, kNewsCall, in(300), never), ElementsAre(1, 2));
  char byte;
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(::recv(strangers[i].get(), &byte, 1, MSG_DONTWAIT), 0) << i; // it has hung up
  EXPECT_TRUE(sendAll(strangers[4], reinterpret_cast<const char *>(&wrong) + sizeof wrong - 1, 1, in(1000)));
  EXPECT_THAT(reception->await({1}, kNewsCall, in(5000), never), IsEmpty()); // it was a rank, in two pieces
}

/// Ranks that are ahead call for channels of which nobody has asked yet.
TEST_F(ReceptionTest, callsWaitUntilTheyAreTaken) {
  const Socket data = call(2, kDataCall + 1), news = call(2);
  EXPECT_THAT(reception->await({2}, kNewsCall, in(5000), never), IsEmpty());
  EXPECT_FALSE(reception->take(2, kDataCall));
  EXPECT_THAT(reception->await({2}, kDataCall + 1, in(5000), never), IsEmpty());
  const Socket taken = reception->take(2, kDataCall + 1);
  EXPECT_TRUE(sendAll(data, "x", 1, in(1000)));
  pollfd entry{taken.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&entry, 1, 5000), 1);
  char text[2] = {};
  EXPECT_EQ(::recv(taken.get(), text, sizeof text, 0), 1); // nothing but what came behind the hello
  EXPECT_EQ(text[0], 'x');
}

TEST_F(ReceptionTest, waitingEndsWhenItsReasonDoes) {
  EXPECT_THAT(reception->await({1}, kNewsCall, in(60000), [] { return true; }), ElementsAre(1));
}

/// Ports at which this process listens. Looks at descriptors one by one, for they are open for a moment.
std::vector<uint16_t> ownPorts() {
  std::vector<uint16_t> ports;
  for (int fd = 3; fd < 400; ++fd) {
    int listens = 0;
    sockaddr_in own{};
    socklen_t size = sizeof listens, ownSize = sizeof own;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens &&
        ::getsockname(fd, reinterpret_cast<sockaddr *>(&own), &ownSize) == 0)
      ports.push_back(ntohs(own.sin_port));
  }
  return ports;
}

/// Calls every port that opens, at once and again and again; some callers are silent, some talk.
class Caller {
public:
  Caller() : thread([this] { callUntilOver(); }) {}
  ~Caller() {
    over = true;
    thread.join();
  }
  std::atomic<size_t> calls{0};

private:
  void callUntilOver() {
    std::vector<Socket> open;
    while (!over) {
      for (const uint16_t port : ownPorts()) {
        Result<Socket> socket = connectTo("127.0.0.1", port, in(100));
        if (!socket)
          continue;
        if (++calls % 2)
          sendAll(*socket, std::string(200, '\1').data(), 200, in(100));
        open.push_back(std::move(*socket));
      }
      if (open.size() > 200)
        open.erase(open.begin(), open.begin() + 100);
    }
  }
  std::atomic<bool> over{false};
  std::thread thread;
};

TEST(Strangers, bringNoJobDown) {
  Caller caller;
  for (int i = 0; i < 12; ++i)
    for (const char *transport : {"gloo", "memory"})
      test::runRanksOn(
          transport, 3,
          [](RankGroup &group) {
            float sum = 1;
            std::vector<std::byte> staging =
                test::stagingFor(CollectiveKind::AllReduce, DType::F32, 1, group.world());
            for (uint32_t channel = 0; channel < 2; ++channel)
              EXPECT_OK(group.channel(channel).allReduce(&sum, &sum, staging.data(), 1, DType::F32,
                                                         Reduction::Sum, "sum"));
            EXPECT_EQ(sum, 9);
          },
          std::chrono::seconds(60), /*finish=*/true);
  EXPECT_GT(caller.calls, 0u);
}

/// Copies half of the connections of this process, again and again, and holds each copy for a while: what a
/// process does for an instant that starts another one, or that asks in one thread for the ends of what
/// another thread has.
class Copier {
public:
  Copier() : thread([this] { copyUntilOver(); }) {}
  ~Copier() {
    over = true;
    thread.join();
    for (const int copy : copies)
      ::close(copy);
  }
  std::atomic<size_t> copied{0};

private:
  static constexpr int kMostSeen = 128, kFirstCopy = 512;
  static constexpr size_t kMostHeld = 200;

  static bool isConnection(int fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    return ::getpeername(fd, reinterpret_cast<sockaddr *>(&peer), &size) == 0;
  }

  void copyUntilOver() {
    for (int parity = 0; !over; parity = 1 - parity) {
      for (int fd = 3 + parity; fd < kMostSeen; fd += 2)
        if (const int copy = isConnection(fd) ? ::fcntl(fd, F_DUPFD_CLOEXEC, kFirstCopy) : -1; copy >= 0) {
          copies.push_back(copy);
          ++copied;
        }
      for (; copies.size() > kMostHeld; copies.pop_front())
        ::close(copies.front());
    }
  }

  std::deque<int> copies;
  std::atomic<bool> over{false};
  std::thread thread;
};

TEST(Strangers, that_hold_copies_of_connections_bring_no_job_down) {
  Copier copier;
  for (int job = 0; job < 4; ++job)
    test::runRanksOn(
        "gloo", 4, [](RankGroup &group) { EXPECT_OK(group.channel(0).barrier("meet")); },
        std::chrono::seconds(60), /*finish=*/true);
  EXPECT_GT(copier.copied, 0u);
}

} // namespace
} // namespace ds::rt
