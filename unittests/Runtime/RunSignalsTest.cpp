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

/// When the first of two signals comes.
enum class Moment {
  Start, ///< while processes are started, before or after they listen
  Step,  ///< within a step that does not end
  Steps, ///< while steps go by
  Save,  ///< when a checkpoint is being written
};

struct Pair {
  Moment moment;
  int first, second;
};
constexpr Pair kPairs[] = {
    {Moment::Start, SIGINT, SIGINT},  {Moment::Start, SIGTERM, SIGINT}, {Moment::Step, SIGINT, SIGINT},
    {Moment::Step, SIGTERM, SIGTERM}, {Moment::Step, SIGUSR1, SIGTERM}, {Moment::Step, SIGHUP, SIGUSR2},
    {Moment::Steps, SIGINT, SIGINT},  {Moment::Steps, SIGTERM, SIGINT}, {Moment::Save, SIGTERM, SIGTERM},
    {Moment::Save, SIGINT, SIGTERM},
};

/// One row of the table: ranks, whether they would be started again, and a pair of signals.
class SignalPairsTest : public RunSignalsTest {
protected:
  void run(uint32_t ranks, bool restarts, const Pair &pair) {
    const bool isSlow = pair.moment == Moment::Step;
    Program program = slowRegression(isSlow ? 600000 : 1, 0, /*ballast=*/isSlow ? 1 : 4 << 20);
    program.world = ranks;
    if (ranks > 1) {
      program.mesh = {{"dp", ranks}};
      program.dataAxes = {0};
    }
    write(program);
    for (const char *name : {"out", "err", "s"})
      fs::remove_all(at(name));
    const pid_t child = begin("p.dsx " + kForever + "--save s --save-every 5 --ranks " +
                              std::to_string(ranks) + (restarts ? " --restarts 5" : ""));
    meet(pair.moment);
    ::kill(child, pair.first);
    // Who presses a key once more does so again when nothing happens: two that come at once are one.
    siginfo_t ended = {};
    while (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT | WNOHANG) == 0 &&
           ended.si_pid == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      ::kill(child, pair.second);
    }
    const Outcome outcome = finish(child);
    // The head of a run is printed before its first step: a signal may still be ahead of that.
    if (isSlow && outcome.err.find("interrupted before the first step") == std::string::npos)
      EXPECT_THAT(outcome.code, AnyOf(128 + pair.first, 128 + pair.second)) << outcome.err;
    else
      EXPECT_THAT(outcome.code, AnyOf(75, 128 + pair.first, 128 + pair.second)) << outcome.err;
    EXPECT_THAT(outcome.err, Not(HasSubstr("starts again")));
  }
  void meet(Moment moment) {
    if (moment == Moment::Start)
      std::this_thread::sleep_for(std::chrono::milliseconds(5 * (next++ % 8)));
    else if (moment == Moment::Step)
      EXPECT_TRUE(waitUntil([&] { return hasText(at("out"), "run  "); }));
    else if (moment == Moment::Steps)
      waitForStep(at("out"));
    else
      EXPECT_TRUE(waitUntil([&] { return fs::exists(at("s")) && !fs::is_empty(at("s")); }));
  }
  unsigned next = 0;
};

/// Nothing is started again, nothing goes on, and the code is that of the request or of the signal.
TEST_F(SignalPairsTest, EndTheJobWhenever) {
  for (const uint32_t ranks : {1u, 2u})
    for (const bool restarts : {false, true})
      for (const Pair &pair : kPairs) {
        SCOPED_TRACE(std::to_string(ranks) + (restarts ? " ranks with" : " ranks without") +
                     " restarts, moment " + std::to_string(static_cast<int>(pair.moment)) + ": " +
                     nameOf(pair.first) + ", " + nameOf(pair.second));
        run(ranks, restarts, pair);
      }
}

TEST_F(RunSignalsTest, NohupKeepsAHangUpAway) {
  inChild = [] { ::signal(SIGHUP, SIG_IGN); };
  for (const char *program : {"p.dsx ", "p2.dsx --ranks 2 ", "p2.dsx --ranks 2 --restarts 2 --save s "}) {
    fs::remove(at("out"));
    const pid_t child = begin(program + kForever);
    waitForStep(at("out"));
    ::kill(child, SIGHUP);
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // more would not make it fail less often
    ::kill(child, SIGTERM);
    const Outcome outcome = finish(child);
    EXPECT_EQ(outcome.code, 75) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(" by SIGTERM; "));
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
