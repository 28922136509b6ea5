//===- RunSignalsTest.cpp - Runs that are asked to end --------------------------===//
//
// Signals at every phase of a run: on one rank, under ds-run's launcher, under mpirun. Where a phase must be
// met, a kernel makes it last.
//
//===---------------------------------------------------------------------------===//
#include "RankedRegression.h"
#include "RunFixture.h"

#include <set>
#include <sys/resource.h>

namespace ds::rt {
namespace {

using namespace test;
using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
const std::string kForever = "--data data.safetensors --steps 100000000 --timeout 60 ";
const std::string kSave = "--save-weights w.safetensors ";

std::vector<std::string> split(const std::string &text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

std::string nameOf(int signal) { return std::string("SIG") + ::sigabbrev_np(signal); }

/// The regression, where a step takes `stepMs` longer and a batch of evaluation `evalMs`, with a buffer of
/// `ballast` elements that is saved.
Program slowRegression(int64_t stepMs, int64_t evalMs, int64_t ballast = 1) {
  ProgramBuilder b;
  const uint32_t x = b.input("x", {kRows, kIn}), t = b.input("t", {kRows, kOut});
  const uint32_t w = b.state("w", {kOut, kIn}, {Init::Kind::Normal, 0.0, 0.5});
  b.state("ballast", {ballast}, {Init::Kind::Constant, 3.0, 0}, Role::Buffer);
  const uint32_t loss = b.output("loss"), evalLoss = b.output("eval_loss");
  const uint32_t workspace = keepWorkspace(b, 1 << 16);
  const uint32_t y = b.keep({kRows, kOut}), d = b.keep({kRows, kOut});
  auto forward = [&](uint32_t to, int64_t ms) {
    b.launch("ds_sleep", 1, {to}, {ms});
    b.library(LibraryFn::Matmul, {x, w, y}, {0, 1, 0, 0}).workspace = workspace;
    b.launch("ds_subtract", kRows * kOut, {y, t, d});
    b.launch("ds_mean_square", 1, {d, to}, {kRows * kOut});
  };
  forward(loss, stepMs);
  b.segment();
  forward(evalLoss, evalMs);
  b.program.stages[0].evaluation = static_cast<int32_t>(b.segment({Work::Evaluation}, "evaluation"));
  b.program.microBatch = kRows;
  b.program.image = readBytes(DS_TEST_KERNELS);
  return b.program;
}

class RunSignalsTest : public RunFixture {
protected:
  RunSignalsTest() {
    write(regression());
    write(RankedRegression(2).b.program, "p2.dsx");
  }
  pid_t begin(const std::string &options) { return start(split(options)); }
  /// The ranks that launcher `child` has started, by their order.
  std::vector<pid_t> ranksOf(pid_t child, size_t count) {
    const std::string list =
        "/proc/" + std::to_string(child) + "/task/" + std::to_string(child) + "/children";
    std::vector<pid_t> ranks;
    EXPECT_TRUE(waitUntil([&] {
      std::ifstream file(list);
      ranks.assign(std::istream_iterator<pid_t>(file), {});
      return ranks.size() == count;
    }));
    return ranks;
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto &entry : fs::directory_iterator(directory))
      names.insert(entry.path().filename());
    return names;
  }
};

TEST_F(RunSignalsTest, AnyOfThemEndsTheStepAndSaves) {
  for (int signal : kSignals) {
    fs::remove(at("out"));
    fs::remove(at("w.safetensors"));
    const pid_t child = begin("p.dsx " + kForever + kSave);
    waitForStep(at("out"));
    ::kill(child, signal);
    const Outcome outcome = finish(child);
    EXPECT_EQ(outcome.code, 75) << nameOf(signal) << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, ContainsRegex("interrupted after step [0-9]+ by " + nameOf(signal)));
    EXPECT_THAT(outcome.err, HasSubstr("the weights are in 'w.safetensors'"));
    EXPECT_TRUE(SafeTensorsFile::open(at("w.safetensors"))) << nameOf(signal);
  }
}

TEST_F(RunSignalsTest, WithoutSavingNothingIsKept) {
  const pid_t child = begin("p.dsx " + kForever);
  waitForStep(at("out"));
  ::kill(child, SIGUSR1);
  const Outcome outcome = finish(child);
  EXPECT_EQ(outcome.code, 75);
  EXPECT_THAT(outcome.err, HasSubstr("; nothing was kept\n  hint: give --save DIR"));
}

TEST_F(RunSignalsTest, TheSecondEndsAtOnce) {
  write(slowRegression(/*stepMs=*/600000, 0));
  for (auto [first, second] : {std::pair(SIGUSR1, SIGTERM), {SIGTERM, SIGINT}, {SIGHUP, SIGUSR2}}) {
    fs::remove(at("out"));
    const pid_t child = begin("p.dsx " + kForever + kSave);
    ASSERT_TRUE(waitUntil([&] { return hasText(at("out"), "run  "); }));
    ::kill(child, first);
    ::kill(child, second);
    EXPECT_THAT(finish(child).code, AnyOf(128 + first, 128 + second)); // whichever is delivered last
    EXPECT_FALSE(fs::exists(at("w.safetensors")));
  }
}

TEST_F(RunSignalsTest, NohupKeepsAHangUpAway) {
  inChild = [] { ::signal(SIGHUP, SIG_IGN); };
  for (const char *program : {"p.dsx ", "p2.dsx --ranks 2 "}) {
    fs::remove(at("out"));
    const pid_t child = begin(program + kForever);
    waitForStep(at("out"));
    ::kill(child, SIGHUP);
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // more would not make it fail less often
    ::kill(child, SIGTERM);
    const Outcome outcome = finish(child);
    EXPECT_EQ(outcome.code, 75) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(" by SIGTERM; nothing was kept"));
  }
}

