//===- MeetingTest.cpp - How ranks find each other, and who is turned away --------===//
#include "Ranks.h"

#include "../../../lib/Runtime/Comm/LocalTransport.h"
#include "../../../lib/Runtime/Comm/Plugins.h"
#include "../../../lib/Runtime/Comm/Rendezvous.h"
#include "Comm/Control/Card.h"

#include <gmock/gmock.h>

#include <atomic>
#include <barrier>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/socket.h>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;
using test::placeOf;
using test::runRanks;
using test::TemporaryDirectory;
using testing::HasSubstr;

Card cardOf(uint16_t port) { return Card{"alpha", "127.0.0.1", port, randomHex()}; }

TEST(Cards, survive_their_spelling) {
  const Card card = cardOf(4711);
  const std::optional<Card> read = parseCard(spellCard(card));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->secret, card.secret);
  EXPECT_EQ(read->address, card.address);
  EXPECT_EQ(read->port, 4711);
  EXPECT_EQ(read->host, "alpha");
}

TEST(Cards, that_are_damaged_are_none) {
  const std::string good = spellCard(cardOf(4711));
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(parseCard(good.substr(0, length))) << length;
  EXPECT_FALSE(parseCard("ds-rank-2" + good.substr(9)));
  EXPECT_FALSE(parseCard(good.substr(0, good.size() - 1) + " more\n"));
  for (const char *port : {"0", "65536", "-1", "47x"})
    EXPECT_FALSE(parseCard("ds-rank-1 " + randomHex() + " 127.0.0.1 " + port + " alpha\n")) << port;
}

TEST(Cards, have_secrets_of_their_own) { EXPECT_NE(randomHex(), randomHex()); }

Deadline in(int ms) { return Clock::now() + milliseconds(ms); }

TEST(Directory, names_the_missing_ranks) {
  TemporaryDirectory directory;
  const Deadline begin = Clock::now();
  const auto cards = meetInDirectory(placeOf(directory.path, 1, 4), cardOf(1), in(300));
  ASSERT_FALSE(cards);
  EXPECT_EQ(cards.error().code, ExitCode::Peer);
  EXPECT_THAT(cards.error().message,
              HasSubstr("ranks 0, 2, 3 of 4 did not come to the rendezvous within 0.3 s"));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(30));
}

TEST(Directory, names_a_few_of_many_missing_ranks) {
  TemporaryDirectory directory;
  const auto cards = meetInDirectory(placeOf(directory.path, 1, 30), {"alpha", "127.0.0.1", 1, randomHex()},
                                     Clock::now() + milliseconds(50));
  ASSERT_FALSE(cards);
  EXPECT_THAT(cards.error().message,
              HasSubstr("ranks 0, 2, 3, 4, 5, 6, 7, 8 and 21 others of 30 did not come to the rendezvous"));
}

TEST(Directory, knows_no_other_job) {
  TemporaryDirectory directory;
  std::thread stale([&] { // what is left of a job with another nonce
    (void)meetInDirectory(placeOf(directory.path, 0, 2, "old"), cardOf(1), in(50));
  });
  stale.join();
  const auto cards = meetInDirectory(placeOf(directory.path, 1, 2, "new"), cardOf(2), in(200));
  ASSERT_FALSE(cards);
  EXPECT_THAT(cards.error().message, HasSubstr("rank 0 of 2 did not come"));
}

TEST(Directory, waits_for_a_card_that_is_whole) {
  TemporaryDirectory directory;
  const std::string path = directory.path + "/job.0";
  std::ofstream(path) << "ds-rank-1 half";
  std::thread writer([&] {
    std::this_thread::sleep_for(milliseconds(100));
    std::ofstream(path) << spellCard(cardOf(7));
  });
  const auto cards = meetInDirectory(placeOf(directory.path, 1, 2), cardOf(2), in(5000));
  writer.join();
  ASSERT_TRUE(cards) << cards.error().message;
  EXPECT_EQ((*cards)[0].port, 7);
}

