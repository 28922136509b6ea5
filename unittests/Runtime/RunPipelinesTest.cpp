//===- RunPipelinesTest.cpp - ds-run on pipelines of which transfers outlive segments -----===//
#include "LayersBuilder.h"
#include "RunFixture.h"

#include <fmt/format.h>

#include <cstdlib>
#include <random>

namespace ds::rt {
namespace {

using namespace test;
using testing::ContainsRegex;
using testing::HasSubstr;

using enum PipelineKind;

class RunPipelinesTest : public RunFixture {
protected:
  RunPipelinesTest() {
    constexpr int64_t kSamples = 64, kWidth = LayersBuilder::kWidth;
    std::vector<float> x(kSamples * kWidth), t(kSamples * kWidth);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = std::sin(float(i * i % 1009)), t[i] = std::cos(float(i * i % 997));
    const TensorSource sources[] = {{"x", FileDType::F32, {kSamples, kWidth}, x.data()},
                                    {"t", FileDType::F32, {kSamples, kWidth}, t.data()}};
    EXPECT_TRUE(writeSafeTensors(at("layers.safetensors"), sources));
  }
  void writePipeline(const Pipeline &pipeline) {
    Program program = LayersBuilder(pipeline, tableOf(pipeline), 0).b.program;
    program.microBatch = LayersBuilder::kRows;
    for (State &state : program.states)
      state.init = {Init::Kind::Normal, 0, 0.4};
    write(program);
  }
  std::vector<std::string> command(uint32_t ranks, const std::string &options, int timeout = 20) {
    std::istringstream words(
        fmt::format("p.dsx --ranks {} --timeout {} --data layers.safetensors {}", ranks, timeout, options));
    return {std::istream_iterator<std::string>(words), {}};
  }
  Outcome train(const Pipeline &pipeline, const std::string &options,
                const std::vector<std::string> &environment = {}) {
    writePipeline(pipeline);
    return finish(start(command(pipeline.stages, options), "", environment));
  }
  std::vector<pid_t> startRanks(int job, int timeout);
  std::vector<double> losses(const std::string &file) {
    std::vector<double> steps;
    for (const auto &line : log(file))
      steps.push_back(line.at("loss"));
    return steps;
  }
};

constexpr const char *kFive = "--steps 5 --seed 3 --check-replicas 1 ";

/// All schedules of one cut equal each other and one stage, weights included, by each transport and where
/// plans are checked.
TEST_F(RunPipelinesTest, TrainAsOneStageDoes) {
  const Outcome one =
      train({GPipe, 1, 4, 4}, std::string(kFive) + "--save-weights one --log-jsonl one.jsonl");
  ASSERT_EQ(one.code, 0) << one.err;
  ASSERT_EQ(losses("one.jsonl").size(), 5u);
  EXPECT_LT(losses("one.jsonl")[4], losses("one.jsonl")[0]);
  for (const Pipeline &pipeline :
       {Pipeline{GPipe, 4, 1, 4}, {OneForwardOneBackward, 4, 1, 4}, {Interleaved, 2, 2, 4}})
    for (const char *environment : {"DS_TRANSPORT=memory", "DS_TRANSPORT=gloo", "DS_POISON=1"}) {
      fs::remove(at("many"));
      const Outcome many =
          train(pipeline, std::string(kFive) + "--save-weights many --log-jsonl many.jsonl", {environment});
      ASSERT_EQ(many.code, 0) << many.err;
      EXPECT_EQ(losses("many.jsonl"), losses("one.jsonl")) << environment;
      EXPECT_EQ(readBytes(at("many")), readBytes(at("one"))) << environment;
    }
}

/// A trace has what each lane did, on the track of its stream.
TEST_F(RunPipelinesTest, TracesShowTransfersBesideWhatComputes) {
  const Outcome outcome = train({OneForwardOneBackward, 2, 1, 4}, "--steps 2 --trace t.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char *file : {"t.json", "t.rank1.json"}) {
    const auto trace = nlohmann::json::parse(std::ifstream(at(file)));
    std::map<int64_t, size_t> byTrack;
    for (const auto &event : trace.at("traceEvents"))
      if (event.at("ph") == "X")
        ++byTrack[event.at("tid")];
    EXPECT_EQ(byTrack[1], 2u * 2 * 4) << file << ": values and gradients of 4 micro-batches in 2 steps";
    EXPECT_TRUE(hasText(at(file), "transfer")) << file;
  }
}

/// The ranks of `job`, three of them, each a process of its own.
std::vector<pid_t> RunPipelinesTest::startRanks(int job, int timeout) {
  std::vector<pid_t> ranks;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    fs::remove(at("out" + std::to_string(rank)));
    std::vector<std::string> words = command(3, "--steps 100000000", timeout);
    words.erase(words.begin() + 1, words.begin() + 3); // --ranks
    ranks.push_back(start(words, std::to_string(rank),
                          {"DS_RANK=" + std::to_string(rank), "DS_WORLD=3", "DS_RENDEZVOUS=" + directory,
                           "DS_NONCE=test" + std::to_string(job), "DS_ONE_HOST=1",
                           job % 2 ? "DS_TRANSPORT=gloo" : "DS_TRANSPORT=memory"}));
  }
  waitForStep(at("out0"));
  return ranks;
}

/// A rank that is killed at any moment ends the others, which name its place and what they waited in.
TEST_F(RunPipelinesTest, ARankThatIsKilledEndsTheOthers) {
  writePipeline({OneForwardOneBackward, 3, 1, 16});
  std::mt19937 random(11);
  int inTransfers = 0;
  for (int job = 0; job < 20; ++job) {
    const uint32_t victim = random() % 3;
    const std::vector<pid_t> ranks = startRanks(job, 20);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    ::kill(ranks[victim], SIGKILL);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      const Outcome outcome = finish(ranks[rank], std::to_string(rank));
      EXPECT_EQ(outcome.code, rank == victim ? 128 + SIGKILL : 7) << outcome.err;
      if (rank == victim)
        continue;
      EXPECT_THAT(outcome.err, ContainsRegex(fmt::format("rank {0} on host [^ ]+ \\(pp {0}\\)", victim)));
      inTransfers += outcome.err.find("value ") != std::string::npos ||
                     outcome.err.find("gradient ") != std::string::npos;
    }
  }
  EXPECT_GT(inTransfers, 10) << "of 40; the others were between steps";
}

