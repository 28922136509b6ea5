//===- ClusterTest.cpp - Reading cluster descriptions --------------------------------===//
//
// The built-in ones are whole and name their sources; mistakes are told with place and nearest key.
//
//===---------------------------------------------------------------------------===//
#include "ds/Config/Cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

using namespace ds;
using namespace ds::config;
using testing::HasSubstr;

static std::string told(const Result<Cluster> &result) {
  return result ? "ok" : result.error().message + " [" + result.error().hint + "]";
}

/// What a built-in description with some figures changed says.
static std::string change(const std::string &members) {
  return told(readClusterText("{\"name\": \"mine\", \"base\": \"a100-80g\",\n" + members + "}", "c"));
}

TEST(Cluster, BuiltInOnesAreWhole) {
  EXPECT_EQ(builtinClusterNames().size(), 12u);
  for (std::string_view name : builtinClusterNames()) {
    Result<Cluster> cluster = readCluster(std::string(name));
    ASSERT_TRUE(cluster) << told(cluster);
    EXPECT_EQ(cluster->name, name);
    EXPECT_GT(cluster->device.memoryBytes, cluster->device.contextBytes);
    EXPECT_FALSE(cluster->device.matmulFlops[DType::F32].empty());
  }
}

TEST(Cluster, BuiltInFiguresNameTheirSource) {
  for (std::string_view name : builtinClusterNames()) {
    std::ifstream file(std::string(DS_CLUSTER_FILES) + "/" + std::string(name) + ".json");
    ASSERT_TRUE(file) << name;
    std::string line, above;
    while (std::getline(file, line)) {
      bool figure = line.find("_bytes") != std::string::npos || line.find("flops\":") != std::string::npos;
      bool plain = line.find('{') != std::string::npos && line.find('}') == std::string::npos;
      EXPECT_TRUE(!figure || plain || line.find("//") != std::string::npos) << name << ": " << line;
    }
  }
}

TEST(Cluster, BuiltInOnesSayTheirArchitecture) {
  const std::pair<const char *, const char *> architectures[] = {
      {"cpu", "cpu"},        {"v100-32g", "sm_70"}, {"dgx-2", "sm_70"},    {"a100-40g", "sm_80"},
      {"a100-80g", "sm_80"}, {"dgx-a100", "sm_80"}, {"h100-80g", "sm_90"}, {"dgx-h100", "sm_90"},
      {"h200", "sm_90"},     {"dgx-h200", "sm_90"}, {"rtx3090", "sm_86"},  {"rtx4090", "sm_89"}};
  EXPECT_EQ(std::size(architectures), builtinClusterNames().size());
  for (auto [name, architecture] : architectures)
    EXPECT_EQ(builtinCluster(name).device.architecture, architecture) << name;
  EXPECT_EQ(readCluster("4x-rtx3090")->device.architecture, "sm_86");
}

TEST(Cluster, BuiltInGpusReachNoMoreThanWasEverMeasured) {
  for (std::string_view name : builtinClusterNames()) {
    DeviceSpec device = builtinCluster(name).device;
    if (!device.architecture.starts_with("sm_"))
      continue;
    // docs/cost-model.md has the sources.
    EXPECT_LE(device.memoryEfficiency, 0.9) << name;
    EXPECT_GT(device.multiprocessors, 0) << name;
    for (DType dtype : {DType::F16, DType::BF16})
      for (auto [size, rate] : device.matmulFlops[dtype].points)
        EXPECT_LE(rate, device.architecture == "sm_90" ? 800e12 : 0.92 * device.peakFlops[dtype]) << name;
    for (size_t row = 0; row < device.attentionShapes.rates.size(); ++row)
      for (double rate : device.attentionShapes.rates[row])
        EXPECT_LE(rate, device.architecture == "sm_90" ? 740e12 : device.peakFlops[DType::BF16]) << name;
  }
}

TEST(Cluster, NodesOfNDevices) {
  Result<Cluster> four = readCluster("4x-rtx3090"), eight = readCluster("8xh100-80g");
  ASSERT_TRUE(four && eight);
  EXPECT_EQ(four->name, "4x-rtx3090");
  EXPECT_EQ(four->devicesPerNode, 4);
  EXPECT_EQ(four->devices(), 4);
  EXPECT_EQ(four->device.memoryBytes, int64_t{24} << 30);
  EXPECT_EQ(eight->devices(), 8);
  EXPECT_EQ(readCluster("dgx-a100")->devices(), std::nullopt); // as many nodes as asked for
  EXPECT_THAT(told(readCluster("0x-rtx3090")), HasSubstr("is no built-in cluster"));
  EXPECT_THAT(told(readCluster("4x-rtx3080")), HasSubstr("is no built-in cluster"));
  EXPECT_THAT(told(readCluster("a100-80gb")), HasSubstr("did you mean \"a100-80g\"?"));
}