TEST(Directory, ends_when_the_launcher_reports_an_end) {
  TemporaryDirectory directory;
  reportAbsence(directory.path, "job", 1, "was killed by signal 11");
  const auto cards = meetInDirectory(placeOf(directory.path, 0, 2), cardOf(1), in(20000));
  ASSERT_FALSE(cards);
  EXPECT_THAT(cards.error().message, HasSubstr("rank 1 was killed by signal 11 before the rendezvous"));
}

TEST(Directory, that_does_not_exist_is_named) {
  const auto cards = meetInDirectory(placeOf("/nowhere", 0, 2), cardOf(1), in(100));
  ASSERT_FALSE(cards);
  EXPECT_EQ(cards.error().code, ExitCode::Io);
  EXPECT_THAT(cards.error().message, HasSubstr("/nowhere/job.0"));
}

TEST(Directory, has_each_rank_once) {
  TemporaryDirectory directory;
  (void)meetInDirectory(placeOf(directory.path, 0, 2), cardOf(1), in(20));
  const auto second = meetInDirectory(placeOf(directory.path, 0, 2), cardOf(2), in(5000));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ExitCode::Peer);
  EXPECT_THAT(second.error().message, HasSubstr("another process has been rank 0 of this job"));
}

/// Somebody calls rank 0 who does not know the job's secrets: first, and with a plausible rank.
TEST(Control, turns_strangers_away) {
  TemporaryDirectory directory;
  std::vector<std::thread> threads;
  Socket stranger;
  for (uint32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      if (rank == 1) {
        std::optional<Card> card;
        while (!card) {
          std::ifstream file(directory.path + "/job.0");
          std::stringstream text;
          text << file.rdbuf();
          card = parseCard(text.str().empty() ? "x" : text.str());
        }
        stranger = std::move(*connectTo("127.0.0.1", card->port, in(2000)));
        const struct {
          char secrets[64];
          uint32_t caller;
        } hello{{}, 1};
        EXPECT_TRUE(sendAll(stranger, &hello, sizeof hello, in(2000)));
      }
      ConnectOptions options;
      options.timeout = std::chrono::seconds(10);
      Result<std::unique_ptr<RankGroup>> group = connect(placeOf(directory.path, rank, 2), options);
      ASSERT_TRUE(group) << group.error().message;
      EXPECT_OK((*group)->channel(0).barrier("together"));
      EXPECT_OK((*group)->finish());
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// Sockets that this process has open.
size_t countSockets() {
  size_t count = 0;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    count += std::filesystem::read_symlink(entry.path(), error).string().starts_with("socket:");
  }
  return count;
}

/// Each pair of three ranks has a connection for each channel by Gloo, with two ends in this process; whoever
/// asks for fewer gets as many as the others. Then nobody listens any more.
TEST(Groups, connect_as_many_channels_as_are_asked_for) {
  for (const auto &[first, second] : {std::pair<uint32_t, uint32_t>(1, 1), {1, 3}, {2, 5}}) {
    TemporaryDirectory directory;
    ::setenv("DS_TRANSPORT", "gloo", 1);
    std::barrier together(3);
    size_t before = 0, after = 0;
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank, first = first, second = second] {
        ConnectOptions options;
        options.channels = first;
        options.more = true;
        options.timeout = std::chrono::seconds(20);
        Result<std::unique_ptr<RankGroup>> group = connect(placeOf(directory.path, rank, 3), options);
        ASSERT_TRUE(group) << group.error().message;
        together.arrive_and_wait();
        if (rank == 0)
          before = countSockets();
        together.arrive_and_wait();
        EXPECT_OK((*group)->addChannels(rank == 1 ? 1 : second));
        EXPECT_OK((*group)->channel(second - 1).barrier("on the last"));
        together.arrive_and_wait();
        if (rank == 0)
          after = countSockets();
        together.arrive_and_wait();
        EXPECT_OK((*group)->finish());
      });
    for (std::thread &thread : threads)
      thread.join();
    ::unsetenv("DS_TRANSPORT");
    EXPECT_EQ(after, before + 3 * 2 * (second - first) - 3) << first << " " << second;
  }
}

