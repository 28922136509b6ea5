//===- CrashTest.cpp - Whatever fails in a save, a checkpoint is there afterwards -----------===//
//
// Every operation of a save, and of the removal of the oldest checkpoint behind it, fails in turn: with an
// error, a full disk, a short write, the end of the process, or a loss of power. Each time what is on the
// disk must lead to a checkpoint that reads as it was written, and to none older than the newest that the run
// was told to be safe.
//
//===---------------------------------------------------------------------------===//

#include "CheckpointFixture.h"
#include "CrashingFiles.h"

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;

namespace {

Model modelOn(uint32_t ranks) {
  Model model(Mesh{{"dp", ranks}});
  model.addZero("a", {5, 3});
  model.add("b", {4});
  return model;
}

/// Saves and removes what is too old, as a run does.
Status saveAndPrune(FileLayer &layer, const Model &model, const std::string &root, uint64_t step) {
  const Result<std::string> path = save(layer, model, root, step);
  return path ? pruneCheckpoints(layer, root, {.newest = 2}) : Status(path.error());
}

/// The newest whole checkpoint, which reads as it was written; 0: there is none.
uint64_t newestStep(const Model &model, const std::string &root) {
  const Result<StoreListing> listing = listCheckpoints(root);
  EXPECT_TRUE(listing);
  for (const StoredCheckpoint &each : listing->checkpoints) {
    if (!each.problem.empty())
      continue;
    const Result<Checkpoint> checkpoint = Checkpoint::open(root + "/" + each.name);
    EXPECT_TRUE(checkpoint) << checkpoint.error().message;
    if (checkpoint)
      expectReads(model, *checkpoint, static_cast<int>(each.step));
    return each.step;
  }
  return 0;
}

struct Trial {
  uint32_t ranks = 1;
  Fault fault = Fault::None;
  bool power = false; ///< the machine fails with the process
  bool again = false; ///< the step that is saved is there already
  uint64_t when = 0;  ///< operation that fails
  uint64_t random = 0;
};

class Crash : public CheckpointFixture {
protected:
  /// In memory where that can be had: what a disk would do is the test's own business.
  Crash() : CheckpointFixture(::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") {}

  /// One run that is struck; false: there was no such operation.
  bool strike(const Trial &trial) {
    const std::string place = root + "/run";
    fs::remove_all(place);
    fs::create_directory(place);
    const Model model = modelOn(trial.ranks);
    std::mt19937_64 random(trial.random);
    uint64_t safe = 0;
    {
      CrashingFiles before(place);
      for (const uint64_t step : {1, 2, 3})
        if (step < 3 || trial.again) {
          EXPECT_TRUE(saveAndPrune(before, model, place, step));
        }
      safe = trial.again ? 3 : 2;
    }
    CrashingFiles files(place, trial.fault, trial.when);
    if (saveAndPrune(files, model, place, 3))
      safe = 3;
    const bool struck = files.operations() >= trial.when;
    if (trial.power)
      files.losePower(random);
    const uint64_t newest = newestStep(model, place);
    EXPECT_GE(newest, safe);
    EXPECT_LE(newest, 3u);
    goOn(model, place);
    return struck;
  }

  /// The run that takes over saves in the same place, and leaves nothing of the one before.
  void goOn(const Model &model, const std::string &place) {
    CrashingFiles files(place);
    for (const uint64_t step : {4, 5}) {
      const Status saved = saveAndPrune(files, model, place, step);
      EXPECT_TRUE(saved) << saved.error().message;
    }
    const Result<StoreListing> listing = listCheckpoints(place);
    EXPECT_EQ(newestStep(model, place), 5u);
    EXPECT_TRUE(listing->leftovers.empty());
    EXPECT_EQ(listing->checkpoints.size(), 2u) << "something is left that nobody removes";
  }

  /// Strikes every operation; how many there were.
  uint64_t strikeAll(Trial trial) {
    for (trial.when = 1;; ++trial.when) {
      if (!strike(trial))
        return trial.when - 1;
      if (HasFailure()) {
        ADD_FAILURE() << "ranks " << trial.ranks << " operation " << trial.when << " random " << trial.random;
        return 0;
      }
    }
  }
};

TEST_F(Crash, everyOperationMayFail) {
  for (const uint32_t ranks : {1, 3})
    for (const bool again : {false, true})
      for (const Fault fault : {Fault::Error, Fault::NoSpace, Fault::ShortWrite})
        EXPECT_GT(strikeAll({ranks, fault, false, again}), ranks == 1 ? 10u : 25u);
}

TEST_F(Crash, theProcessMayEndAnywhere) {
  for (const uint32_t ranks : {1, 3})
    for (const bool again : {false, true})
      EXPECT_GT(strikeAll({ranks, Fault::Stop, false, again}), ranks == 1 ? 10u : 25u);
}

/// Ten thousand losses of power, each forgetting something else.
TEST_F(Crash, powerMayFailAnywhere) {
  uint64_t struck = 0;
  for (uint64_t random = 0; struck < 10000 && !HasFailure(); ++random)
    struck += strikeAll({random % 2 ? 3u : 1u, Fault::Stop, true, random % 4 >= 2, 0, random});
  EXPECT_GE(struck, 10000u);
}

} // namespace
