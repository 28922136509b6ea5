//===- RunTest.cpp - ds-run as its users see it --------------------------------===//
//
// A program made by hand is written to a file and trained by the real binary: exit codes, files, messages.
//
//===---------------------------------------------------------------------------===//
#include "RunFixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ds::rt {
namespace {

using namespace test;
using testing::HasSubstr;

/// The regression, with everything that a run may find in a program.
Program fullRegression() {
  Program program = regression();
  program.states[0].aliases = {"tied.w"};
  program.configText = "train_batch_size  8";
  return program;
}

/// The same, compiled from a model that had weights.
Program regressionWithWeights() {
  Program program = fullRegression();
  program.weightsFile = "p.safetensors";
  return program;
}

class RunTest : public RunFixture {
protected:
  RunTest() { write(fullRegression()); }
};

TEST_F(RunTest, TrainsLogsTracesEvaluatesAndSaves) {
  const Outcome outcome =
      run("--data data.safetensors --steps 40 --log-jsonl log.jsonl --trace trace.json --eval-data "
          "data.safetensors --eval-every 10 --save-weights w.safetensors");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("train_batch_size  8"));
  EXPECT_THAT(outcome.out, HasSubstr("weights from seed 0"));
  EXPECT_THAT(outcome.out, HasSubstr("step 40/40  loss "));
  EXPECT_LT(outcome.out.find("train_batch_size"), outcome.out.find("step 1/40"));
  const auto lines = log("log.jsonl");
  ASSERT_EQ(lines.size(), 40u);
  EXPECT_LT(lines.back()["loss"].get<double>(), 0.01 * lines.front()["loss"].get<double>());
  EXPECT_EQ(lines[0]["peak_bytes"]["device"], fullRegression().stages[0].arenas.device);
  EXPECT_FALSE(lines[8].contains("eval_loss"));
  EXPECT_TRUE(lines[9].contains("eval_loss"));
  const auto trace = nlohmann::json::parse(std::ifstream(at("trace.json")));
  size_t slices = 0;
  for (const auto &event : trace["traceEvents"])
    slices += event["ph"] == "X";
  EXPECT_EQ(slices, 40u * 5);
  auto weights = SafeTensorsFile::open(at("w.safetensors"));
  ASSERT_TRUE(weights);
  ASSERT_TRUE(weights->find("w") && weights->find("tied.w") && weights->find("steps_seen"));
  float value;
  std::memcpy(&value, weights->find("w")->data, 4);
  EXPECT_NEAR(value, 1.0f, 0.05f);
}

TEST_F(RunTest, SeedAndWeightsDecideTheRun) {
  ASSERT_EQ(run("--data data.safetensors --steps 3 --seed 5 --save-weights a.safetensors").code, 0);
  ASSERT_EQ(run("--data data.safetensors --steps 3 --seed 5 --save-weights b.safetensors").code, 0);
  ASSERT_EQ(run("--data data.safetensors --steps 3 --seed 6 --save-weights c.safetensors").code, 0);
  EXPECT_EQ(test::readBytes(at("a.safetensors")), test::readBytes(at("b.safetensors")));
  EXPECT_NE(test::readBytes(at("a.safetensors")), test::readBytes(at("c.safetensors")));
  // Saved, loaded and not trained: the same file. First by name, then as the file beside the program.
  ASSERT_EQ(
      run("--data data.safetensors --steps 0 --weights a.safetensors --save-weights d.safetensors").code, 0);
  EXPECT_EQ(test::readBytes(at("a.safetensors")), test::readBytes(at("d.safetensors")));
  fs::rename(at("a.safetensors"), at("p.safetensors"));
  write(regressionWithWeights());
  ASSERT_EQ(run("--data data.safetensors --steps 0 --save-weights e.safetensors").code, 0);
  EXPECT_EQ(test::readBytes(at("d.safetensors")), test::readBytes(at("e.safetensors")));
}

