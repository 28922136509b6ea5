//===- RunRanksTest.cpp - ds-run on several ranks, as its users see it ---------===//
//
// A program made by hand that cuts its parameter among the ranks: gathered before its use, its gradient
// reduced into the parts, with streams for both. The same global batch must train it as one rank does.
//
//===---------------------------------------------------------------------------===//
#include "RankedRegression.h"
#include "RunFixture.h"
#include "StagedRegression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ds::rt {
namespace {

using namespace test;
using testing::HasSubstr;
using testing::Not;

class RunRanksTest : public RunFixture {
protected:
  RunRanksTest() {
    for (uint32_t world : {1, 2, 4})
      write(RankedRegression(world).b.program, "p" + std::to_string(world) + ".dsx");
  }
  /// ds-run starting `world` ranks itself.
  Outcome train(uint32_t world, const std::string &options) {
    const std::string number = std::to_string(world);
    std::istringstream words("p" + number + ".dsx --ranks " + number + " --timeout 20 " + options);
    return finish(start({std::istream_iterator<std::string>(words), {}}));
  }
  /// One of two ranks, started as a launcher would. Its files are "out0" and so on.
  pid_t startRank(uint32_t rank, const std::string &options, const std::string &program = "p2.dsx") {
    std::istringstream words(program + " --timeout 20 " + options);
    return start({std::istream_iterator<std::string>(words), {}}, std::to_string(rank),
                 {"DS_RANK=" + std::to_string(rank), "DS_WORLD=2", "DS_RENDEZVOUS=" + directory,
                  "DS_NONCE=test" + std::to_string(jobs), "DS_ONE_HOST=1"});
  }
  /// Both ranks with options of their own.
  std::pair<Outcome, Outcome> trainBoth(const std::string &first, const std::string &second,
                                        const std::string &secondProgram = "p2.dsx") {
    ++jobs;
    const pid_t zero = startRank(0, first), one = startRank(1, second, secondProgram);
    Outcome ended = finish(zero, "0");
    return {ended, finish(one, "1")};
  }
  /// The weights that a run of `world` ranks saves.
  std::vector<uint8_t> weights(uint32_t world, const std::string &options) {
    fs::remove(at("w.safetensors"));
    const Outcome outcome = train(world, "--data data.safetensors --save-weights w.safetensors " + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return readBytes(at("w.safetensors"));
  }
  int jobs = 0;
};

/// The sockets of `process`.
size_t countSockets(pid_t process) {
  size_t count = 0;
  for (const auto &entry : fs::directory_iterator("/proc/" + std::to_string(process) + "/fd")) {
    std::error_code error;
    count += fs::read_symlink(entry.path(), error).string().starts_with("socket:");
  }
  return count;
}

/// Two ranks have one connection for news and one for each channel: that of the thread that computes, and of
/// each stream beside it. Nobody listens once the run has begun.
TEST_F(RunRanksTest, ConnectTheChannelsOfTheirProgram) {
  write(StagedRegression(2).b.program, "staged.dsx");
  ::setenv("DS_TRANSPORT", "gloo", 1);
  for (const auto &[program, channels] : {std::pair("p2.dsx", 3u), {"staged.dsx", 1u}}) {
    ++jobs;
    fs::remove(at("log.jsonl"));
    const std::string options = "--data data.safetensors --steps 100000000 --log-jsonl log.jsonl";
    const pid_t ranks[] = {startRank(0, options, program), startRank(1, options, program)};
    ASSERT_TRUE(waitUntil([&] { return hasText(at("log.jsonl"), "\"step\":1,"); })) << program;
    for (const pid_t rank : ranks)
      EXPECT_EQ(countSockets(rank), 1 + channels) << program;
    for (const pid_t rank : ranks)
      ::kill(rank, SIGTERM);
    EXPECT_EQ(finish(ranks[0], "0").code, 75) << program;
    EXPECT_EQ(finish(ranks[1], "1").code, 75) << program;
  }
  ::unsetenv("DS_TRANSPORT");
}

/// Each rank's log has its own times, and the loss that all have.
TEST_F(RunRanksTest, EachRankMayWriteALog) {
  const Outcome outcome = train(2, "--data data.safetensors --steps 3 --log-jsonl log.jsonl --log-ranks all");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<nlohmann::json> first = log("log.jsonl"), second = log("log.rank1.jsonl");
  ASSERT_EQ(first.size(), 3u);
  ASSERT_EQ(second.size(), 3u);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(first[i]["loss"], second[i]["loss"]);
  EXPECT_NE(first[1]["step_seconds"], second[1]["step_seconds"]);
  ASSERT_EQ(train(2, "--data data.safetensors --steps 3 --log-jsonl other.jsonl").code, 0);
  EXPECT_FALSE(fs::exists(at("other.rank1.jsonl"))) << "one log unless all are asked for";
}

/// Streams of exchanges and transfers have channels, as those of gathers and reductions do.
TEST_F(RunRanksTest, ExchangesAndTransfersHaveChannelsOfTheirOwn) {
  const std::vector<uint8_t> expected = weights(2, "--steps 5");
  RankedRegression other(2);
  other.b.program.streams = {StreamKind::Compute, StreamKind::Exchange, StreamKind::Transfer};
  write(other.b.program, "p2.dsx");
  EXPECT_EQ(weights(2, "--steps 5"), expected);
}

TEST_F(RunRanksTest, TrainsAsOneRankDoes) {
  std::vector<std::vector<nlohmann::json>> logs;
  for (uint32_t world : {1, 2, 4}) {
    const Outcome outcome =
        train(world, "--data data.safetensors --steps 20 --log-jsonl log.jsonl --eval-data "
                     "data.safetensors --eval-every 10");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    logs.push_back(log("log.jsonl"));
    ASSERT_EQ(logs.back().size(), 20u);
    EXPECT_EQ(outcome.out.find("step 20/20"), outcome.out.rfind("step 20/20")) << "one rank prints";
    for (size_t i = 0; i < 20; ++i) {
      const double alone = logs[0][i]["loss"], together = logs.back()[i]["loss"];
      EXPECT_NEAR(together, alone, 1e-6 * alone + 1e-8) << world << " ranks, step " << i + 1;
    }
    for (size_t i : {9, 19}) {
      const double alone = logs[0][i]["eval_loss"], together = logs.back()[i]["eval_loss"];
      EXPECT_NEAR(together, alone, 1e-6 * alone) << world << " ranks, evaluation at step " << i + 1;
    }
    EXPECT_THAT(outcome.out, HasSubstr("model       18 parameters")) << "not those of one rank";
    EXPECT_THAT(outcome.out, HasSubstr(world > 1 ? " host on each rank\n" : " host\n"));
  }
  EXPECT_LT(logs[0][19]["loss"].get<double>(), 0.2 * logs[0][0]["loss"].get<double>());
}

/// Two by two ranks, of which two and two have the same data, are two ranks twice.
TEST_F(RunRanksTest, ReadsDataByTheCoordinatesOfDp) {
  const std::string options = "--data data.safetensors --steps 8 --eval-data data.safetensors "
                              "--log-jsonl log.jsonl --save-weights w.safetensors";
  ASSERT_EQ(train(2, options).code, 0);
  const std::vector<uint8_t> saved = readBytes(at("w.safetensors"));
  const auto expected = log("log.jsonl");
  for (const Mesh &mesh : {Mesh{{"dp", 2}, {"tp", 2}}, Mesh{{"tp", 2}, {"dp", 2}}}) {
    write(RankedRegression(mesh).b.program, "p4.dsx");
    const Outcome outcome = train(4, options);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("batch       4 x 1 x 2 (micro-batch, accumulation, ranks)"));
    const auto got = log("log.jsonl");
    ASSERT_EQ(got.size(), 8u);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got[i]["loss"], expected[i]["loss"]) << mesh.spell() << ", step " << i + 1;
    EXPECT_EQ(got.back()["eval_loss"], expected.back()["eval_loss"]) << mesh.spell();
    EXPECT_EQ(readBytes(at("w.safetensors")), saved) << mesh.spell();
  }
}

