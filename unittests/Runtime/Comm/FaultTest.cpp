//===- FaultTest.cpp - Ranks that die, stop, or never come -----------------------===//
//
// Processes without a launcher, so that nobody but the ranks themselves can end the job: every survivor must
// exit with code 7 within the time-out and name the rank. DS_FAULT_REPEATS says how often each case runs.
//
//===---------------------------------------------------------------------------===//
#include "Players.h"

#include <gmock/gmock.h>

#include <memory>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;
using test::kLimit;
using test::kSilence;
using test::kWorld;
using test::Process;
using test::startPlayer;
using test::TemporaryDirectory;
using testing::HasSubstr;

constexpr uint32_t kVictim = 1;
/// Where a lost rank is noticed at once the time-out may be as long as a slow machine likes.
constexpr int kLong = 60;

int repeats() {
  const char *text = std::getenv("DS_FAULT_REPEATS");
  return text ? std::stoi(text) : 1;
}

/// A job of which a rank falls out.
struct Job {
  std::string name;
  uint32_t victim;
  TemporaryDirectory directory;
  std::vector<std::pair<uint32_t, Process>> ranks; ///< that were started, by their numbers

  /// Every survivor ends with code 7 `within` so many seconds and names the victim.
  void expectEnd(double within = kSilence + 30) {
    for (auto &[rank, process] : ranks) {
      if (rank == victim)
        continue;
      EXPECT_EQ(process.wait(kLimit), 7) << name << ", rank " << rank << ": " << process.output();
      EXPECT_THAT(process.output(), HasSubstr("rank " + std::to_string(victim))) << name;
      EXPECT_LT(process.seconds, within) << name;
    }
  }
};

/// A phase of a step, and what happens there to the victim; "never" starts no victim.
struct Case {
  const char *phase, *how, *transport;
};

std::unique_ptr<Job> start(const Case &fault, int timeout) {
  auto job = std::make_unique<Job>();
  job->victim = kVictim;
  job->name = std::string(fault.phase) + ":" + std::to_string(kVictim) + ":" + fault.how;
  const bool never = fault.how == std::string("never");
  for (uint32_t rank = 0; rank < kWorld; ++rank)
    if (rank != kVictim || !never)
      job->ranks.emplace_back(rank, startPlayer(job->directory.path, rank, {"--fault", job->name}, kWorld,
                                                timeout, fault.transport));
  return job;
}

TEST(Faults, of_a_rank_that_is_lost_end_all_survivors_at_once) {
  for (int repeat = 0; repeat < repeats(); ++repeat)
    for (const char *phase : {"exchange", "gather", "reduce", "between"})
      for (const char *transport : {"memory", "gloo"})
        start({phase, "kill", transport}, kLong)->expectEnd(kLong);
}

/// All at the same time, for they mostly sleep. Without a launcher nobody sees a rank die that has not come.
TEST(Faults, of_a_rank_that_falls_silent_end_all_survivors_within_the_timeout) {
  for (int repeat = 0; repeat < repeats(); ++repeat) {
    std::vector<std::unique_ptr<Job>> jobs;
    for (const char *how : {"kill", "stop", "never"})
      jobs.push_back(start({"rendezvous", how, "memory"}, kSilence));
    for (const char *phase : {"exchange", "gather", "reduce", "between"})
      for (const char *transport : {"memory", "gloo"})
        jobs.push_back(start({phase, "stop", transport}, kSilence));
    for (const auto &job : jobs)
      job->expectEnd();
  }
}

/// A job of four ranks as two by two.
std::unique_ptr<Job> startGrid(const Case &fault, int timeout) {
  auto job = std::make_unique<Job>();
  job->victim = kVictim;
  job->name = std::string(fault.phase) + ":" + std::to_string(kVictim) + ":" + fault.how;
  for (uint32_t rank = 0; rank < 4; ++rank)
    job->ranks.emplace_back(rank,
                            startPlayer(job->directory.path, rank, {"--grid", "yes", "--fault", job->name}, 4,
                                        timeout, fault.transport));
  return job;
}

