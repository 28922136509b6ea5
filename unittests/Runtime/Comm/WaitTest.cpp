//===- WaitTest.cpp - What is told of a wait, and that every wait ends --------------===//
//
// Processes, one of which naps, hangs or is stopped in the middle of a step.
//
//===---------------------------------------------------------------------------===//
#include "Players.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;
using test::kLimit;
using test::Process;
using test::startPlayer;
using test::TemporaryDirectory;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// What three ranks have printed, of which rank 1 does `fault`, and their exit codes; 0 of one that is
/// stopped.
struct Job {
  std::vector<int> codes;
  std::vector<std::string> outputs;
};

void PrintTo(const Job &job, std::ostream *out) {
  for (size_t rank = 0; rank < job.codes.size(); ++rank)
    *out << "rank " << rank << " ended with " << job.codes[rank] << ":\n" << job.outputs[rank] << '\n';
}

Job runJob(const std::string &fault, int timeout, const char *transport) {
  TemporaryDirectory directory;
  std::vector<Process> ranks;
  for (uint32_t rank = 0; rank < 3; ++rank)
    ranks.push_back(startPlayer(directory.path, rank, {"--fault", fault}, 3, timeout, transport));
  Job job;
  for (Process &rank : ranks) {
    const bool isStopped = &rank == &ranks[1] && fault.find("stop") != std::string::npos;
    job.codes.push_back(isStopped ? 0 : rank.wait(kLimit));
    job.outputs.push_back(rank.output());
  }
  return job;
}

/// Ranks answer each other within half a second and say within a second where they stand. A machine under
/// load may hold one up for longer, so a job gets three tries.
void expectJob(const std::string &fault, int timeout, const testing::Matcher<const Job &> &expected,
               const char *transport = "memory") {
  constexpr int kTries = 3;
  Job job = runJob(fault, timeout, transport);
  for (int tries = 1; tries < kTries && !testing::Value(job, expected); ++tries)
    job = runJob(fault, timeout, transport);
  EXPECT_THAT(job, expected) << fault << " on " << transport;
}

testing::Matcher<const Job &> ends(const std::vector<int> &codes) {
  return testing::Field("codes", &Job::codes, codes);
}

testing::Matcher<const Job &> says(const std::vector<uint32_t> &ranks,
                                   const testing::Matcher<std::string> &expected) {
  const auto outputOf = [ranks](const Job &job) {
    std::string output;
    for (const uint32_t rank : ranks)
      output += job.outputs[rank];
    return output;
  };
  return testing::ResultOf(outputOf, expected);
}

TEST(Waits, that_take_long_are_told_of_before_the_time_is_over) {
  const auto tellsOfIt = [](const std::string &rank) {
    return ContainsRegex("rank " + rank +
                         " has been waiting for rank 1 on host .* for [0-9.]* s in collective 6 of channel 1 "
                         ".all_reduce norm.: it is at work; the time-out is 10 s");
  };
  for (const char *transport : {"memory", "gloo"})
    expectJob("between:1:nap", /*timeout=*/10,
              AllOf(ends({0, 0, 0}), says({0}, tellsOfIt("0")), says({2}, tellsOfIt("2")),
                    says({1}, Not(HasSubstr("has been waiting")))),
              transport);
}

TEST(Waits, that_are_short_are_not_told_of) {
  expectJob("between:1:nap", /*timeout=*/60, says({0, 1, 2}, Not(HasSubstr("has been waiting"))));
}

TEST(Waits, for_a_stopped_rank_say_that_it_does_not_answer) {
  const auto tellsOfIt = [](const std::string &rank) {
    return AllOf(ContainsRegex("has been waiting for rank 1 on host .*: it does not answer"),
                 HasSubstr("stacks of rank " + rank), HasSubstr("TransportCommunicator::allReduce"));
  };
  expectJob("between:1:stop", /*timeout=*/4,
            AllOf(ends({7, 0, 7}), says({0}, tellsOfIt("0")), says({2}, tellsOfIt("2")),
                  says({0, 2}, ContainsRegex("rank 1 on host .* does not answer: stopped"))));
}

/// One that is alive says where it hangs, and ends though its thread never does.
TEST(Waits, for_a_rank_that_hangs_show_where) {
  for (const char *transport : {"memory", "gloo"})
    expectJob("between:1:hang", /*timeout=*/3,
              AllOf(ends({7, 7, 7}),
                    says({1}, AllOf(HasSubstr("stacks of rank 1"), HasSubstr("sleep"),
                                    HasSubstr("rank 1 has not ended within 5 s of the failure of its job"))),
                    says({0, 2}, Not(HasSubstr("does not answer")))),
              transport);
}

TEST(Waits, for_an_exchange_name_all_who_are_late) {
  expectJob("exchange:1:nap", /*timeout=*/12,
            AllOf(ends({0, 0, 0}),
                  says({0}, ContainsRegex("rank 0 has been waiting for rank 1 on host .* for 3 s in exchange "
                                          "'plan hashes'; the time-out is 12 s"))));
}

/// Whether all children of a process have ended, though it has not asked for how.
bool allEnded(pid_t parent) {
  std::ifstream list("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  for (pid_t child = 0; list >> child;) {
    std::ifstream file("/proc/" + std::to_string(child) + "/stat");
    std::string text;
    std::getline(file, text);
    if (text.substr(text.rfind(')') + 2, 1) != "Z")
      return false;
  }
  return true;
}

/// What a rank prints fills the pipe to its launcher, and the rank stands still; it ends all the same.
TEST(Launcher, that_is_stopped_keeps_no_rank) {
  TemporaryDirectory directory;
  Process launcher({DS_COMM_PLAYER, "--ranks", "3", "--timeout", "3", "--fault", "between:1:deafen"}, {},
                   directory.path + "/out");
  int status = 0;
  ASSERT_EQ(::waitpid(launcher.id(), &status, WUNTRACED), launcher.id());
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_FALSE(allEnded(launcher.id()));
  for (int i = 0; i < 600 && !allEnded(launcher.id()); ++i)
    std::this_thread::sleep_for(milliseconds(50));
  EXPECT_TRUE(allEnded(launcher.id()));
  ::kill(launcher.id(), SIGCONT);
  EXPECT_EQ(launcher.wait(kLimit), 7);
}

} // namespace
} // namespace ds::rt
