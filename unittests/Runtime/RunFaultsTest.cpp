//===- RunFaultsTest.cpp - Every system call of a save fails in a real process --------------===//
//
// ds-run is started with a library that lets its K-th call on the checkpoints' files fail: it is killed
// there, or told of a full disk, an I/O error or a short write. For every K: what is left leads to a whole
// checkpoint, and the run that takes over ends with the losses of one that nothing happened to.
//
// With three ranks each fifth call is struck; all of them if the environment has DS_ALL_FAULTS
// (script/matrix).
//
//===---------------------------------------------------------------------------===//

#include "RankedRegression.h"

#include "ds/Runtime/Checkpoint/Store.h"

#include <algorithm>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;

namespace {

class RunFaultsTest : public RunFixture {
protected:
  /// In memory where that can be had: hundreds of runs sync their files.
  RunFaultsTest() : RunFixture(::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") {}

  static constexpr int kSteps = 6;

  std::map<uint64_t, double> losses(const std::string &name) {
    std::map<uint64_t, double> all;
    for (const nlohmann::json &line : log(name))
      all[line["step"]] = line["loss"];
    return all;
  }
  std::vector<std::string> command(const std::string &log) const {
    return {"p.dsx",
            "--data",
            "data.safetensors",
            "--steps",
            std::to_string(kSteps),
            "--save",
            at("s"),
            "--save-every",
            "2",
            "--resume",
            "auto",
            "--log-jsonl",
            log,
            "--ranks",
            std::to_string(ranks)};
  }
  /// One run with a fault; how many calls there were, or 0 if it did not come to its end.
  uint64_t strike(const std::string &fault, uint32_t rank, Outcome &outcome) {
    fs::remove(at("calls"));
    outcome = finish(start(command("struck.jsonl"), "",
                           {"LD_PRELOAD=" DS_FAULT_SHIM, "DS_FAULT_DIR=" + at("s"), "DS_FAULT=" + fault,
                            "DS_FAULT_RANK=" + std::to_string(rank), "DS_FAULT_COUNT=" + at("calls")}));
    uint64_t calls = 0;
    std::ifstream(at("calls")) >> calls;
    return calls;
  }
  bool hasWhole() const {
    const Result<StoreListing> listing = listCheckpoints(at("s"));
    return std::ranges::any_of(listing->checkpoints, [](const auto &each) { return each.problem.empty(); });
  }
  /// Whether the directory has whole checkpoints and nothing else.
  bool hasOnlyWhole() const {
    const Result<StoreListing> listing = listCheckpoints(at("s"));
    const auto entries = std::distance(fs::directory_iterator(at("s")), fs::directory_iterator());
    return std::ranges::all_of(listing->checkpoints, [](const auto &each) { return each.problem.empty(); }) &&
           static_cast<size_t>(entries) == listing->checkpoints.size() + 1; // the lock
  }

  /// Every call of `rank` in turn, each `stride`-th one.
  void strikeAll(const std::string &kind, uint32_t rank, uint64_t stride) {
    const std::vector<std::string> plain = command("whole.jsonl");
    ASSERT_EQ(finish(start(plain)).code, 0);
    const std::map<uint64_t, double> expected = losses("whole.jsonl");
    fs::remove_all(at("s"));
    Outcome outcome;
    const uint64_t calls = strike("none:0", rank, outcome);
    ASSERT_GT(calls, 20u) << outcome.err;
    fs::remove_all(at("s"));
    fs::remove_all(at("before"));
    std::vector<std::string> first = command("struck.jsonl"); // a checkpoint is there before anything fails
    first[4] = "1";
    ASSERT_EQ(finish(start(first)).code, 0);
    fs::rename(at("s"), at("before"));
    if (std::getenv("DS_ALL_FAULTS"))
      stride = 1;
    for (uint64_t call = 1; call <= calls; call += stride) {
      for (const char *name : {"s", "struck.jsonl", "rest.jsonl"})
        fs::remove_all(at(name));
      fs::copy(at("before"), at("s"), fs::copy_options::recursive);
      strike(kind + ":" + std::to_string(call), rank, outcome);
      ASSERT_TRUE(hasWhole()) << kind << " at call " << call << "\n" << outcome.err;
      ASSERT_TRUE(kind != "kill" || outcome.code != 0 || call > calls / 2) << call;
      const Outcome rest = finish(start(command("rest.jsonl")));
      ASSERT_EQ(rest.code, 0) << kind << " at call " << call << "\n" << rest.err;
      for (const auto &[step, loss] : losses("rest.jsonl"))
        ASSERT_EQ(loss, expected.at(step)) << kind << " at call " << call << ", step " << step;
      ASSERT_TRUE(fs::exists(at("s/step-6/manifest.json"))) << kind << " at call " << call;
      ASSERT_TRUE(pruneCheckpoints(systemFiles(), at("s"), {.newest = 2})) << "as the next save does";
      ASSERT_TRUE(hasOnlyWhole()) << kind << " at call " << call << ": something is left for ever";
    }
  }
  uint32_t ranks = 1;
};

TEST_F(RunFaultsTest, OneRankSurvivesEveryFault) {
  write(regression());
  for (const char *kind : {"kill", "enospc", "eio", "short"})
    strikeAll(kind, 0, 1);
}

TEST_F(RunFaultsTest, ThreeRanksSurviveTheFaultsOfAny) {
  ranks = 3;
  write(RankedRegression(3).b.program);
  for (const char *kind : {"kill", "enospc", "eio", "short"})
    for (const uint32_t rank : {0, 2})
      strikeAll(kind, rank, 5);
}

} // namespace
