//===- LaunchTest.cpp - The local launcher, and launchers from outside ------------===//
#include "Processes.h"
#include "Ranks.h"

#include "Launch/JobEnd.h"
#include "Launch/LaunchDecisions.h"

#include <gmock/gmock.h>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;
using test::Process;
using test::TemporaryDirectory;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Launcher, shares_processors_among_ranks) {
  EXPECT_THAT(shareProcessors({0, 1, 4, 5, 6}, 2), ElementsAre(ElementsAre(0, 1, 4), ElementsAre(5, 6)));
  EXPECT_THAT(shareProcessors({3}, 1), ElementsAre(ElementsAre(3)));
  EXPECT_THAT(shareProcessors({2, 3}, 3), ElementsAre(ElementsAre(2), ElementsAre(3), ElementsAre(2)));
  EXPECT_THAT(shareProcessors({}, 2), ElementsAre(ElementsAre(), ElementsAre()));
}

TEST(Launcher, knows_how_many_ranks_come_together) {
  EXPECT_EQ(mostRanks(1), 316u);
  EXPECT_EQ(mostRanks(2), 447u);
  EXPECT_GT(mostRanks(16), 1024u); // all that --ranks takes
}

TEST(Launcher, returns_the_code_of_the_cause) {
  EXPECT_EQ(chooseExitCode({{0, 0}, {0, 0}}), 0);
  EXPECT_EQ(chooseExitCode({{0, 7}, {0, 5}, {0, 7}}), 5); // those that wait for a rank may end before it
  EXPECT_EQ(chooseExitCode({{0, 8}, {0, 5}}), 8);
  EXPECT_EQ(chooseExitCode({{9, 0}, {0, 7}}), 7);
  EXPECT_EQ(chooseExitCode({{9, 0}, {0, 0}}), 7);
  EXPECT_EQ(chooseExitCode({{0, 75}, {0, 75}}), 75);
}

/// The time-out is ten seconds: those that go on after a rank have two more, those that are stopped one.
TEST(Launcher, waits_for_those_that_go_on_after_a_rank) {
  const JobEnd::Time begin{};
  JobEnd end(milliseconds(10000));
  EXPECT_FALSE(end.isEnding());
  EXPECT_FALSE(end.outlivesStopped(begin + milliseconds(99000)));
  EXPECT_FALSE(end.noteEnd({0, 0}, begin));
  EXPECT_TRUE(end.isEnding());
  EXPECT_FALSE(end.outlivesStopped(begin + milliseconds(999)));
  EXPECT_TRUE(end.outlivesStopped(begin + milliseconds(1000)));
  EXPECT_FALSE(end.outlivesAll(begin + milliseconds(11999)));
  EXPECT_TRUE(end.outlivesAll(begin + milliseconds(12000)));
  EXPECT_TRUE(end.noteEnd({0, 5}, begin + milliseconds(1000))); // the first failure: they have its time anew
  EXPECT_FALSE(end.outlivesAll(begin + milliseconds(12999)));
  EXPECT_TRUE(end.outlivesAll(begin + milliseconds(13000)));
}

TEST(Launcher, gives_a_second_after_the_second_request) {
  const JobEnd::Time begin{};
  JobEnd end(milliseconds(10000));
  end.noteRequest(SIGINT, begin);
  EXPECT_FALSE(end.isEnding()); // they may save
  end.noteRequest(SIGTERM, begin + milliseconds(500));
  EXPECT_TRUE(end.isEnding());
  EXPECT_FALSE(end.noteEnd({0, 75}, begin + milliseconds(600))); // leaves the patience as it is
  EXPECT_FALSE(end.outlivesAll(begin + milliseconds(1499)));
  EXPECT_TRUE(end.outlivesAll(begin + milliseconds(1500)));
  EXPECT_EQ(end.result().code, 75);
  EXPECT_TRUE(end.result().asked);
}

/// Those that miss a rank are told of until some cause is known, the first cause, and whoever was killed.
TEST(Launcher, tells_of_the_first_that_fails) {
  JobEnd end(milliseconds(10000));
  EXPECT_TRUE(end.noteEnd({0, 7}, {}));
  EXPECT_FALSE(end.noteEnd({0, 7}, {}));
  EXPECT_TRUE(end.noteEnd({0, 5}, {}));
  EXPECT_FALSE(end.noteEnd({0, 8}, {}));
  EXPECT_TRUE(end.noteEnd({9, 0}, {}));
}