/// A signal that comes while the program is loaded waits for the handler: it is blocked as by a parent that
/// blocks it.
TEST_F(RunSignalsTest, BeforeTheFirstStepNothingIsTrained) {
  inChild = [] {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    ::raise(SIGUSR2);
  };
  const Outcome outcome = finish(begin("p.dsx " + kForever));
  EXPECT_EQ(outcome.code, 75) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("interrupted before the first step by SIGUSR2"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("step 1/")));
}

TEST_F(RunSignalsTest, AnEvaluationIsCutShort) {
  write(slowRegression(0, /*evalMs=*/2000)); // 8 batches
  const pid_t child =
      begin("p.dsx --data data.safetensors --steps 5 --eval-data data.safetensors --eval-every 1 "
            "--log-jsonl log.jsonl " +
            kSave);
  ASSERT_TRUE(waitUntil([&] { return hasText(at("out"), "run  "); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(500)); // the first step takes no time
  ::kill(child, SIGTERM);
  const Outcome outcome = finish(child);
  EXPECT_EQ(outcome.code, 75) << outcome.err;
  EXPECT_THAT(outcome.err, AnyOf(HasSubstr("after step 1 by"), HasSubstr("before the first step")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("eval_loss")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("step 2/")));
  EXPECT_TRUE(SafeTensorsFile::open(at("w.safetensors")));
}

/// Whenever the second request comes, there is a whole file or none, and nothing half-done beside it.
TEST_F(RunSignalsTest, NothingHalfIsLeftOfASave) {
  write(slowRegression(0, 0, /*ballast=*/4 << 20));
  std::set<std::string> before = files();
  before.insert({"out", "err"});
  int killed = 0;
  for (int delay = 0; delay < 60; delay += 4) {
    fs::remove(at("out"));
    fs::remove(at("w.safetensors"));
    const pid_t child = begin("p.dsx " + kForever + kSave);
    waitForStep(at("out"));
    ::kill(child, SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    ::kill(child, SIGINT);
    const Outcome outcome = finish(child);
    EXPECT_THAT(outcome.code, AnyOf(75, 128 + SIGTERM, 128 + SIGINT)) << outcome.err;
    killed += outcome.code != 75;
    std::set<std::string> after = files();
    if (after.erase("w.safetensors")) {
      EXPECT_TRUE(SafeTensorsFile::open(at("w.safetensors"))) << delay;
    }
    EXPECT_EQ(after, before) << delay;
  }
  EXPECT_GT(killed, 0);
}

TEST_F(RunSignalsTest, TheLauncherPassesAnyOfThemOn) {
  for (int signal : kSignals) {
    fs::remove(at("out"));
    fs::remove(at("w.safetensors"));
    const pid_t child = begin("p2.dsx --ranks 2 " + kForever + kSave);
    waitForStep(at("out"));
    ::kill(child, signal);
    const Outcome outcome = finish(child);
    EXPECT_EQ(outcome.code, 75) << nameOf(signal) << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, ContainsRegex("interrupted after step [0-9]+ by " + nameOf(signal)));
    EXPECT_TRUE(SafeTensorsFile::open(at("w.safetensors"))) << nameOf(signal);
  }
}

/// The folder of the rendezvous is there as soon as the launcher listens, and before any rank does.
TEST_F(RunSignalsTest, TheLauncherLosesNoSignalWhileRanksStart) {
  fs::create_directory(at("tmp"));
  for (int i = 0; i < 20; ++i) {
    const std::vector<std::string> arguments = split("p2.dsx --ranks 2 " + kForever + kSave);
    const pid_t child = start(arguments, "", {"TMPDIR=" + at("tmp")});
    ASSERT_TRUE(waitUntil([&] { return !fs::is_empty(at("tmp")); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(i));
    ::kill(child, kSignals[i % 5]);
    const Outcome outcome = finish(child);
    EXPECT_EQ(outcome.code, 75) << outcome.err;
    EXPECT_TRUE(fs::is_empty(at("tmp")));
  }
}

/// Slurm and systemd signal every process of a job: the launcher, and the ranks, which then get it twice.
TEST_F(RunSignalsTest, WhoSignalsEveryProcessAsksOnce) {
  for (int i = 0; i < 10; ++i) {
    fs::remove(at("out"));
    const pid_t child = begin("p2.dsx --ranks 2 " + kForever + kSave);
    waitForStep(at("out"));
    const std::vector<pid_t> ranks = ranksOf(child, 2);
    ::kill(child, SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 3));
    for (pid_t rank : ranks)
      ::kill(rank, SIGTERM);
    const Outcome outcome = finish(child);
    EXPECT_EQ(outcome.code, 75) << outcome.err;
  }
}

TEST_F(RunSignalsTest, TheSecondByTheLauncherEndsAllAtOnce) {
  Program slow = slowRegression(/*stepMs=*/600000, 0);
  slow.world = 2;
  slow.mesh = {{"dp", 2}};
  slow.dataAxes = {0};
  write(slow);
  const pid_t child = begin("p.dsx --ranks 2 " + kForever + kSave);
  ASSERT_TRUE(waitUntil([&] { return hasText(at("out"), "run  "); }));
  ::kill(child, SIGUSR1);
  ::kill(child, SIGTERM);
  const Outcome outcome = finish(child);
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(outcome.err, HasSubstr("rank 0 was killed by signal "));
  EXPECT_FALSE(fs::exists(at("w.safetensors")));
}

TEST_F(RunSignalsTest, MpirunPassesSlurmsNoticesOn) {
  if (std::system("command -v mpirun > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "no mpirun";
  for (int signal : {SIGUSR1, SIGUSR2}) {
    fs::remove(at("out"));
    fs::remove(at("w.safetensors"));
    binary = "/usr/bin/env";
    const pid_t child =
        begin("mpirun --allow-run-as-root --oversubscribe -n 2 " DS_RUN " p2.dsx " + kForever + kSave);
    waitForStep(at("out"));
    ::kill(child, signal);
    const Outcome outcome = finish(child);
    EXPECT_EQ(outcome.code, 75) << outcome.err;
    EXPECT_THAT(outcome.err, ContainsRegex("interrupted after step [0-9]+ by " + nameOf(signal)));
    EXPECT_TRUE(SafeTensorsFile::open(at("w.safetensors"))) << nameOf(signal);
  }
}

} // namespace
} // namespace ds::rt