TEST_F(RunRanksTest, TellsWhatCommunicationCosts) {
  const Outcome outcome = train(2, "--data data.safetensors --steps 5 --log-jsonl log.jsonl --trace t.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("communication of rank 0"));
  EXPECT_THAT(outcome.err, testing::ContainsRegex("all_gather +all_gather_0 +2 +5 "));
  EXPECT_THAT(outcome.err, testing::ContainsRegex("reduce_scatter +reduce_scatter_2 +2 +5 "));
  EXPECT_THAT(outcome.err, Not(HasSubstr("agreement")));
  const auto lines = log("log.jsonl");
  for (const auto &line : lines) {
    EXPECT_EQ(line["comm_bytes"], 2 * 9 * 4 + 4 + 2 * 9 * 4); // gather, loss, reduce-scatter
    // A part of 9 floats to the other rank, both ways, and of the loss 2 * ceil(1 / 2) floats.
    const nlohmann::json sent = {
        {"all_gather", {{"dp", 36}}}, {"all_reduce", {{"dp", 8}}}, {"reduce_scatter", {{"dp", 36}}}};
    EXPECT_EQ(line["communication_bytes_by_axes"], sent);
    EXPECT_GT(line["comm_seconds"], 0.0);
    EXPECT_GT(line["comm_exposed_seconds"], 0.0);
  }
  for (const char *name : {"t.json", "t.rank1.json"}) {
    const auto trace = nlohmann::json::parse(std::ifstream(at(name)));
    size_t collectives = 0;
    for (const auto &event : trace["traceEvents"])
      collectives += event["ph"] == "X" && event["cat"] == "collective";
    EXPECT_EQ(collectives, 5u * 3) << name;
  }
  EXPECT_FALSE(log("log.jsonl").empty());
  ASSERT_EQ(train(1, "--data data.safetensors --steps 1 --log-jsonl log.jsonl").code, 0);
  EXPECT_FALSE(log("log.jsonl")[0].contains("comm_bytes"));
  EXPECT_FALSE(log("log.jsonl")[0].contains("communication_bytes_by_axes"));
}

TEST_F(RunRanksTest, WeightsDoNotDependOnTheNumberOfRanks) {
  const std::vector<uint8_t> seeded = weights(1, "--steps 0 --seed 3");
  EXPECT_EQ(weights(2, "--steps 0 --seed 3"), seeded);
  EXPECT_EQ(weights(4, "--steps 0 --seed 3"), seeded);
  EXPECT_NE(weights(4, "--steps 0 --seed 4"), seeded);
  std::ofstream(at("start.safetensors"), std::ios::binary)
      .write(reinterpret_cast<const char *>(seeded.data()), static_cast<std::streamsize>(seeded.size()));
  EXPECT_EQ(weights(4, "--steps 0 --weights start.safetensors"), seeded);
  EXPECT_EQ(weights(2, "--steps 3 --weights start.safetensors"), weights(2, "--steps 3 --seed 3"));
}

TEST_F(RunRanksTest, PoisonLeavesARightProgramAlone) {
  const std::vector<uint8_t> plain = weights(2, "--steps 3");
  ::setenv("DS_POISON", "1", 1);
  const std::vector<uint8_t> poisoned = weights(2, "--steps 3");
  ::unsetenv("DS_POISON");
  EXPECT_EQ(plain, poisoned);
}

TEST_F(RunRanksTest, RefusesAnotherNumberOfRanks) {
  fs::rename(at("p4.dsx"), at("p.dsx"));
  const Outcome alone = run("--data data.safetensors");
  EXPECT_EQ(alone.code, 3);
  EXPECT_THAT(alone.err, HasSubstr("p.dsx: the program was compiled for 4 ranks, but 1 was started"));
  const Outcome two = run("--data data.safetensors --ranks 2");
  EXPECT_EQ(two.code, 3);
  EXPECT_THAT(two.err, HasSubstr("compiled for 4 ranks, but 2 were started"));
  EXPECT_THAT(two.err, HasSubstr("--ranks 4"));
  // At once, by the launcher alone: so many would take longer to come together than anybody waits.
  const Outcome many = run("--data data.safetensors --ranks 300");
  EXPECT_EQ(many.code, 3);
  EXPECT_THAT(many.err, HasSubstr("compiled for 4 ranks, but 300 were started"));
  EXPECT_THAT(many.err, Not(HasSubstr("rank 0 ended")));
}

TEST_F(RunRanksTest, RefusesRanksThatDiffer) {
  Program other = RankedRegression(2).b.program;
  other.params.back() += 1;
  write(other, "other.dsx");
  writeData("other.safetensors", 64, /*badSample=*/0);
  weights(2, "--steps 0");
  fs::rename(at("w.safetensors"), at("start.safetensors"));
  struct Case {
    const char *what, *options, *program;
  };
  const Case cases[] = {
      {"the program", "--data data.safetensors --steps 8", "other.dsx"},
      {"--seed", "--data data.safetensors --steps 8 --seed 7", "p2.dsx"},
      {"the number of steps", "--data data.safetensors --steps 9", "p2.dsx"},
      {"--check-replicas", "--data data.safetensors --steps 8 --check-replicas 1", "p2.dsx"},
      {"--on-nan, --on-spike and what spikes are", "--data data.safetensors --steps 8 --spike-factor 2",
       "p2.dsx"},
      {"--save-weights", "--data data.safetensors --steps 8 --save-weights w.safetensors", "p2.dsx"},
      {"the weights", "--data data.safetensors --steps 8 --weights start.safetensors", "p2.dsx"},
      {"the data", "--data other.safetensors --steps 8", "p2.dsx"},
      {"the held-out data", "--data data.safetensors --steps 8 --eval-data data.safetensors", "p2.dsx"},
  };
  for (const auto &[what, options, program] : cases) {
    const auto [zero, one] = trainBoth("--data data.safetensors --steps 8", options, program);
    for (const Outcome &outcome : {zero, one}) {
      EXPECT_EQ(outcome.code, 7) << what;
      EXPECT_THAT(outcome.err, HasSubstr("the ranks differ in " + std::string(what) + ": rank "));
      EXPECT_THAT(outcome.err, HasSubstr("rank 1 on host "));
      EXPECT_THAT(outcome.out, Not(HasSubstr("step 1/")));
    }
  }
  EXPECT_FALSE(fs::exists(at("w.safetensors")));
}

TEST_F(RunRanksTest, RefusesRanksOfAnotherBuild) {
  // Plugins are looked for beside the binary: <prefix>/bin and <prefix>/lib.
  fs::create_directories(at("other/bin"));
  fs::copy_file(DS_RUN, at("other/bin/ds-run"));
  std::ofstream(at("other/bin/ds-run"), std::ios::binary | std::ios::app) << "another build";
  fs::create_directory_symlink(fs::path(DS_RUN).parent_path().parent_path() / "lib", at("other/lib"));
  ++jobs;
  const pid_t zero = startRank(0, "--data data.safetensors");
  binary = at("other/bin/ds-run");
  const pid_t one = startRank(1, "--data data.safetensors");
  for (const Outcome &outcome : {finish(zero, "0"), finish(one, "1")}) {
    EXPECT_EQ(outcome.code, 7);
    EXPECT_THAT(outcome.err, HasSubstr("the ranks differ in the build of ds-run: rank "));
  }
}

TEST_F(RunRanksTest, AnInterruptionOfOneRankEndsAll) {
  for (int signal : {SIGINT, SIGTERM}) {
    ++jobs;
    fs::remove(at("out0"));
    const std::string options = "--data data.safetensors --steps 100000000 --save-weights w.safetensors";
    const pid_t zero = startRank(0, options), one = startRank(1, options);
    waitForStep(at("out0"));
    ::kill(one, signal);
    const Outcome first = finish(zero, "0"), second = finish(one, "1");
    EXPECT_EQ(first.code, 75) << first.err;
    EXPECT_EQ(second.code, 75) << second.err;
    EXPECT_TRUE(SafeTensorsFile::open(at("w.safetensors")));
    EXPECT_EQ(second.out, "");
  }
}

/// Waits until a file whose name has `text` lies in the directory, for a minute at most.
void waitForFile(const std::string &directory, const std::string &text) {
  for (int i = 0; i < 6000; ++i) {
    for (const auto &entry : fs::directory_iterator(directory))
      if (entry.path().filename().string().find(text) != std::string::npos)
        return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL() << "no file within a minute";
}

TEST_F(RunRanksTest, AnInterruptionBeforeTheFirstStepEndsAll) {
  jobs = 777;
  const pid_t zero = startRank(0, "--data data.safetensors");
  waitForFile(directory, "test777"); // it waits for rank 1
  ::kill(zero, SIGTERM);
  const pid_t one = startRank(1, "--data data.safetensors");
  for (const Outcome &outcome : {finish(zero, "0"), finish(one, "1")}) {
    EXPECT_EQ(outcome.code, 75);
    EXPECT_THAT(outcome.err, HasSubstr("interrupted before the first step"));
    EXPECT_THAT(outcome.out, Not(HasSubstr("step 1/")));
  }
}

TEST_F(RunRanksTest, AnInterruptionOfTheLauncherEndsAll) {
  const pid_t child = start({"p2.dsx", "--ranks", "2", "--data", "data.safetensors", "--steps", "100000000",
                             "--save-weights", "w.safetensors"});
  waitForStep(at("out"));
  ::kill(child, SIGTERM);
  EXPECT_EQ(finish(child).code, 75);
  EXPECT_TRUE(SafeTensorsFile::open(at("w.safetensors")));
}

TEST_F(RunRanksTest, ALossThatIsNotANumberEndsAllRanksAlike) {
  writeData("nan.safetensors", 64, /*badSample=*/2 * kRows + 1); // of rank 0 in step 3
  const auto [zero, one] = trainBoth("--data nan.safetensors", "--data nan.safetensors");
  for (const Outcome &outcome : {zero, one}) {
    EXPECT_EQ(outcome.code, 8) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("step 3: the loss is nan"));
  }
}

TEST_F(RunRanksTest, ComparesReplicas) {
  const Outcome alone = train(2, "--data data.safetensors --steps 4 --check-replicas 2");
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(alone.err, HasSubstr("--check-replicas compares nothing: each rank holds what no other does"));
  write(RankedRegression(Mesh{{"dp", 2}, {"tp", 2}}).b.program, "p4.dsx");
  const Outcome outcome = train(4, "--data data.safetensors --steps 5 --check-replicas 2");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("replicas of 36 B compared 2 times in ")); // half of 18 elements
  EXPECT_THAT(outcome.err, Not(HasSubstr("comparison of replicas")));
}

