//===- CudaRanksTest.cpp - Ranks with a fake device each ---------------------------------------------===//
//
// Every rank is a process that trains on a device of its own; the fake NCCL carries the parts. Streams for
// gathers and reductions run beside the computing one, and only events keep their order.
//
//===---------------------------------------------------------------------------===//
#include "RankedRegression.h"
#include "ToCuda.h"

namespace ds::rt {
namespace {

using namespace test;
using testing::HasSubstr;
using testing::Not;

class CudaRanksTest : public RunFixture {
protected:
  /// ds-run --device cuda on `world` ranks, with more of the environment.
  Outcome runRanks(uint32_t world, const std::string &options, std::vector<std::string> more = {}) {
    return runMesh({{"dp", world}}, options, std::move(more));
  }
  Outcome runMesh(const Mesh &mesh, const std::string &options, std::vector<std::string> more = {}) {
    Program program = RankedRegression(mesh).b.program;
    const uint32_t world = mesh.size();
    write(program, "cpu.dsx");
    toCuda(program);
    write(program, "p.dsx");
    std::vector<std::string> environment = {"DS_CUDA_DRIVER=" DS_FAKE_CUDA,  "DS_CUBLASLT=" DS_FAKE_CUDA,
                                            "DS_NVML=" DS_FAKE_CUDA,         "DS_NCCL=" DS_FAKE_CUDA,
                                            "DS_CACHE_DIR=" + at("cache"),   "DS_FAKE_PROGRAM=" + at("p.dsx"),
                                            "DS_FAKE_TWIN=" + at("cpu.dsx"), "DS_FAKE_DEVICES=4"};
    environment.insert(environment.end(), more.begin(), more.end());
    std::istringstream words("p.dsx --device cuda --data data.safetensors " + options +
                             (world > 1 ? " --ranks " + std::to_string(world) : ""));
    return finish(start({std::istream_iterator<std::string>(words), {}}, "", environment));
  }
  /// The colors of the splits of `rank`, in order; its calls are in "calls.RANK".
  std::vector<uint32_t> splitsOf(uint32_t rank) {
    std::ifstream calls(at("calls." + std::to_string(rank)));
    const std::string name = "ncclCommSplit ";
    std::vector<uint32_t> colors;
    for (std::string line; std::getline(calls, line);)
      if (line.starts_with(name))
        colors.push_back(static_cast<uint32_t>(std::stoul(line.substr(name.size()))));
    return colors;
  }
  std::vector<double> losses(const std::string &name) {
    std::vector<double> all;
    for (const auto &line : log(name))
      all.push_back(line["loss"].get<double>());
    return all;
  }
};

TEST_F(CudaRanksTest, TrainAsOneDoes) {
  const Outcome one = runRanks(1, "--steps 12 --log-jsonl one.jsonl");
  ASSERT_EQ(one.code, 0) << one.err;
  for (uint32_t world : {2u, 4u}) {
    const Outcome outcome =
        runRanks(world, "--steps 12 --log-jsonl ranks.jsonl --eval-data data.safetensors");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto expected = losses("one.jsonl"), got = losses("ranks.jsonl");
    ASSERT_EQ(got.size(), 12u);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], expected[i], 1e-5 * expected[i]) << world << " ranks, step " << i + 1;
  }
}

TEST_F(CudaRanksTest, GroupsOfAMeshSplit) {
  const Outcome two = runRanks(2, "--steps 6 --log-jsonl two.jsonl");
  ASSERT_EQ(two.code, 0) << two.err;
  for (const Mesh &mesh : {Mesh{{"dp", 2}, {"tp", 2}}, Mesh{{"tp", 2}, {"dp", 2}}}) {
    const Outcome outcome =
        runMesh(mesh, "--steps 6 --log-jsonl four.jsonl", {"DS_FAKE_CALLS=" + at("calls")});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(losses("four.jsonl"), losses("two.jsonl")) << mesh.spell();
    // Stream 0 along each axis, then the streams of gathers and reductions along dp, on every rank.
    const AxisSet dp = mesh.find("dp").value(), first = {0}, second = {1};
    for (uint32_t rank = 0; rank < 4; ++rank) {
      std::vector<uint32_t> colors;
      for (AxisSet axes : {first, second, dp, dp})
        colors.push_back(mesh.firstOfGroup(rank, axes));
      EXPECT_EQ(splitsOf(rank), colors) << mesh.spell() << ", rank " << rank;
    }
  }
}

TEST_F(CudaRanksTest, CompareReplicasOfTheirDevices) {
  const Outcome outcome = runMesh({{"dp", 2}, {"tp", 2}}, "--steps 4 --check-replicas 2");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("replicas of 36 B compared 2 times in "));
}

TEST_F(CudaRanksTest, ARankThatDoesNotTakePartIsNoticed) {
  // Rank 1 never gives its parts: nobody's first gather ends.
  const Outcome outcome = runRanks(2, "--steps 3 --timeout 2", {"DS_FAKE_LOST=1"});
  EXPECT_EQ(outcome.code, 7) << outcome.err;
  EXPECT_THAT(outcome.err,
              testing::ContainsRegex("rank [01] on host .* waits for collective 'all_gather_0': no end "
                                     "after 2 s"));
  EXPECT_THAT(outcome.err, testing::ContainsRegex("rank [01] has been waiting for .* s in collective "
                                                  "'all_gather_0' on its GPU: all ranks answer"));
  EXPECT_THAT(outcome.err, HasSubstr("stacks of rank 0"));
  EXPECT_THAT(outcome.err, HasSubstr("stacks of rank 1"));
}