/// Where a rank stands still, those that wait for it name its place and the transfer that they wait in.
TEST_F(RunPipelinesTest, ARankThatStandsStillEndsTheOthers) {
  writePipeline({OneForwardOneBackward, 3, 1, 16});
  std::mt19937 random(5);
  const int jobs = std::getenv("DS_ALL_FAULTS") ? 9 : 2;
  for (int job = 0; job < jobs; ++job) {
    const uint32_t victim = random() % 3;
    const std::vector<pid_t> ranks = startRanks(job, 2);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    const auto begin = std::chrono::steady_clock::now();
    ::kill(ranks[victim], SIGSTOP);
    std::string told;
    for (uint32_t rank = 0; rank < 3; ++rank) {
      if (rank == victim)
        continue;
      const Outcome outcome = finish(ranks[rank], std::to_string(rank));
      EXPECT_EQ(outcome.code, 7) << outcome.err;
      told += outcome.err;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    EXPECT_THAT(told, ContainsRegex(fmt::format("rank {0} on host [^ ]+ \\(pp {0}\\)", victim)));
    EXPECT_THAT(told, ContainsRegex("(value|gradient) [01]|agreement to continue|values of stages"));
    ::kill(ranks[victim], SIGKILL);
    finish(ranks[victim], std::to_string(victim));
  }
}

} // namespace
} // namespace ds::rt