/// A first request ends ranks that catch it with 75; what a signal has ended has the shell's code of it.
TEST(Launcher, returns_the_code_of_the_signal_that_ended_the_job) {
  const std::vector<int> once = {SIGINT}, twice = {SIGUSR1, SIGTERM};
  EXPECT_EQ(chooseExitCode({{0, 75}, {0, 75}}, once), 75);
  EXPECT_EQ(chooseExitCode({{0, 0}, {0, 0}}, twice), 0); // it had trained all there was
  EXPECT_EQ(chooseExitCode({{0, 75}, {SIGTERM, 0}}, twice), 75);
  EXPECT_EQ(chooseExitCode({{0, 6}, {0, 7}}, once), 6); // the last save has failed
  EXPECT_EQ(chooseExitCode({{SIGUSR1, 0}, {0, 7}}, twice), 128 + SIGTERM);
  EXPECT_EQ(chooseExitCode({{0, 7}, {SIGKILL, 0}}, twice), 128 + SIGTERM);
  EXPECT_EQ(chooseExitCode({{SIGINT, 0}, {SIGINT, 0}}, once), 128 + SIGINT);
  EXPECT_EQ(chooseExitCode({{SIGSEGV, 0}, {0, 7}}, once), 7);
}

/// comm-player under a launcher, with its output.
struct Played {
  int code = 0;
  std::string output;
  double seconds = 0;
};
Played play(std::vector<std::string> command, std::vector<std::string> options) {
  TemporaryDirectory directory;
  command.push_back(DS_COMM_PLAYER);
  command.insert(command.end(), options.begin(), options.end());
  Process process(command, {}, directory.path + "/out");
  Played played;
  played.code = process.wait(milliseconds(120000));
  played.output = process.output();
  played.seconds = process.seconds;
  return played;
}

TEST(Launcher, runs_a_job) {
  const Played played = play({}, {"--ranks", "3", "--timeout", "20"});
  EXPECT_EQ(played.code, 0) << played.output;
  EXPECT_EQ(played.output, "done: 18\n"); // 3 ranks * 3 ranks * 2: rank 0's output as it is, and nothing else
}

TEST(Launcher, names_the_signal_that_killed_a_rank) {
  for (const char *transport : {"DS_TRANSPORT=memory", "DS_TRANSPORT=gloo"}) {
    const Played played =
        play({"env", transport}, {"--ranks", "3", "--timeout", "60", "--fault", "gather:1:kill"});
    EXPECT_EQ(played.code, 7);
    EXPECT_THAT(played.output, HasSubstr("ds-run: rank 1 was killed by signal 9 (Killed)"));
    EXPECT_THAT(played.output, HasSubstr("[rank 2] player: error: rank 1 on host"));
    EXPECT_LT(played.seconds, 60) << transport; // at once, not at the time-out
  }
}

TEST(Launcher, ends_a_stopped_rank) {
  const Played played = play({}, {"--ranks", "2", "--timeout", "4", "--fault", "between:1:stop"});
  EXPECT_EQ(played.code, 7);
  EXPECT_THAT(played.output, HasSubstr("rank 1 was killed by signal 9 (Killed), by the launcher"));
}

TEST(Launcher, ends_a_rank_that_stops_when_all_is_done) {
  const Played played = play({}, {"--ranks", "2", "--timeout", "30", "--fault", "end:1:stop"});
  EXPECT_EQ(played.code, 7);
  EXPECT_THAT(played.output, HasSubstr("rank 1 was killed by signal 9 (Killed), by the launcher"));
  EXPECT_THAT(played.output, HasSubstr("done: "));
}

TEST(Launcher, returns_a_rank_s_own_error) {
  const Played played = play({}, {"--ranks", "3", "--timeout", "20", "--fault", "between:2:exit"});
  EXPECT_EQ(played.code, 5);
  EXPECT_THAT(played.output, HasSubstr("ds-run: rank 2 ended with exit code 5"));
}