/// Rank 2 has no group with rank 1, which falls out, and learns of it all the same.
TEST(Faults, in_a_group_end_the_ranks_of_all_groups) {
  std::vector<std::unique_ptr<Job>> silent;
  for (const char *transport : {"memory", "gloo"})
    for (const char *phase : {"gather", "reduce", "between"}) {
      startGrid({phase, "kill", transport}, kLong)->expectEnd(kLong);
      silent.push_back(startGrid({phase, "stop", transport}, kSilence));
    }
  for (const auto &job : silent)
    job->expectEnd();
}

/// Kills or stops a rank from outside, at a time that depends on nothing in it.
void bringDownAtAnyTime(int signal, int timeout) {
  for (int repeat = 0; repeat < repeats(); ++repeat) {
    std::vector<std::unique_ptr<Job>> jobs;
    for (uint32_t victim = 0; victim < kWorld; ++victim) {
      Job &job = *jobs.emplace_back(std::make_unique<Job>());
      job.name = "signal " + std::to_string(signal);
      job.victim = victim;
      for (uint32_t rank = 0; rank < kWorld; ++rank)
        job.ranks.emplace_back(rank, startPlayer(job.directory.path, rank, {"--steps", "100000"}, kWorld,
                                                 timeout, victim % 2 ? "gloo" : "memory"));
    }
    for (uint32_t victim = 0; victim < kWorld; ++victim) {
      std::this_thread::sleep_for(milliseconds(50 + 173 * (repeat + victim) % 700));
      ::kill(jobs[victim]->ranks[victim].second.id(), signal);
    }
    for (const auto &job : jobs)
      job->expectEnd();
  }
}

TEST(FaultsAtAnyTime, killed) { bringDownAtAnyTime(SIGKILL, 10); }
TEST(FaultsAtAnyTime, stopped) { bringDownAtAnyTime(SIGSTOP, kSilence); }

TEST(FaultMessages, name_rank_host_and_collective) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  TemporaryDirectory directory;
  Process victim = startPlayer(directory.path, 1, {"--fault", "between:1:stop"}, 2);
  Process survivor = startPlayer(directory.path, 0, {}, 2);
  EXPECT_EQ(survivor.wait(kLimit), 7);
  // Two reductions and two norms came before, this one is in step 3: the norm, or already in its reduction.
  EXPECT_THAT(survivor.output(),
              HasSubstr(std::string("rank 1 on host ") + host +
                        " did not take part in collective 6 of channel 1 (all_reduce norm) "
                        "within 4 s"));
}

TEST(FaultMessages, name_the_ranks_that_never_came) {
  TemporaryDirectory directory;
  Process alone = startPlayer(directory.path, 1, {}, 4);
  EXPECT_EQ(alone.wait(kLimit), 7);
  EXPECT_THAT(alone.output(), HasSubstr("ranks 0, 2, 3 of 4 did not come to the rendezvous within 4 s"));
}

TEST(FaultMessages, tell_all_what_only_one_knows) {
  TemporaryDirectory directory;
  std::vector<Process> ranks;
  for (uint32_t rank = 0; rank < kWorld; ++rank)
    ranks.push_back(startPlayer(directory.path, rank, {"--fault", "between:2:exit"}));
  EXPECT_EQ(ranks[2].wait(kLimit), 5);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ranks[rank].wait(kLimit), 7);
    EXPECT_THAT(ranks[rank].output(), HasSubstr("gave up: data.bin: corrupt"));
  }
}

TEST(FaultMessages, a_rank_that_leaves_early_is_missed) {
  TemporaryDirectory directory;
  std::vector<Process> ranks;
  for (uint32_t rank = 0; rank < 2; ++rank)
    ranks.push_back(startPlayer(directory.path, rank, {"--fault", "between:1:quit"}, 2));
  EXPECT_EQ(ranks[0].wait(kLimit), 7);
  EXPECT_THAT(ranks[0].output(), HasSubstr("is gone"));
}

/// A stopped rank that goes on later finds that the job is over.
TEST(FaultMessages, a_rank_that_was_stopped_ends_too) {
  TemporaryDirectory directory;
  Process victim = startPlayer(directory.path, 1, {"--fault", "between:1:stop"}, 2);
  Process survivor = startPlayer(directory.path, 0, {}, 2);
  EXPECT_EQ(survivor.wait(kLimit), 7);
  ::kill(victim.id(), SIGCONT);
  EXPECT_EQ(victim.wait(kLimit), 7) << victim.output();
}

} // namespace
} // namespace ds::rt