/// A program that was moved without its weights is refused, however it is run; what starts from elsewhere
/// needs none.
TEST_F(RunTest, WeightsThatWereLeftBehind) {
  ASSERT_EQ(run("--data data.safetensors --steps 2 --save s --save-weights w.safetensors").code, 0);
  const Outcome seeded = run("--data data.safetensors --steps 3 --seed 5 --save-weights seeded.safetensors");
  ASSERT_EQ(seeded.code, 0) << seeded.err;
  write(regressionWithWeights());
  for (const char *how :
       {"--steps 1", "--eval-only", "--save t --resume auto", "--save t --resume auto --dry-run"}) {
    const Outcome outcome = run(std::string("--data data.safetensors ") + how);
    EXPECT_EQ(outcome.code, 3) << how;
    EXPECT_THAT(outcome.err, HasSubstr("p.dsx: the weights that were written with the program are not beside "
                                       "it: 'p.safetensors'"));
    EXPECT_THAT(outcome.err, HasSubstr("--weights none"));
    EXPECT_THAT(outcome.out, testing::Not(HasSubstr("loss"))) << how;
  }
  const Outcome none =
      run("--data data.safetensors --weights none --steps 3 --seed 5 --save-weights n.safetensors");
  ASSERT_EQ(none.code, 0) << none.err;
  EXPECT_THAT(none.out, HasSubstr("weights from seed 5"));
  EXPECT_EQ(test::readBytes(at("n.safetensors")), test::readBytes(at("seeded.safetensors")));
  EXPECT_EQ(run("--data data.safetensors --weights w.safetensors --steps 1").code, 0);
  EXPECT_EQ(run("--data data.safetensors --resume s --steps 3").code, 0);
}

/// The first start takes the weights, a later one the checkpoint: one command line for both.
TEST_F(RunTest, WeightsAreForTheFirstStart) {
  ASSERT_EQ(run("--data data.safetensors --steps 2 --save-weights w.safetensors").code, 0);
  const std::string line = "--data data.safetensors --weights w.safetensors --save s --resume auto --steps ";
  const Outcome first = run(line + "2"), second = run(line + "4");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("weights from 'w.safetensors'"));
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("weights from checkpoint 's/step-2'"));
}

TEST_F(RunTest, ListsHowWeightsDiffer) {
  const std::vector<float> w(kOut * kIn), other(4);
  const TensorSource sources[] = {{"w", FileDType::F32, {kIn, kOut}, w.data()},
                                  {"bias", FileDType::F32, {4}, other.data()}};
  ASSERT_TRUE(writeSafeTensors(at("bad.safetensors"), sources));
  const Outcome outcome =
      run("--data data.safetensors --weights bad.safetensors --save-weights never.safetensors");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("bad.safetensors: does not hold the weights of this model"));
  EXPECT_THAT(outcome.err, HasSubstr("missing (1): steps_seen"));
  EXPECT_THAT(outcome.err, HasSubstr("unknown (1): bias"));
  EXPECT_THAT(outcome.err, HasSubstr("different (1): w is [6, 3], expected [3, 6]"));
  EXPECT_FALSE(fs::exists(at("never.safetensors")));
  const std::vector<float> changed(kOut * kIn, 1.0f);
  const TensorSource tied[] = {{"w", FileDType::F32, {kOut, kIn}, w.data()},
                               {"tied.w", FileDType::F32, {kOut, kIn}, changed.data()},
                               {"steps_seen", FileDType::F16, {2}, w.data()}};
  ASSERT_TRUE(writeSafeTensors(at("tied.safetensors"), tied));
  const Outcome second = run("--data data.safetensors --weights tied.safetensors");
  EXPECT_EQ(second.code, 3);
  EXPECT_THAT(second.err, HasSubstr("w and tied.w are one tensor in the model"));
  EXPECT_THAT(second.err, HasSubstr("steps_seen is F16, expected F32"));
}