TEST(Launcher, tells_those_who_wait_that_a_rank_will_not_come) {
  const Played played = play({}, {"--ranks", "3", "--timeout", "60", "--fault", "rendezvous:1:kill"});
  EXPECT_EQ(played.code, 7);
  EXPECT_THAT(played.output, HasSubstr("rank 1 was killed by signal 9 (Killed) before the rendezvous"));
  EXPECT_LT(played.seconds, 60);
}

/// It was there, and was met: only the launcher knows that it will not call.
TEST(Launcher, tells_those_who_connect_that_a_rank_will_not_call) {
  for (const char *how : {"kill", "quit"}) {
    const Played played =
        play({}, {"--ranks", "2", "--timeout", "60", "--fault", "card:1:" + std::string(how)});
    EXPECT_EQ(played.code, 7) << played.output;
    EXPECT_THAT(played.output, HasSubstr(how == std::string("kill") ? "rank 1 was killed by signal 9 (Killed)"
                                                                    : "rank 1 ended with exit code 0"));
    EXPECT_LT(played.seconds, 30) << how;
  }
}

TEST(Launcher, forwards_signals_to_all_ranks) {
  TemporaryDirectory directory;
  Process process({DS_COMM_PLAYER, "--ranks", "2", "--timeout", "20", "--steps", "1000000"}, {},
                  directory.path + "/out");
  std::this_thread::sleep_for(milliseconds(500));
  ::kill(process.id(), SIGTERM);
  EXPECT_EQ(process.wait(milliseconds(60000)), 128 + SIGTERM); // the player does not catch it
  EXPECT_THAT(process.output(), HasSubstr("rank 0 was killed by signal 15"));
  EXPECT_THAT(process.output(), HasSubstr("rank 1 was killed by signal 15"));
}

/// A tool whose plugins are not beside it, as one that was copied alone.
TEST(Plugins, that_are_missing_are_named) {
  TemporaryDirectory directory;
  const std::string player = directory.path + "/bin/comm-player";
  std::filesystem::create_directory(directory.path + "/bin");
  std::filesystem::copy_file(DS_COMM_PLAYER, player);
  Process ranks({player, "--ranks", "2", "--timeout", "5"}, {{"DS_TRANSPORT", "gloo"}},
                directory.path + "/out");
  EXPECT_EQ(ranks.wait(milliseconds(60000)), 9);
  EXPECT_THAT(ranks.output(), HasSubstr("player: error: several ranks need libds-gloo.so: "));
  Process pmix({player}, {{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "job"}}, directory.path + "/out2");
  EXPECT_EQ(pmix.wait(milliseconds(60000)), 9);
  EXPECT_THAT(pmix.output(), HasSubstr("ranks under mpirun or srun need libds-pmix.so: "));
}

bool hasMpirun() { return std::system("mpirun --version >/dev/null 2>&1") == 0; }
const std::vector<std::string> kMpirun = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3"};

TEST(Mpirun, runs_a_job) {
  if (!hasMpirun())
    GTEST_SKIP() << "no mpirun";
  const Played played = play(kMpirun, {"--timeout", "30"});
  EXPECT_EQ(played.code, 0) << played.output;
  EXPECT_THAT(played.output, HasSubstr("done: 18\n"));
}

TEST(Mpirun, fails_when_a_rank_is_stopped) {
  if (!hasMpirun())
    GTEST_SKIP() << "no mpirun";
  const Played played = play(kMpirun, {"--timeout", "5", "--fault", "between:1:stop"});
  EXPECT_EQ(played.code, 7) << played.output;
  EXPECT_THAT(played.output, HasSubstr("rank 1 on host"));
}

TEST(Mpirun, fails_when_a_rank_never_comes) {
  if (!hasMpirun())
    GTEST_SKIP() << "no mpirun";
  const Played played = play(kMpirun, {"--timeout", "5", "--fault", "rendezvous:2:stop"});
  EXPECT_EQ(played.code, 7) << played.output;
  EXPECT_THAT(played.output, HasSubstr("rank 2 of 3 did not come to the rendezvous within 5 s"));
}

} // namespace
} // namespace ds::rt
