//===- FaultTest.cpp - Ranks that die, stop, or never come -----------------------===//
//
// Processes without a launcher, so that nobody but the ranks themselves can end the job: every survivor must
// exit with code 7 within the time-out and name the rank. DS_FAULT_REPEATS says how often each case runs.
//
//===---------------------------------------------------------------------------===//
#include "Processes.h"
#include "Ranks.h"

#include <gmock/gmock.h>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;
using test::Process;
using test::TemporaryDirectory;
using testing::HasSubstr;

constexpr uint32_t kWorld = 3, kVictim = 1;
constexpr double kTimeout = 2;
/// What a loaded machine may need beyond the time-out for starting and ending processes.
constexpr double kSlack = 6;

Process startPlayer(const std::string &directory, uint32_t rank, std::vector<std::string> options,
                    uint32_t world = kWorld, const std::string &transport = "memory") {
  options.insert(options.begin(), {DS_COMM_PLAYER, "--timeout", std::to_string(kTimeout)});
  const std::map<std::string, std::string> environment = {{"DS_RANK", std::to_string(rank)},
                                                          {"DS_WORLD", std::to_string(world)},
                                                          {"DS_RENDEZVOUS", directory},
                                                          {"DS_NONCE", "job"},
                                                          {"DS_ONE_HOST", "1"},
                                                          {"DS_TRANSPORT", transport}};
  return Process(std::move(options), environment, directory + "/out." + std::to_string(rank));
}

int repeats() {
  const char *text = std::getenv("DS_FAULT_REPEATS");
  return text ? std::stoi(text) : 1;
}

/// A phase of a step, and what happens there to the victim; "never" starts no victim.
struct Case {
  const char *phase, *how, *transport;
};

class Faults : public testing::TestWithParam<Case> {};

TEST_P(Faults, end_all_survivors_within_the_timeout) {
  const Case &fault = GetParam();
  for (int repeat = 0; repeat < repeats(); ++repeat) {
    TemporaryDirectory directory;
    const std::string option = std::string(fault.phase) + ":" + std::to_string(kVictim) + ":" + fault.how;
    const bool never = fault.how == std::string("never");
    std::vector<Process> ranks;
    for (uint32_t rank = 0; rank < kWorld; ++rank)
      if (rank != kVictim || !never)
        ranks.push_back(startPlayer(directory.path, rank, {"--fault", option}, kWorld, fault.transport));
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (i == kVictim && !never)
        continue;
      EXPECT_EQ(ranks[i].wait(milliseconds(static_cast<int>(1000 * (kTimeout + kSlack)))), 7)
          << option << ", repeat " << repeat << ": " << ranks[i].output();
      EXPECT_THAT(ranks[i].output(), HasSubstr("rank 1")) << option;
    }
  }
}

std::vector<Case> allCases() {
  std::vector<Case> cases = {{"rendezvous", "kill", "memory"},
                             {"rendezvous", "stop", "memory"},
                             {"rendezvous", "never", "memory"},
                             {"exchange", "kill", "memory"},
                             {"exchange", "stop", "memory"}};
  for (const char *phase : {"gather", "reduce", "between"})
    for (const char *how : {"kill", "stop"})
      for (const char *transport : {"memory", "gloo"})
        cases.push_back({phase, how, transport});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(AtEachPhase, Faults, testing::ValuesIn(allCases()), [](const auto &info) {
  return std::string(info.param.phase) + "_" + info.param.how + "_" + info.param.transport;
});

/// Kills or stops a rank from outside, at a time that depends on nothing in it.
void bringDownAtAnyTime(int signal) {
  for (int repeat = 0; repeat < 3 * repeats(); ++repeat) {
    TemporaryDirectory directory;
    std::vector<Process> ranks;
    for (uint32_t rank = 0; rank < kWorld; ++rank)
      ranks.push_back(
          startPlayer(directory.path, rank, {"--steps", "100000"}, kWorld, repeat % 2 ? "gloo" : "memory"));
    const uint32_t victim = static_cast<uint32_t>(repeat) % kWorld;
    std::this_thread::sleep_for(milliseconds(50 + 173 * repeat % 700));
    ::kill(ranks[victim].id(), signal);
    const std::string name = "rank " + std::to_string(victim);
    for (uint32_t rank = 0; rank < kWorld; ++rank) {
      if (rank == victim)
        continue;
      EXPECT_EQ(ranks[rank].wait(milliseconds(static_cast<int>(1000 * (kTimeout + kSlack)))), 7)
          << name << ", repeat " << repeat << ": " << ranks[rank].output();
      EXPECT_THAT(ranks[rank].output(), HasSubstr(name));
    }
  }
}

TEST(FaultsAtAnyTime, killed) { bringDownAtAnyTime(SIGKILL); }
TEST(FaultsAtAnyTime, stopped) { bringDownAtAnyTime(SIGSTOP); }

TEST(FaultMessages, name_rank_host_and_collective) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  TemporaryDirectory directory;
  Process victim = startPlayer(directory.path, 1, {"--fault", "between:1:stop"}, 2);
  Process survivor = startPlayer(directory.path, 0, {}, 2);
  EXPECT_EQ(survivor.wait(milliseconds(8000)), 7);
  // Two reductions and two norms came before, this one is in step 3: the norm, or already in its reduction.
  EXPECT_THAT(survivor.output(),
              HasSubstr(std::string("rank 1 on host ") + host +
                        " did not take part in collective 6 of channel 1 (all_reduce norm) "
                        "within 2 s"));
}

TEST(FaultMessages, name_the_ranks_that_never_came) {
  TemporaryDirectory directory;
  Process alone = startPlayer(directory.path, 1, {}, 4);
  EXPECT_EQ(alone.wait(milliseconds(8000)), 7);
  EXPECT_THAT(alone.output(), HasSubstr("ranks 0, 2, 3 of 4 did not come to the rendezvous within 2 s"));
}

TEST(FaultMessages, tell_all_what_only_one_knows) {
  TemporaryDirectory directory;
  std::vector<Process> ranks;
  for (uint32_t rank = 0; rank < kWorld; ++rank)
    ranks.push_back(startPlayer(directory.path, rank, {"--fault", "between:2:exit"}));
  EXPECT_EQ(ranks[2].wait(milliseconds(8000)), 5);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ranks[rank].wait(milliseconds(8000)), 7);
    EXPECT_THAT(ranks[rank].output(), HasSubstr("gave up: data.bin: corrupt"));
  }
}

TEST(FaultMessages, a_rank_that_leaves_early_is_missed) {
  TemporaryDirectory directory;
  std::vector<Process> ranks;
  for (uint32_t rank = 0; rank < 2; ++rank)
    ranks.push_back(startPlayer(directory.path, rank, {"--fault", "between:1:quit"}, 2));
  EXPECT_EQ(ranks[0].wait(milliseconds(8000)), 7);
  EXPECT_THAT(ranks[0].output(), HasSubstr("is gone"));
}

/// A stopped rank that goes on later finds that the job is over.
TEST(FaultMessages, a_rank_that_was_stopped_ends_too) {
  TemporaryDirectory directory;
  Process victim = startPlayer(directory.path, 1, {"--fault", "between:1:stop"}, 2);
  Process survivor = startPlayer(directory.path, 0, {}, 2);
  EXPECT_EQ(survivor.wait(milliseconds(8000)), 7);
  ::kill(victim.id(), SIGCONT);
  EXPECT_EQ(victim.wait(milliseconds(4000)), 7) << victim.output();
}

} // namespace
} // namespace ds::rt
