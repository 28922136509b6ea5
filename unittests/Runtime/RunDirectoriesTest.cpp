//===- RunDirectoriesTest.cpp - A directory has the checkpoints of one run ------------===//
//
// Runs that save where another has saved, or where they have saved themselves and gone back: what is refused,
// what stays, and what the next one goes on from.
//
//===---------------------------------------------------------------------------===//

#include "RankedRegression.h"

#include "ds/Runtime/Checkpoint/Store.h"

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace {

class RunDirectoriesTest : public RunFixture {
protected:
  RunDirectoriesTest() : RunFixture(::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") {
    write(regression());
  }
  Outcome train(const std::string &options) { return run("--data data.safetensors " + options); }
  void expectTrains(const std::string &options) {
    const Outcome outcome = train(options);
    EXPECT_EQ(outcome.code, 0) << options << "\n" << outcome.err;
  }
  /// Refused before the first step, with `why` and `hint`, and nothing changed in the directory `name`.
  void expectRefused(const std::string &options, const std::string &name, const std::string &why,
                     const std::string &hint) {
    const std::vector<std::string> before = all(name);
    const Outcome outcome = train(options);
    EXPECT_EQ(outcome.code, 3) << options << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(why));
    EXPECT_THAT(outcome.err, HasSubstr("hint: " + hint));
    EXPECT_THAT(outcome.out, Not(HasSubstr("step ")));
    EXPECT_EQ(all(name), before);
  }
  /// Names in a directory of saves, sorted.
  std::vector<std::string> all(const std::string &name) const {
    std::vector<std::string> names;
    for (const fs::directory_entry &entry : fs::directory_iterator(at(name)))
      if (entry.path().filename() != ".lock")
        names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  /// Names of the whole checkpoints, newest first.
  std::vector<std::string> whole(const std::string &name) const {
    std::vector<std::string> names;
    const Result<StoreListing> listing = listCheckpoints(at(name));
    for (const StoredCheckpoint &each : listing->checkpoints)
      if (each.problem.empty())
        names.push_back(each.name);
    return names;
  }
  std::string runOf(const std::string &path) const { return readManifest(at(path))->run; }
};

TEST_F(RunDirectoriesTest, ANewRunIsRefusedWhereAnotherHasSaved) {
  expectTrains("--steps 5 --save s --save-every 4");
  const std::string why = "--save 's': there are checkpoints of an earlier run, the last one of step 5",
                    hint = "resume that run by --resume auto, or name another directory with --save";
  expectRefused("--steps 2 --save s", "s", why, hint);
  expectRefused("--steps 9 --save s --restarts 2", "s", why, hint);
  write(RankedRegression(2).b.program);
  expectRefused("--ranks 2 --steps 9 --save s", "s", why, hint);
  write(regression());
  fs::remove(at("s/step-5/shard-00000-model-00001-of-00001.safetensors")); // it may be looked into
  expectRefused("--steps 2 --save s", "s", why, hint);
  expectTrains("--steps 2 --save other");
}

/// What is no checkpoint keeps nobody from saving.
TEST_F(RunDirectoriesTest, WhatIsNoCheckpointIsInNoWay) {
  fs::create_directories(at("s/step-7.tmp-12"));
  fs::create_directory(at("s/notes"));
  expectTrains("--steps 2 --save s");
  EXPECT_THAT(all("s"), ElementsAre("notes", "step-2"));
}

TEST_F(RunDirectoriesTest, AResumedRunSavesWhereItsOwnRunHasSaved) {
  expectTrains("--steps 2 --save a");
  expectTrains("--steps 3 --save b --seed 1");
  const std::string
      why = "--save 'b': there are checkpoints of another run than 'a/step-2', the last one of step 3",
      hint = "name an empty directory with --save, or resume that run by --resume auto";
  expectRefused("--steps 5 --resume a --save b", "b", why, hint);
  expectRefused("--steps 5 --resume a --save b --dry-run", "b", why, hint);
  expectTrains("--steps 4 --resume a --save c");
  EXPECT_EQ(runOf("c/step-4"), runOf("a/step-2"));
  EXPECT_NE(runOf("b/step-3"), runOf("a/step-2"));
  expectTrains("--steps 5 --resume c --save a");
  EXPECT_THAT(whole("a"), ElementsAre("step-5", "step-2"));
}

/// A run that goes back to an older checkpoint is not taken up from those that it has left, nor are its own
/// removed for them: they are kept under another name.
TEST_F(RunDirectoriesTest, WhatARunGoesBackBeforeIsSetAside) {
  for (const uint32_t ranks : {1u, 2u}) {
    write(ranks == 1 ? regression() : RankedRegression(2).b.program);
    const std::string group = "--ranks " + std::to_string(ranks);
    expectTrains(group + " --steps 8 --save s --save-every 2 --keep 9");
    const Outcome back = train(group + " --steps 5 --resume s/step-2 --save s --save-every 1");
    EXPECT_EQ(back.code, 0) << back.err;
    EXPECT_THAT(
        back.err,
        HasSubstr("'s/step-8' is not of the way that the run takes now: it is kept as 's/step-8.aside-"));
    EXPECT_THAT(whole("s"), ElementsAre("step-5", "step-4"));
    EXPECT_THAT(all("s"),
                ElementsAre("step-4", testing::StartsWith("step-4.aside-"), "step-5",
                            testing::StartsWith("step-6.aside-"), testing::StartsWith("step-8.aside-")));
    const Outcome next = train(group + " --steps 7 --save s --resume auto");
    EXPECT_THAT(next.err, HasSubstr("resumes from 's/step-5'"));
    EXPECT_THAT(next.err, Not(HasSubstr("aside")));
    fs::remove_all(at("s"));
  }
}

/// What was passed over does not count among the checkpoints that stay.
TEST_F(RunDirectoriesTest, WhatCannotBeReadIsSetAside) {
  expectTrains("--steps 6 --save s --save-every 3");
  const std::string file = at("s/step-6/shard-00000-model-00001-of-00001.safetensors");
  std::vector<uint8_t> bytes = readBytes(file);
  bytes[bytes.size() - 8] ^= 4;
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<char *>(bytes.data()), long(bytes.size()));
  expectTrains("--steps 4 --save s --resume auto");
  EXPECT_THAT(whole("s"), ElementsAre("step-4", "step-3"));
  EXPECT_THAT(all("s"), ElementsAre("step-3", "step-4", testing::StartsWith("step-6.aside-")));
}

