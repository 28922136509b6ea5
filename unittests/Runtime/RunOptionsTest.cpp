//===- RunOptionsTest.cpp - Options of a run that meet --------------------------------===//
//
// Saves, evaluations, resumption, restarts, signals, ranks and directories each have tests of their own. Here
// every two of their values meet once, and what is asked is what must exist afterwards: each checkpoint that
// was due, each step once in the log, each evaluation. What was printed does not count.
//
//===---------------------------------------------------------------------------===//

#include "Pairwise.h"
#include "RankedRegression.h"

#include "ds/Runtime/Checkpoint/Checkpoint.h"
#include "ds/Runtime/Checkpoint/Store.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <set>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;

namespace {

enum class Begin { New, AutoOfNone, Auto, OfAnother, AutoOfAll };
enum class End { Steps, Signal, Kill };

/// Steps of the run that others go on from, and of one that nothing ends before.
constexpr uint64_t kBefore = 3, kSteps = 7;
constexpr const char *kForever = "100000000";

/// One run, by the values of its options.
struct Trial {
  explicit Trial(const Choice &choice)
      : ranks(choice[0] + 1), saveEvery(std::array{0, 2, 3}[choice[1]]), sync(choice[2] == 1),
        evaluates(choice[3] > 0), evalEvery(std::array{0, 0, 1, 2}[choice[3]]),
        begin(static_cast<Begin>(choice[4])), end(static_cast<End>(choice[5])),
        keep(std::array{2, 1000000}[choice[6]]), best(std::array{0, 2}[choice[7]]),
        every(std::array{0, 4}[choice[8]]) {}
  static std::vector<size_t> counts() { return {2, 3, 2, 4, 5, 3, 2, 2, 2}; }
  /// The best are those of the least held-out losses, so there must be some.
  uint32_t keepBest() const { return evaluates ? best : 0; }

  bool goesOn() const { return begin != Begin::New && begin != Begin::AutoOfNone; }
  /// Steps that the run finds done: of AutoOfAll as many as are asked for.
  uint64_t first() const { return begin == Begin::AutoOfAll ? kSteps : goesOn() ? kBefore : 0; }
  std::string spell() const {
    return fmt::format(
        "ranks {}, save every {}, {}, evaluate {} every {}, begin {}, end {}, keep {}, best {}, every {}",
        ranks, saveEvery, sync ? "sync" : "async", evaluates, evalEvery, static_cast<int>(begin),
        static_cast<int>(end), keep, keepBest(), every);
  }