TEST(Cluster, ABaseGivesWhatTheFileHasNot) {
  Result<Cluster> cluster = readClusterText(
      "{name: 'mine', base: 'a100-80g', nodes: 2, device: {memory_bytes: 1e11}, nvme: {bytes: 5}}", "c");
  ASSERT_TRUE(cluster) << told(cluster);
  EXPECT_EQ(cluster->device.memoryBytes, 100000000000);
  EXPECT_EQ(cluster->devices(), 16);
  EXPECT_EQ(cluster->device.peakFlops[DType::F16], 312e12);
  EXPECT_EQ(cluster->nvme.readBytesPerSecond, 25e9);
  EXPECT_THAT(told(readClusterText("{base: 'a100'}", "c")),
              HasSubstr("c:1:2 (byte 1): \"base\" names no built-in cluster: \"a100\""));
}

TEST(Cluster, MistakesAreToldWithPlaceAndUnit) {
  const std::pair<const char *, const char *> cases[] = {
      {"device: {memory_bytes: 0}",
       "\"device.memory_bytes\" expects an integer greater than 0 (bytes), but got "
       "the number 0"},
      {"device: {memory_bytes: -1}", "but got the number -1"},
      {"device: {launch_seconds: 0}", "expects a number greater than 0 (s), but got the number 0"},
      {"inside: {latency_seconds: '5us'}", "but got the string \"5us\""},
      {"device: {memory_efficiency: 1.5}", "a number greater than 0 and at most 1"},
      {"device: {matmul_flops: {fp16: [[512, 1e12], [256, 2e12]]}}", "with rising sizes"},
      {"device: {matmul_flops: {fp16: []}}", "a list of [size, rate] pairs"},
      {"device: {matmul_flops: {fp16: [[512]]}}", "a list of [size, rate] pairs"},
      {"device: {matmul_flops: {fp16: [[512, 4e14]]}}", "exceeds the device's peak"},
      {"device: {context_bytes: 85899345920}", "leaves nothing of"},
      {"device: {architecture: 90}", "expects \"cpu\", or \"sm_\" and a compute capability"},
      {"device: {architecture: 'sm_9'}", "but got the string \"sm_9\""},
      {"device: {architecture: 'cuda:sm_90'}", "as in \"sm_90\""},
      {"inside: {direct_reduce_scatter: 1}", "expects true or false"},
      {"nodes: 1.5", "\"nodes\" expects an integer greater than 0"},
      {"device: 4", "\"device\" expects an object, but got the number 4"},
      {"device: {memory_byte: 1}",
       "unknown key \"device.memory_byte\" [did you mean \"device.memory_bytes\"?]"},
      {"hots: {cores: 4}", "unknown key \"hots\""},
      {"between: {port_bytes_per_secnd: 1}", "did you mean \"between.port_bytes_per_second\"?"},
      {"nodes: 2, nodes: 3", "c:2:11"},
  };
  for (auto [members, words] : cases)
    EXPECT_THAT(change(members), HasSubstr(words)) << members;
  EXPECT_THAT(change("nodes: 0,\nhost: {cores: 0}"),
              testing::AllOf(HasSubstr("c:2:1 (byte 37): \"nodes\""), HasSubstr("c:3:8 (byte")));
  EXPECT_EQ(change("nodes: 4"), "ok");
}

TEST(Cluster, WithoutABaseEveryFigureIsNeeded) {
  std::string message = told(readClusterText("{\"name\": \"bare\"}", "c"));
  for (const char *key : {"devices_per_node", "device.memory_bytes", "device.matmul_flops.fp32", "host.cores",
                          "inside.bytes_per_second"})
    EXPECT_THAT(message, HasSubstr("\"" + std::string(key) + "\" is missing"));
  EXPECT_THAT(message, testing::Not(HasSubstr("between")));
  Result<Cluster> missing = readCluster("/does/not/exist.json");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ExitCode::Io);
}

TEST(Cluster, ShapesAreAFullGridOfSizes) {
  const std::string full =
      "device: {matmul_shapes: {fp16: [[1, 1, 1, 1e9, 1e9, 1e9], [1, 1, 4, 2e9, 2e9, 2e9],"
      "[1, 8, 1, 1e9, 1e9, 1e9], [1, 8, 4, 4e9, 1e9, 1e9]]}}";
  EXPECT_EQ(change(full), "ok");
  EXPECT_EQ(change("device: {attention_shapes: [[128, 64, 1e12, 2e12]]}"), "ok");
  EXPECT_EQ(change("device: {column_bytes_per_second: [[64, 1e6, 1e9], [256, 1e6, 2e9]]}"), "ok");
  EXPECT_THAT(change("device: {column_bytes_per_second: [[64, 1e6, 1e9, 1e9]]}"),
              HasSubstr("device.column_bytes_per_second"));
  const std::string shapes = "device: {matmul_shapes: {fp16: [", row = "[1, 1, 1, 1, 1, 1]";
  const std::vector<std::string> cases = {
      shapes + "]}}",
      shapes + "[1, 1, 1, 1e9, 1e9]]}}",
      shapes + "[1, 1, 1, 1e9, 1e9, 0]]}}",
      shapes + row + "," + row + "]}}",                             // twice
      shapes + "[1, 1, 4, 1, 1, 1]," + row + "]}}",                 // falling
      shapes + row + ", [1, 1, 4, 1, 1, 1], [1, 8, 1, 1, 1, 1]]}}", // (1, 8, 4) is missing
      "device: {matmul_shapes: 5}",
  };
  for (const std::string &members : cases)
    EXPECT_THAT(change(members), HasSubstr("device.matmul_shapes")) << members;
  EXPECT_THAT(change(cases[5]), HasSubstr("over all combinations of some sizes"));
}