/// News of a failure overtakes a collective that some ranks have finished and others not.
void letAllArrive(RankGroup &group) {
  ASSERT_TRUE(group.exchange("here", "all are connected"));
  std::this_thread::sleep_for(milliseconds(500));
}

TEST(Groups, abort_tells_all_and_every_later_call_says_the_same) {
  runRanks(
      3,
      [](RankGroup &group) {
        letAllArrive(group);
        if (group.rank() == 2) {
          group.abort("disk full");
          return;
        }
        Status status = group.channel(0).barrier("end");
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().code, ExitCode::Peer);
        EXPECT_THAT(status.error().message, HasSubstr("gave up: disk full; noticed in collective 1"));
        EXPECT_FALSE(group.channel(1).barrier("again"));
        EXPECT_FALSE(group.exchange("x", "again"));
        EXPECT_FALSE(group.finish());
      },
      std::chrono::seconds(20), /*finish=*/false);
}

TEST(Groups, a_group_that_goes_without_finish_is_missed) {
  runRanks(
      2,
      [](RankGroup &group) {
        letAllArrive(group);
        if (group.rank() == 1)
          return; // the group is destroyed
        Status status = group.channel(0).barrier("end");
        ASSERT_FALSE(status);
        EXPECT_THAT(status.error().message, HasSubstr("rank 1 on host"));
        EXPECT_THAT(status.error().message, HasSubstr("left before the end of the run"));
      },
      std::chrono::seconds(20), /*finish=*/false);
}

/// Rank 2 waits for rank 0, which soon after begins to wait for rank 1, which does not come: the first whose
/// time is over must not blame the one in the middle.
TEST(Groups, blame_the_rank_for_which_all_wait_in_the_end) {
  for (const char *transport : {"memory", "gloo"}) {
    std::atomic<int> waiting{2};
    test::runRanksOn(
        transport, 3,
        [&](RankGroup &group) {
          letAllArrive(group);
          if (group.rank() == 1) {
            while (waiting > 0)
              std::this_thread::sleep_for(milliseconds(20));
            return;
          }
          std::this_thread::sleep_for(milliseconds(group.rank() == 0 ? 700 : 0));
          std::vector<float> data(1 << 20);
          Communicator &channel = group.channel(0);
          const Status status = group.rank() == 2 ? channel.send(data.data(), data.size() * 4, 0, "its part")
                                                  : channel.recv(data.data(), data.size() * 4, 1, "its part");
          --waiting;
          ASSERT_FALSE(status);
          EXPECT_THAT(status.error().message, HasSubstr("rank 1 on host"));
          EXPECT_THAT(status.error().message, HasSubstr("(recv its part) within 2 s"));
        },
        std::chrono::seconds(2), /*finish=*/false);
  }
}

/// The first of two ranks waits for a message that never comes until its own transport is closed.
void closeWhileWaiting(std::unique_ptr<Transport> a) {
  uint64_t data = 0;
  ASSERT_TRUE(a->postReceive(1, &data, sizeof data));
  std::thread closer([&] {
    std::this_thread::sleep_for(milliseconds(100));
    a->close();
  });
  const Deadline begin = Clock::now();
  EXPECT_EQ(a->waitReceive(1, milliseconds(20000)), Transport::Outcome::Broken);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
  closer.join();
}

/// Both ends of a TCP connection.
std::pair<Socket, Socket> connectedPair() {
  uint16_t port = 0;
  const Result<Socket> listener = listenOn("127.0.0.1", port);
  Result<Socket> calling = connectTo("127.0.0.1", port, in(5000));
  pollfd entry{listener->get(), POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, 5000), 1);
  return {Socket(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC)), std::move(*calling)};
}