  size_t ranks;
  uint64_t saveEvery; ///< 0: the last step alone
  bool sync, evaluates;
  uint64_t evalEvery; ///< 0: after the last step, if at all
  Begin begin;
  End end;
  uint64_t keep;
  uint32_t best;  ///< asked for where the run evaluates
  uint64_t every; ///< 0: not asked for
};

class RunOptionsTest : public RunFixture {
protected:
  /// In memory where that can be had: many runs sync their files.
  RunOptionsTest() : RunFixture(::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") {}

  std::vector<std::string> command(const Trial &trial) const {
    std::vector<std::string> words = {"p.dsx",
                                      "--data",
                                      "data.safetensors",
                                      "--log-jsonl",
                                      "log.jsonl",
                                      "--ranks",
                                      std::to_string(trial.ranks),
                                      "--save",
                                      "s",
                                      "--save-mode",
                                      trial.sync ? "sync" : "async",
                                      "--keep",
                                      std::to_string(trial.keep),
                                      "--steps",
                                      trial.end == End::Steps ? std::to_string(kSteps) : kForever};
    const auto add = [&](std::vector<std::string> more) {
      words.insert(words.end(), more.begin(), more.end());
    };
    if (trial.saveEvery > 0)
      add({"--save-every", std::to_string(trial.saveEvery)});
    if (trial.evaluates)
      add({"--eval-data", "data.safetensors"});
    if (trial.evalEvery > 0)
      add({"--eval-every", std::to_string(trial.evalEvery)});
    if (trial.keepBest() > 0)
      add({"--keep-best", std::to_string(trial.best)});
    if (trial.every > 0)
      add({"--keep-every", std::to_string(trial.every)});
    if (trial.begin != Begin::New)
      add({"--resume", trial.begin == Begin::OfAnother ? "before" : "auto"});
    if (trial.end == End::Kill)
      add({"--restarts", "3"});
    return words;
  }
  size_t lines() { return fs::exists(at("log.jsonl")) ? readLines().size() : 0; }
  /// The whole lines of the log, of a run that may be writing to it.
  std::vector<nlohmann::json> readLines() {
    const std::vector<uint8_t> bytes = readBytes(at("log.jsonl"));
    std::string text(bytes.begin(), bytes.end());
    text.erase(text.find_last_of('\n') + 1);
    std::istringstream stream(text);
    std::vector<nlohmann::json> all;
    for (std::string line; std::getline(stream, line);)
      all.push_back(nlohmann::json::parse(line));
    return all;
  }
  static pid_t firstRankOf(pid_t launcher) {
    std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", launcher));
    pid_t rank = 0;
    file >> rank;
    return rank;
  }
  /// Runs to the end that the trial asks for.
  Outcome runTo(const Trial &trial) {
    const pid_t child = start(command(trial));
    if (trial.end == End::Steps)
      return finish(child);
    const uint64_t some = trial.first() + 4;
    EXPECT_TRUE(waitUntil([&] { return lines() >= some; }));
    if (trial.end == End::Kill) {
      ::kill(firstRankOf(child), SIGKILL);
      EXPECT_TRUE(waitUntil([&] { return hasText(at("err"), "starts again in"); }));
      const size_t before = lines();
      EXPECT_TRUE(waitUntil([&] { return lines() != before; }));
      EXPECT_TRUE(waitUntil([&] { return lines() >= some; }));
    }
    ::kill(child, SIGTERM);
    return finish(child);
  }

  /// What stays of `saved`, by step with its held-out loss, if any.
  static void prune(const Trial &trial, std::map<uint64_t, std::optional<double>> &saved) {
    std::set<std::pair<double, uint64_t>> losses;
    for (const auto &[step, loss] : saved)
      if (loss)
        losses.emplace(*loss, step);
    std::set<uint64_t> best;
    for (const auto &[loss, step] : losses)
      if (best.size() < trial.keepBest())
        best.insert(step);
    uint64_t newer = saved.size();
    std::erase_if(saved, [&](const auto &each) {
      return newer-- > trial.keep && !best.contains(each.first) &&
             (trial.every == 0 || each.first % trial.every != 0);
    });
  }
  /// What must be in the directory of saves when the run has ended with the last line of its log.
  static std::set<uint64_t> dueSaves(const Trial &trial, const std::vector<nlohmann::json> &log) {
    std::map<uint64_t, std::optional<double>> saved;
    std::multiset<double> best; // that were saved
    if (trial.goesOn() && trial.begin != Begin::OfAnother)
      saved[trial.first()];
    for (const nlohmann::json &line : log) {
      const uint64_t step = line["step"];
      if (step <= trial.first())
        continue;
      std::optional<double> loss;
      if (line.contains("eval_loss"))
        loss = line["eval_loss"].get<double>();
      const bool isBest =
          loss && trial.keepBest() > 0 && (best.size() < trial.keepBest() || *loss < *std::prev(best.end()));
      if (line != log.back() && !isBest && (trial.saveEvery == 0 || step % trial.saveEvery != 0) &&
          (trial.every == 0 || step % trial.every != 0))
        continue;
      saved[step] = loss;
      prune(trial, saved);
      if (loss)
        best.insert(*loss);
      if (best.size() > trial.keepBest())
        best.erase(std::prev(best.end()));
    }
    std::set<uint64_t> steps;
    for (const auto &[step, loss] : saved)
      steps.insert(step);
    return steps;
  }
  std::set<uint64_t> savesIn(const std::string &name) {
    std::set<uint64_t> steps;
    const Result<StoreListing> listing = listCheckpoints(at(name));
    EXPECT_TRUE(listing && listing->leftovers.empty());
    for (const StoredCheckpoint &each : listing->checkpoints) {
      const Result<Checkpoint> opened = Checkpoint::open(at(name) + "/" + each.name);
      EXPECT_TRUE(opened) << opened.error().message;
      steps.insert(each.step);
    }
    return steps;
  }
  void expectLog(const Trial &trial, const std::vector<nlohmann::json> &all) {
    for (size_t i = 0; i < all.size(); ++i) {
      const uint64_t step = all[i]["step"];
      EXPECT_EQ(step, i + 1) << "a step is not there, or twice";
      if (step <= trial.first() || (i + 1 == all.size() && trial.end != End::Steps))
        continue; // of the run before; the evaluation may have been cut short
      const bool isLast = i + 1 == all.size();
      const bool isDue = trial.evaluates && (isLast || (trial.evalEvery > 0 && step % trial.evalEvery == 0));
      EXPECT_EQ(all[i].contains("eval_loss"), isDue) << "step " << step;
    }
  }
  void expectAllThatIsDue(const Trial &trial) {
    for (const char *name : {"s", "before", "log.jsonl"})
      fs::remove_all(at(name));
    write(trial.ranks == 1 ? regression() : RankedRegression(2).b.program);
    if (trial.goesOn()) {
      const Outcome before =
          run(fmt::format("--data data.safetensors --log-jsonl log.jsonl --ranks {} --steps {} --save {}",
                          trial.ranks, trial.first(), trial.begin == Begin::OfAnother ? "before" : "s"));
      ASSERT_EQ(before.code, 0) << before.err;
    }
    const Outcome outcome = runTo(trial);
    ASSERT_EQ(outcome.code, trial.end == End::Steps ? 0 : 75) << outcome.err;
    const std::vector<nlohmann::json> all = readLines();
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(savesIn("s"), dueSaves(trial, all)) << outcome.err;
    if (trial.begin == Begin::OfAnother) {
      EXPECT_EQ(savesIn("before"), std::set<uint64_t>{kBefore});
    }
    expectLog(trial, all);
  }
};

TEST_F(RunOptionsTest, WhatIsDueIsThereWhicheverOptionsMeet) {
  const std::vector<Choice> cover = pairwiseCover(Trial::counts());
  EXPECT_LT(cover.size(), 30u);
  for (const Choice &choice : cover) {
    const Trial trial(choice);
    SCOPED_TRACE(trial.spell());
    expectAllThatIsDue(trial);
  }
}

/// A save by the clock is due after one step alone: an evaluation after it must not take it away.
TEST_F(RunOptionsTest, ASaveByTheClockSurvivesAnEvaluation) {
  write(regression());
  const pid_t child =
      start({"p.dsx", "--data", "data.safetensors", "--steps", kForever, "--save", "s", "--save-seconds",
             "0.02", "--eval-data", "data.safetensors", "--eval-every", "1"});
  EXPECT_TRUE(
      waitUntil([&] { return fs::exists(at("s")) && !listCheckpoints(at("s"))->checkpoints.empty(); }));
  ::kill(child, SIGTERM);
  EXPECT_EQ(finish(child).code, 75);
}

} // namespace