//===----------------------------------------------------------------------===//
// NCCL works on its own time
//===----------------------------------------------------------------------===//

TEST_F(CudaRanksTest, WaitForWhatNcclDoesLater) {
  // However long making and splitting take, nobody uses what is not there yet.
  for (const char *delay : {"DS_FAKE_NCCL_DELAY=0", "DS_FAKE_NCCL_DELAY=150"}) {
    const Outcome outcome = runRanks(2, "--steps 3", {delay});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, Not(HasSubstr("NCCL"))) << "nor is leaving worth a word";
  }
}

TEST_F(CudaRanksTest, ARankThatNeverSplitsIsNoticed) {
  const Outcome outcome = runRanks(2, "--steps 3 --timeout 2", {"DS_FAKE_NCCL_ABSENT=1"});
  EXPECT_EQ(outcome.code, 7) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("NCCL, splitting the ranks: no end after 2 s"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("fake")));
}

/// What fails on rank 1 after its call has returned, and how it is told.
TEST_F(CudaRanksTest, ErrorsThatComeLaterAreTold) {
  struct Late {
    const char *error;
    int code;
    const char *message;
    const char *slow = ""; ///< the rank that has not put its own call on the stream by then
  };
  const Late cases[] = {
      {"1 ncclCommInitRankConfig 1", 9, "NCCL, connecting the ranks: a system error"},
      {"1 ncclCommSplit 1", 9, "NCCL, splitting the ranks: a system error"},
      {"1 ncclReduceScatter 1", 7, "NCCL, reduce_scatter_2: a remote error"},
      {"1 ncclReduceScatter 2", 7, "NCCL"}, // while the graph is recorded
      {"1 ncclReduceScatter 2", 7, "NCCL", "0"},
  };
  for (const Late &late : cases) {
    const Outcome outcome = runRanks(
        2, "--steps 3 --timeout 5",
        {std::string("DS_FAKE_NCCL_ERROR=") + late.error, std::string("DS_FAKE_NCCL_SLOW=") + late.slow});
    EXPECT_EQ(outcome.code, late.code) << late.error << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(late.message)) << late.error;
    EXPECT_THAT(outcome.err, Not(HasSubstr("fake NCCL"))) << late.error;
  }
}

TEST_F(CudaRanksTest, ATimeOutEndsAGraphThatRuns) {
  // Step 2 is the first that is a graph. NCCL does not come back from an abort before the graph is destroyed.
  const Outcome outcome = runRanks(2, "--steps 4 --timeout 2",
                                   {"DS_FAKE_LOST=1", "DS_FAKE_LOST_FROM=2", "DS_FAKE_PATIENCE=1000"});
  EXPECT_EQ(outcome.code, 7) << outcome.err;
  EXPECT_THAT(outcome.err,
              testing::ContainsRegex("step 2: .*waits for collective 'all_gather_0': no end after 2 s"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("fake NCCL")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("NCCL, aborting")));
}

TEST_F(CudaRanksTest, AnAbortThatHangsIsLeftBehind) {
  // What it holds is leaked on purpose, which is not worth a sanitizer's word.
  const Outcome outcome = runRanks(2, "--steps 3 --timeout 1",
                                   {"DS_FAKE_LOST=1", "DS_FAKE_NCCL_STUCK=1", "ASAN_OPTIONS=detect_leaks=0"});
  EXPECT_EQ(outcome.code, 7) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("[rank 1] ds-run: NCCL, aborting: no end after 1 s"));
}

//===----------------------------------------------------------------------===//
// One choice for all
//===----------------------------------------------------------------------===//

TEST_F(CudaRanksTest, TakeTheAlgorithmsOfRank0) {
  // On rank 0 the first algorithm is slow; alone, rank 1 would take it.
  const Outcome outcome = runRanks(2, "--steps 3", {"DS_FAKE_SLOW=0 1", "DS_FAKE_CALLS=" + at("calls")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<uint8_t> bytes = readBytes(at("calls.1"));
  const std::string calls(bytes.begin(), bytes.end());
  EXPECT_THAT(calls, HasSubstr("cublasLtMatmul 2"));
  EXPECT_THAT(calls, Not(HasSubstr("cublasLtMatmul 1")));
  EXPECT_THAT(calls, Not(HasSubstr("GetHeuristic")));
}

TEST_F(CudaRanksTest, ARankThatCannotDoAsRank0IsNamed) {
  const Outcome outcome = runRanks(2, "--steps 3", {"DS_FAKE_SLOW=0 1", "DS_FAKE_REFUSES=1 2"});
  EXPECT_EQ(outcome.code, 9) << outcome.err;
  EXPECT_THAT(outcome.err, testing::ContainsRegex(
                               "rank 1. ds-run: error: p.dsx: commands.3.: product of 4x6 and 6x3: what "
                               "rank 0 on host .* has chosen cannot be done here: "
                               "cuBLASLt, multiplying: not supported"));
}

TEST_F(CudaRanksTest, ARankWithoutADeviceIsNamed) {
  const Outcome outcome = runRanks(2, "--steps 3", {"DS_FAKE_DEVICES=1"});
  EXPECT_EQ(outcome.code, 9) << outcome.err;
  EXPECT_THAT(outcome.err, testing::ContainsRegex("rank 1 on host .* needs CUDA device 1, but there is 1"));
}

TEST_F(CudaRanksTest, AnOldNcclIsNamed) {
  const Outcome outcome = runRanks(2, "--steps 3", {"DS_FAKE_NCCL=21800"});
  EXPECT_EQ(outcome.code, 9) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("NCCL has version 2.18.0, but 2.23.0 is needed"));
}

} // namespace
} // namespace ds::rt