TEST(Cluster, RatesBetweenShapesFollowPowersOfTheSizes) {
  ShapeTable table;
  table.axes = {{1, 100}, {10, 1000}};
  table.rates = {{1e9}, {4e9}, {4e9}, {16e9}};
  auto at = [&](double m, double n) { return table.at({m, n}, 0); };
  EXPECT_NEAR(at(1, 10), 1e9, 1);
  EXPECT_NEAR(at(100, 1000), 16e9, 1);
  EXPECT_NEAR(at(10, 10), 2e9, 1);      // half way in logarithms along one axis
  EXPECT_NEAR(at(10, 100), 4e9, 1);     // and along both
  EXPECT_NEAR(at(1e6, 1e6), 16e9, 1);   // beyond: as at the end
  EXPECT_NEAR(at(0.25, 10), 0.25e9, 1); // below: the time stays, and so the rate falls with the size
  EXPECT_NEAR(at(0.5, 2.5), 0.125e9, 1);
}

TEST(Cluster, OneDeviceNeedsNoLinks) {
  const char *alone =
      "{name: 'x', devices_per_node: 1, device: {name: 'd', memory_bytes: 1e9, context_bytes: 1,"
      "launch_seconds: 1e-6, memory_bytes_per_second: 1e9, memory_efficiency: 1,"
      "peak_flops: {fp32: 1e9}, matmul_flops: {fp32: 1e9}}, host: {memory_bytes: 1, cores: 1,"
      "memory_bytes_per_second: 1, to_device_bytes_per_second: 1, devices_per_link: 1}}";
  EXPECT_EQ(told(readClusterText(alone, "c")), "ok");
  std::string two = alone;
  two.replace(two.find("node: 1"), 7, "node: 2");
  EXPECT_THAT(told(readClusterText(two, "c")), HasSubstr("\"inside.bytes_per_second\" is missing"));
}

TEST(Cluster, MutatedTextsAreReadOrRefused) {
  std::ifstream file(std::string(DS_CLUSTER_FILES) + "/a100-80g.json");
  std::stringstream text;
  text << file.rdbuf();
  std::mt19937 random(7);
  size_t refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string mutated = text.str();
    for (int edits = 0; edits < 1 + round % 3; ++edits) {
      size_t at = random() % mutated.size();
      if (random() % 2)
        mutated[at] = "0-1{}[],:\"x.e\n"[random() % 14];
      else
        mutated.erase(at, 1 + random() % 20);
    }
    Result<Cluster> cluster = readClusterText(mutated, "c");
    if (cluster) {
      EXPECT_GT(cluster->device.memoryBytes, cluster->device.contextBytes);
      EXPECT_GT(cluster->device.matmulFlops[DType::F32].at(100), 0);
    } else {
      ++refused;
      EXPECT_EQ(cluster.error().code, ExitCode::Invalid);
      EXPECT_FALSE(cluster.error().message.empty());
    }
  }
  EXPECT_GT(refused, 500u);
}

TEST(Cluster, RanksMustHaveDevices) {
  Cluster cluster = *readCluster("4x-rtx3090");
  EXPECT_TRUE(checkRanksFit(cluster, 4));
  Status status = checkRanksFit(cluster, 5);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Invalid);
  EXPECT_EQ(status.error().message, "--ranks 5 exceeds the 4 devices of cluster \"4x-rtx3090\"");
  EXPECT_TRUE(checkRanksFit(*readCluster("dgx-a100"), 3072));
  cluster = builtinCluster("cpu");
  cluster.nodes = 0;
  EXPECT_THAT(checkRanksFit(cluster, 65).error().message, HasSubstr("nothing joins the nodes"));
}

TEST(Cluster, CurvesJoinTheirPoints) {
  Curve curve{{{1, 10}, {4, 30}, {8, 50}}};
  EXPECT_EQ(curve.at(0.5), 10);
  EXPECT_EQ(curve.at(1), 10);
  EXPECT_NEAR(curve.at(2), 20, 1e-12); // half way between 1 and 4 on a logarithm
  EXPECT_EQ(curve.at(4), 30);
  EXPECT_EQ(curve.at(100), 50);
}

TEST(Cluster, DocumentationIsGenerated) {
  std::stringstream text;
  text << std::ifstream(DS_CLUSTER_REFERENCE).rdbuf();
  EXPECT_THAT(text.str(), testing::EndsWith("\n" + clusterReference()))
      << "run build/unittests/ds-config-reference docs/config.md docs/cluster.md";
  for (std::string_view name : builtinClusterNames())
    EXPECT_THAT(text.str(), HasSubstr("`" + std::string(name) + "`"));
}