TEST_F(RunRanksTest, RunsUnderMpirun) {
  if (std::system("command -v mpirun > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "no mpirun";
  const std::vector<uint8_t> launched = weights(2, "--steps 3");
  fs::remove(at("w.safetensors"));
  const std::string command = "cd " + directory +
                              " && mpirun --allow-run-as-root --oversubscribe -n 2 " DS_RUN
                              " p2.dsx --data data.safetensors --steps 3 --timeout 20 --log-jsonl log.jsonl"
                              " --save-weights w.safetensors > out 2> err";
  const int code = std::system(command.c_str());
  const std::vector<uint8_t> messages = readBytes(at("err"));
  ASSERT_EQ(code, 0) << std::string(messages.begin(), messages.end());
  EXPECT_EQ(readBytes(at("w.safetensors")), launched);
  EXPECT_EQ(log("log.jsonl").size(), 3u);
}

TEST_F(RunRanksTest, ADeadRankEndsTheOthers) {
  ++jobs;
  fs::remove(at("out0"));
  const std::string options = "--data data.safetensors --steps 100000000 --save-weights w.safetensors";
  const pid_t zero = startRank(0, options), one = startRank(1, options);
  waitForStep(at("out0"));
  ::kill(one, SIGKILL);
  EXPECT_EQ(finish(one, "1").code, 128 + SIGKILL);
  const Outcome survivor = finish(zero, "0");
  EXPECT_EQ(survivor.code, 7);
  EXPECT_THAT(survivor.err, HasSubstr("rank 1 on host "));
  EXPECT_FALSE(fs::exists(at("w.safetensors")));
}

TEST_F(RunRanksTest, AnErrorOfOneRankReachesTheOthersWithItsReason) {
  writeData("short.safetensors", 4);
  const auto [zero, one] = trainBoth("--data data.safetensors", "--data short.safetensors");
  EXPECT_EQ(one.code, 3);
  EXPECT_THAT(one.err, HasSubstr("one global batch needs 8"));
  EXPECT_EQ(zero.code, 7);
  EXPECT_THAT(zero.err, HasSubstr("one global batch needs 8"));
}

} // namespace
} // namespace ds::rt