TEST_F(RunTest, ReadsWeightsByOtherNamesAndFromOtherFloatTypes) {
  Program program = fullRegression();
  program.states[0].readNames = {"bare.w"};
  const std::vector<uint16_t> halves(kOut * kIn, 0x3f80); // 1 in BF16
  const std::vector<float> seen(2);
  const TensorSource sources[] = {{"bare.w", FileDType::BF16, {kOut, kIn}, halves.data()},
                                  {"steps_seen", FileDType::F32, {2}, seen.data()}};
  ASSERT_TRUE(writeSafeTensors(at("half.safetensors"), sources));
  const char *arguments =
      "--data data.safetensors --steps 0 --weights half.safetensors --save-weights a.safetensors";
  write(program);
  const Outcome strict = run(arguments);
  EXPECT_EQ(strict.code, 3);
  EXPECT_THAT(strict.err, HasSubstr("bare.w is BF16, expected F32"));
  program.convertsWeights = true;
  write(program);
  const Outcome outcome = run(arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  Result<SafeTensorsFile> saved = SafeTensorsFile::open(at("a.safetensors"));
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_FALSE(saved->find("bare.w"));
  const TensorEntry *w = saved->find("w");
  ASSERT_TRUE(w);
  const std::vector<float> ones(kOut * kIn, 1.0f);
  EXPECT_EQ(std::memcmp(w->data, ones.data(), w->bytes), 0);
}

TEST_F(RunTest, PassesOverWeightsThatTheProgramNames) {
  Program program = regressionWithWeights();
  program.unusedWeights = {"mask"};
  write(program);
  const std::vector<float> w(kOut * kIn);
  const TensorSource sources[] = {{"w", FileDType::F32, {kOut, kIn}, w.data()},
                                  {"steps_seen", FileDType::F32, {2}, w.data()},
                                  {"mask", FileDType::F32, {4}, w.data()}};
  ASSERT_TRUE(writeSafeTensors(at("p.safetensors"), sources));
  const Outcome outcome = run("--data data.safetensors --steps 1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("weights from 'p.safetensors'"));
}

TEST_F(RunTest, StateThatOnlyAFileCanGive) {
  Program program = fullRegression();
  program.states[0].init.kind = Init::Kind::Required;
  write(program);
  const Outcome outcome = run("--data data.safetensors");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("'w' has no initialisation"));
}

TEST_F(RunTest, EndsAtTheStepWhoseLossIsNotANumber) {
  writeData("nan.safetensors", 64, /*badSample=*/2 * kRows + 1);
  const Outcome outcome =
      run("--data nan.safetensors --steps 6 --log-jsonl log.jsonl --save-weights w.safetensors");
  EXPECT_EQ(outcome.code, 8);
  EXPECT_THAT(outcome.err, HasSubstr("step 3: the loss is nan"));
  EXPECT_EQ(log("log.jsonl").size(), 2u);
  EXPECT_FALSE(fs::exists(at("w.safetensors")));
}

TEST_F(RunTest, RefusesByNameWhatItCannotDo) {
  const std::pair<const char *, std::pair<int, const char *>> cases[] = {
      {"--ranks 2", {3, "--ranks 2"}},
      {"--device cuda", {9, "--device cuda"}},
      {"--device tpu", {2, "--device tpu"}},
      {"--resume auto", {2, "--resume auto needs --save"}},
      {"--resume none", {3, "there is no checkpoint in 'none'"}},
      {"--resume none --weights w.safetensors", {2, "two origins of the weights"}},
      {"--save-every 3", {2, "need --save"}},
      {"--save d --keep 1", {2, "--keep 1: two checkpoints are kept at least"}},
      {"--save d --save-mode never", {2, "--save-mode"}},
      {"--save data.safetensors", {6, "cannot save to 'data.safetensors': Not a directory"}},
      {"--dry-run", {2, "need --resume"}},
      {"--eval-every 3", {3, "--eval-every needs --eval-data"}},
      {"--token-dtype u8", {2, "--token-dtype u8"}},
      {"--no-such-option", {2, "--no-such-option"}},
      {"--steps many", {2, "--steps"}},
      {"--log-jsonl none/log.jsonl", {6, "none/log.jsonl"}},
      {"--save-weights none/w.safetensors", {6, "none/w.safetensors"}},
      {"--trace none/t.json", {6, "none/t.json"}},
      {"--weights none.safetensors", {6, "none.safetensors"}},
  };
  for (const auto &[options, expected] : cases) {
    const Outcome outcome = run(std::string("--data data.safetensors --steps 1 ") + options);
    EXPECT_EQ(outcome.code, expected.first) << options << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(expected.second)) << options;
    EXPECT_THAT(outcome.out, testing::Not(HasSubstr("step 1"))) << options;
  }
  EXPECT_EQ(run("").code, 2);
  EXPECT_EQ(run("--help").code, 0);
  EXPECT_EQ(run("--data none.safetensors").code, 6);
}

