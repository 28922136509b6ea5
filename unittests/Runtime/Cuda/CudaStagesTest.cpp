//===- CudaStagesTest.cpp - Stages that send each other what they compute on fake devices -------------===//
//
// Every rank is a process with a device of its own; the fake NCCL carries messages, as strict as NCCL's user
// guide lets it be.
//
//===---------------------------------------------------------------------------===//
#include "Comm/Processes.h"
#include "Comm/Ranks.h"
#include "LayersBuilder.h"
#include "ToCuda.h"
#include "TwoLayers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>
#include <sstream>

namespace ds::rt {
namespace {

using namespace test;
using testing::ContainsRegex;
using testing::HasSubstr;

class CudaStagesTest : public testing::Test {
protected:
  struct Ended {
    std::vector<int> codes;
    std::vector<std::string> outputs;
  };
  /// Plays `program` on `world` ranks for `steps`; `graphs` is DS_CUDA_GRAPH's value, or "poison".
  Ended play(const std::string &program, uint32_t world, int steps, const std::string &graphs = "require") {
    return play(program, TwoLayers(world == 1 ? 1 : 2).b.program, world, steps, graphs);
  }
  /// The same with a program that has its kernels.
  Ended play(const std::string &program, const Program &cpu, uint32_t world, int steps,
             const std::string &graphs) {
    TemporaryDirectory meeting;
    Program cuda = cpu;
    toCuda(cuda);
    EXPECT_TRUE(writeProgram(cpu, directory.path + "/cpu.dsx"));
    EXPECT_TRUE(writeProgram(cuda, directory.path + "/p.dsx"));
    std::map<std::string, std::string> environment = {{"DS_WORLD", std::to_string(world)},
                                                      {"DS_RENDEZVOUS", meeting.path},
                                                      {"DS_NONCE", "job"},
                                                      {"DS_ONE_HOST", "1"},
                                                      {"DS_FAKE_PROGRAM", directory.path + "/p.dsx"},
                                                      {"DS_FAKE_TWIN", directory.path + "/cpu.dsx"},
                                                      {"DS_FAKE_DEVICES", "4"},
                                                      {"DS_CACHE_DIR", meeting.path + "/cache"},
                                                      {"DS_FAKE_CALLS", directory.path + "/calls"},
                                                      {"DS_CUDA_GRAPH", graphs}};
    for (const char *name : {"DS_CUDA_DRIVER", "DS_CUBLASLT", "DS_NVML", "DS_NCCL"})
      environment[name] = DS_FAKE_CUDA;
    if (graphs == "poison")
      environment["DS_POISON"] = environment["DS_CUDA_GRAPH"] = "1"; // which then records nothing
    std::vector<Process> ranks;
    for (uint32_t rank = 0; rank < world; ++rank) {
      environment["DS_RANK"] = std::to_string(rank);
      ranks.emplace_back(std::vector<std::string>{DS_STAGES_PLAYER, program, std::to_string(steps)},
                         environment, directory.path + "/out." + std::to_string(rank));
    }
    Ended ended;
    for (Process &rank : ranks) {
      ended.codes.push_back(rank.wait(std::chrono::seconds(60)));
      ended.outputs.push_back(rank.output());
    }
    return ended;
  }
  std::string callsOf(uint32_t rank) const {
    std::ifstream file(directory.path + "/calls." + std::to_string(rank));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// As the player writes them.
  static std::string lines(const std::vector<double> &values) {
    std::string text;
    for (double value : values)
      text += fmt::format("{:a}\n", value);
    return text;
  }
  TemporaryDirectory directory;
};

TEST_F(CudaStagesTest, TrainAsOneDeviceDoes) {
  for (const char *graphs : {"0", "require"}) {
    const Ended one = play("layers", 1, 4, graphs), two = play("layers", 2, 4, graphs);
    ASSERT_EQ(one.codes, (std::vector<int>{0})) << one.outputs[0];
    ASSERT_EQ(two.codes, (std::vector<int>{0, 0})) << two.outputs[0] << two.outputs[1];
    EXPECT_EQ(std::count(one.outputs[0].begin(), one.outputs[0].end(), '\n'), 5 * 6 + 3 * 5);
    EXPECT_EQ(two.outputs[0] + two.outputs[1], one.outputs[0]) << "graphs: " << graphs;
  }
}

/// All schedules of four layers come to the weights and the loss of one device, as recorded steps, command by
/// command, measured and poisoned. The fake device runs streams in any order that events allow, the last one
/// first.
TEST_F(CudaStagesTest, PipelinesTrainAsOneDeviceDoes) {
  const auto playLayers = [&](const std::string &name, PipelineKind kind, uint32_t world,
                              const std::string &graphs) {
    const Ended ended =
        play(name, LayersBuilder(fourLayers(kind, world), tableOf(fourLayers(kind, world)), 0).b.program,
             world, 4, graphs);
    std::set<std::string> lines;
    int transfers = 0;
    for (uint32_t rank = 0; rank < world; ++rank) {
      EXPECT_EQ(ended.codes[rank], 0) << name << ": " << ended.outputs[rank];
      std::istringstream text(ended.outputs[rank]);
      for (std::string line; std::getline(text, line);)
        if (line.starts_with("transfers "))
          transfers += std::atoi(line.c_str() + 10);
        else
          lines.insert(line);
    }
    // Three borders, values and gradients, 4 micro-batches; both ends. Nothing is measured under poison.
    EXPECT_EQ(transfers, world == 1 || graphs == "poison" ? 0 : 3 * 2 * 4 * 2) << name;
    return lines;
  };
  const std::set<std::string> one = playLayers("gpipe", PipelineKind::GPipe, 1, "require");
  EXPECT_EQ(one.size(), 5u);
  for (const char *graphs : {"0", "require", "poison"}) {
    EXPECT_EQ(playLayers("gpipe", PipelineKind::GPipe, 4, graphs), one) << graphs;
    EXPECT_EQ(playLayers("1f1b", PipelineKind::OneForwardOneBackward, 4, graphs), one) << graphs;
    EXPECT_EQ(playLayers("interleaved", PipelineKind::Interleaved, 2, graphs), one) << graphs;
  }
}

/// The first messages are sent before anything is computed, so that no step waits for a connection.
TEST_F(CudaStagesTest, ConnectBeforeTheFirstStep) {
  const Ended two = play("layers", 2, 1);
  ASSERT_EQ(two.codes, (std::vector<int>{0, 0})) << two.outputs[0] << two.outputs[1];
  for (uint32_t rank : {0, 1}) {
    const std::string calls = callsOf(rank), partner = std::to_string(1 - rank);
    const size_t sent = calls.find("ncclSend " + partner), received = calls.find("ncclRecv " + partner);
    const size_t launched = calls.find("cuLaunchKernel");
    ASSERT_NE(launched, std::string::npos) << calls;
    EXPECT_LT(sent, launched) << "rank " << rank;
    EXPECT_LT(received, launched) << "rank " << rank;
  }
}

TEST_F(CudaStagesTest, MessagesOfAnExchangePassAtOnce) {
  const Ended two = play("swap", 2, 3, /*graphs=*/"0");
  ASSERT_EQ(two.codes, (std::vector<int>{0, 0})) << two.outputs[0] << two.outputs[1];
  EXPECT_EQ(two.outputs[0], lines({100, 101, 102, 103}));
  EXPECT_EQ(two.outputs[1], lines({0, 1, 2, 3}));
  const std::string calls = callsOf(0);
  int sends = 0;
  for (size_t at = 0; (at = calls.find("ncclSend 1\n", at)) != std::string::npos; ++at)
    ++sends;
  EXPECT_EQ(sends, 1 + 3) << "one connects, and each of 3 steps has one";
}

TEST_F(CudaStagesTest, PartsOfAnAllToAllAreMessages) {
  const Ended three = play("all_to_all", 3, 3);
  ASSERT_EQ(three.codes, (std::vector<int>{0, 0, 0})) << three.outputs[0] << three.outputs[2];
  EXPECT_EQ(three.outputs[1], lines({3, 4, 5, 103, 104, 105, 203, 204, 205})); // part 1 of each
}

TEST_F(CudaStagesTest, TheFakeRefusesWhatNcclWouldNotNotice) {
  const Ended two = play("short", 2, 1);
  EXPECT_EQ(two.codes[1], -SIGABRT);
  EXPECT_THAT(two.outputs[1], HasSubstr("fake NCCL: ncclRecv of 16 of type 7 from rank 0 on rank 1, which "
                                        "sends 32 of type 7"));
}

TEST_F(CudaStagesTest, AMessageThatDoesNotComeIsNamed) {
  const Ended two = play("unsent", 2, 1);
  EXPECT_EQ(two.codes[1], 7) << two.outputs[1];
  EXPECT_THAT(two.outputs[1],
              ContainsRegex("rank 1 on host .* waits for collective 'activation': no end after 2 s"));
}

/// A lane's next message is not the next one of the program: marks say which one it stands in.
TEST_F(CudaStagesTest, ATransferThatDoesNotComeIsNamed) {
  const Pipeline pipeline{PipelineKind::OneForwardOneBackward, 2, 1, 3};
  const Ended two =
      play("unsent-gradient", LayersBuilder(pipeline, tableOf(pipeline), 0).b.program, 2, 1, /*graphs=*/"0");
  EXPECT_EQ(two.codes[0], 7) << two.outputs[0];
  EXPECT_THAT(two.outputs[0],
              ContainsRegex("rank 0 on host .* waits for collective 'gradient 0': no end after 2 s"));
}

TEST_F(CudaStagesTest, AMessageThatNobodyTakesIsNamed) {
  const Ended two = play("unread", 2, 1);
  EXPECT_EQ(two.codes[0], 7) << two.outputs[0];
  EXPECT_THAT(two.outputs[0],
              ContainsRegex("rank 0 on host .* waits for collective 'activation': no end after 2 s"));
}

} // namespace
} // namespace ds::rt