TEST(Transports, that_are_closed_end_every_wait) {
  std::unique_ptr<LocalTransport> one = LocalTransport::create(0, 2), other = LocalTransport::create(1, 2);
  ASSERT_TRUE(one->connect(1, other->address()) && other->connect(0, one->address()));
  closeWhileWaiting(std::move(one));
  const GlooApi &gloo = **openGloo();
  std::string error;
  std::unique_ptr<SocketTransport> a(gloo.create({0, 2}, error)), b(gloo.create({1, 2}, error));
  ASSERT_TRUE(a && b) << error;
  auto [first, second] = connectedPair();
  ASSERT_TRUE(a->connect(1, first.release())) << a->reason();
  ASSERT_TRUE(b->connect(0, second.release())) << b->reason();
  closeWhileWaiting(std::move(a));
}

/// What was never connected is closed, and takes no connection afterwards.
TEST(Transports, that_are_closed_take_no_connection) {
  const GlooApi &gloo = **openGloo();
  std::string error;
  std::unique_ptr<SocketTransport> transport(gloo.create({0, 2}, error));
  ASSERT_TRUE(transport) << error;
  transport->close();
  auto [first, second] = connectedPair();
  EXPECT_FALSE(transport->connect(1, first.release()));
  char byte;
  EXPECT_EQ(::recv(second.get(), &byte, 1, 0), 0); // it has hung up
}

/// Sets variables of the environment, and takes them back.
class Environment {
public:
  explicit Environment(std::vector<std::pair<const char *, const char *>> variables)
      : variables(std::move(variables)) {
    for (const auto &[name, value] : this->variables)
      ::setenv(name, value, 1);
  }
  ~Environment() {
    for (const auto &[name, value] : variables)
      ::unsetenv(name);
  }

private:
  std::vector<std::pair<const char *, const char *>> variables;
};

TEST(Places, come_from_the_environment) {
  EXPECT_EQ(findRankIdentity()->kind, RankIdentity::Kind::Alone);
  Environment set({{"DS_RANK", "1"},
                   {"DS_WORLD", "4"},
                   {"DS_RENDEZVOUS", "/d"},
                   {"DS_NONCE", "n"},
                   {"DS_ONE_HOST", "1"}});
  const Result<RankIdentity> place = findRankIdentity();
  ASSERT_TRUE(place);
  EXPECT_EQ(place->kind, RankIdentity::Kind::Directory);
  EXPECT_EQ(place->rank, 1u);
  EXPECT_EQ(place->world, 4u);
  EXPECT_TRUE(place->oneHost);
}

TEST(Places, that_contradict_themselves_are_refused) {
  const std::vector<std::vector<std::pair<const char *, const char *>>> bad = {
      {{"DS_RANK", "4"}, {"DS_WORLD", "4"}, {"DS_RENDEZVOUS", "/d"}, {"DS_NONCE", "n"}},
      {{"DS_RANK", "-1"}, {"DS_WORLD", "4"}, {"DS_RENDEZVOUS", "/d"}, {"DS_NONCE", "n"}},
      {{"DS_RANK", "0"}, {"DS_RENDEZVOUS", "/d"}, {"DS_NONCE", "n"}},
      {{"DS_RANK", "0"}, {"DS_WORLD", "2"}, {"DS_NONCE", "n"}},
      {{"DS_RANK", "0"}, {"DS_WORLD", "2"}, {"DS_RENDEZVOUS", "/d"}},
      {{"DS_RANK", "0"}, {"DS_WORLD", "2"}, {"DS_RENDEZVOUS", "/d"}, {"DS_NONCE", "../x"}},
      {{"SLURM_STEP_NUM_TASKS", "2"}},
  };
  for (const auto &variables : bad) {
    Environment set(variables);
    const Result<RankIdentity> place = findRankIdentity();
    ASSERT_FALSE(place);
    EXPECT_EQ(place.error().code, ExitCode::Usage) << place.error().message;
  }
}

TEST(Interfaces, that_do_not_exist_are_named) {
  const Result<std::string> address = interfaceAddress("nix0");
  ASSERT_FALSE(address);
  EXPECT_THAT(address.error().message, HasSubstr("'nix0'"));
  EXPECT_EQ(*interfaceAddress("lo"), "127.0.0.1");
}

} // namespace
} // namespace ds::rt