/// Of before runs had letters, and of what is imported, it is not known which run they are of.
TEST_F(RunDirectoriesTest, CheckpointsWithoutARunMayBeGoneOnFrom) {
  expectTrains("--steps 2 --save s");
  Manifest manifest = *readManifest(at("s/step-2"));
  manifest.run.clear();
  std::ofstream(at("s/step-2/manifest.json"), std::ios::trunc) << spellManifest(manifest);
  expectTrains("--steps 3 --resume auto --save s");
  expectTrains("--steps 4 --resume auto --save s");
  EXPECT_EQ(runOf("s/step-3"), runOf("s/step-4"));
}

TEST_F(RunDirectoriesTest, AFinishedRunSaysThatNothingIsLeft) {
  expectTrains("--steps 5 --save s");
  for (const std::string steps : {"3", "5"}) {
    const Outcome outcome = train("--save s --resume auto --steps " + steps);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err,
                HasSubstr("nothing is left to do: 's/step-5' is of step 5, and --steps is " + steps));
    EXPECT_THAT(whole("s"), ElementsAre("step-5"));
    EXPECT_THAT(train("--save s --resume auto --dry-run --steps " + steps).out,
                HasSubstr("nothing is left to do: 's/step-5' is of step 5"));
  }
  EXPECT_THAT(train("--save s --resume auto --steps 6").err, Not(HasSubstr("nothing is left")));
}

/// The length of a schedule that the run says is a state, which a checkpoint has.
TEST_F(RunDirectoriesTest, ALongerScheduleIsTold) {
  ProgramBuilder b;
  b.program = regression();
  const uint32_t buffer = b.keep({}, DType::F64);
  b.program.states.push_back({"total_steps",
                              {},
                              Role::Scalar,
                              "",
                              {},
                              buffer,
                              {Init::Kind::Constant, 0, 0},
                              false,
                              {},
                              {},
                              b.stage()});
  write(b.program);
  expectTrains("--steps 4 --save s");
  const Outcome past = train("--steps 2 --save s --resume auto");
  EXPECT_THAT(past.err, Not(HasSubstr("laid out")));
  const Outcome longer = train("--steps 6 --save s --resume auto");
  EXPECT_THAT(
      longer.err,
      HasSubstr("it was laid out for 4 steps and is now for 6, so that rates are others from step 5 on"));
  EXPECT_THAT(train("--steps 6 --resume s/step-4").err, HasSubstr("laid out for 4 steps and is now for 6"));
}

} // namespace