TEST_F(RunTest, RefusesProgramsItCannotRun) {
  Program program = fullRegression();
  program.world = 2;
  program.mesh = {{"dp", 2}};
  write(program);
  EXPECT_EQ(run("--data data.safetensors").code, 3);
  program = fullRegression();
  program.targetCpu = "planet-9000";
  program.cpuFeatures = {"warp-drive"};
  write(program);
  const Outcome newer = run("--data data.safetensors");
  EXPECT_EQ(newer.code, 9);
  EXPECT_THAT(newer.err, HasSubstr("lacks warp-drive"));
  std::vector<uint8_t> bytes = serializeProgram(fullRegression()).value();
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(at("p.dsx"), std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  const Outcome damaged = run("--data data.safetensors");
  EXPECT_EQ(damaged.code, 5);
  EXPECT_THAT(damaged.err, HasSubstr("p.dsx: checksum"));
  fs::remove(at("p.dsx"));
  EXPECT_EQ(run("--data data.safetensors").code, 6);
}

TEST_F(RunTest, AnInterruptionFinishesTheStepAndSaves) {
  for (int signal : {SIGINT, SIGTERM}) {
    fs::remove(at("out"));
    fs::remove(at("w.safetensors"));
    const pid_t child = start({"p.dsx", "--data", "data.safetensors", "--steps", "100000000", "--log-jsonl",
                               "log.jsonl", "--save-weights", "w.safetensors"});
    waitForStep(at("out"));
    ::kill(child, signal);
    const Outcome outcome = finish(child);
    EXPECT_EQ(outcome.code, 75) << outcome.err;
    EXPECT_TRUE(SafeTensorsFile::open(at("w.safetensors")));
    EXPECT_FALSE(log("log.jsonl").empty());
  }
}

TEST_F(RunTest, AClosedOutputDoesNotEndTheRun) {
  const std::string command =
      "cd " + directory +
      " && (" DS_RUN " p.dsx --data data.safetensors --steps 500 "
      "--save-weights w.safetensors; echo $? > code) 2>/dev/null | head -n 1 > /dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::vector<uint8_t> code = test::readBytes(at("code"));
  EXPECT_EQ(std::string(code.begin(), code.end()), "0\n");
  EXPECT_TRUE(fs::exists(at("w.safetensors")));
}

/// The regression, but every step says `skipped` at a loss scale of 4.
Program overflowing(double skipped) {
  ProgramBuilder b;
  b.program = fullRegression();
  const uint32_t scale = b.state("loss_scale", {}, {Init::Kind::Constant, 4.0, 0}, Role::Scalar);
  b.program.outputs.push_back({"loss_scale", scale});
  b.library(LibraryFn::Fill, {b.output("skipped")}, {bits(skipped)});
  b.program.segments[0].work = {Work::Forward, Work::Backward};
  b.program.stages[0].schedule.push_back({b.segment({Work::Update}, "overflow")});
  return b.program;
}

TEST_F(RunTest, LogsSkippedSteps) {
  write(overflowing(1));
  writeData("nan.safetensors", 64, /*badSample=*/0);
  ASSERT_EQ(run("--data nan.safetensors --steps 3 --log-jsonl log.jsonl").code, 0) << "skipped, not diverged";
  ASSERT_EQ(log("log.jsonl").size(), 3u);
  EXPECT_EQ(log("log.jsonl")[2]["skipped"], true);
  EXPECT_EQ(log("log.jsonl")[2]["loss_scale"], 4.0);
  EXPECT_TRUE(log("log.jsonl")[0]["loss"].is_null());
  write(overflowing(0));
  ASSERT_EQ(run("--data data.safetensors --steps 1 --log-jsonl log.jsonl").code, 0);
  EXPECT_EQ(log("log.jsonl")[0]["skipped"], false);
}

TEST_F(RunTest, AnOverflowAtTheSmallestLossScaleEndsTheRun) {
  write(overflowing(2));
  const Outcome outcome = run("--data data.safetensors --steps 3 --log-jsonl log.jsonl");
  EXPECT_EQ(outcome.code, 8);
  EXPECT_THAT(outcome.err, HasSubstr("step 1: the gradients overflow at a loss scale of 4, the smallest"));
  ASSERT_EQ(log("log.jsonl").size(), 1u);
  EXPECT_EQ(log("log.jsonl")[0]["skipped"], true);
}

TEST_F(RunTest, PoisonLeavesARightProgramAlone) {
  ASSERT_EQ(run("--data data.safetensors --steps 3 --save-weights a.safetensors").code, 0);
  ::setenv("DS_POISON", "1", 1);
  const Outcome outcome = run("--data data.safetensors --steps 3 --save-weights b.safetensors");
  ::unsetenv("DS_POISON");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(test::readBytes(at("a.safetensors")), test::readBytes(at("b.safetensors")));
}

} // namespace
} // namespace ds::rt
