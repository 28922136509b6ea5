//===- KernelRatesTest.cpp - What single kernels reach on a GPU -----------------------===//
//
// The arithmetic of tiles, rows, columns and host cores, each with figures of its own; MeasuredTest.cpp holds
// those of `h200` to what ran.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/Rates.h"

#include <gtest/gtest.h>

using namespace ds;
using namespace ds::cost;

/// Within a share of what is expected.
#define EXPECT_WITHIN(value, expected, share) EXPECT_NEAR((value) / (expected), 1.0, share)

static Rates ratesOf(std::string_view name) { return Rates(config::builtinCluster(name)); }

/// A device of ten multiprocessors whose launches, fills and memory take no time.
static config::Cluster tenMultiprocessors() {
  config::Cluster cluster = config::builtinCluster("h100-80g");
  cluster.device.launchSeconds = 1e-12;
  cluster.device.memoryBytesPerSecond = 1e18;
  cluster.device.multiprocessors = 10;
  cluster.device.kernels.tileFlops = {{{1, 1e12}}};
  cluster.device.kernels.fillSeconds = 0;
  return cluster;
}

TEST(KernelRates, NodesOfAGraphFollowFaster) {
  Rates rates = ratesOf("h100-80g");
  EXPECT_EQ(rates.memorySeconds(0), 4e-6);
  const double node = 1.6e-6 + 1.1e-6; // the gap before it, and the shortest kernel
  EXPECT_DOUBLE_EQ(rates.ofProgram().memorySeconds(0), node);
  EXPECT_DOUBLE_EQ(rates.ofProgram().ofProgram().memorySeconds(0), node);
  EXPECT_EQ(Rates().ofProgram().memorySeconds(0), Rates().memorySeconds(0)); // the CPU has no graphs
  Result<config::Cluster> measured = config::readClusterText(
      "{name: 'mine', base: 'h100-80g', device: {launch_seconds: 2e-6}}", "c"); // as a calibration writes it
  ASSERT_TRUE(measured);
  EXPECT_EQ(Rates(*measured).ofProgram().memorySeconds(0), 2e-6);
}

TEST(KernelRates, ProductsTakeWholeWavesOfTiles) {
  const Rates rates(tenMultiprocessors());
  auto rate = [&](double m, double n, double k) {
    return 2 * m * n * k / rates.matmulSeconds({m, n, k}, DType::BF16) / 1e12;
  };
  EXPECT_WITHIN(rate(1280, 256, 1024), 1, 1e-6); // 10 tiles of 128 x 256: one wave
  EXPECT_WITHIN(rate(1280, 512, 1024), 1, 1e-6); // two
  EXPECT_WITHIN(rate(1408, 256, 1024), 0.95 * 22 / 30,
                1e-6);                              // 11 tiles: two waves; 22 halves: three, half as long
  EXPECT_WITHIN(rate(1280, 128, 1024), 0.95, 1e-6); // 10 tiles of 128 x 128
  EXPECT_WITHIN(rate(1280, 200, 1024), 200 / 256.0, 1e-6); // what reaches beyond the result is computed
  EXPECT_WITHIN(rates.matmulSeconds({1280, 256, 1024, 8}, DType::BF16),
                8 * rates.matmulSeconds({1280, 256, 1024}, DType::BF16), 1e-6); // a batch: 80 tiles
}

TEST(KernelRates, FewTilesDivideTheirSums) {
  const Rates rates(tenMultiprocessors());
  auto rate = [&](double m, double n, double k) {
    return 2 * m * n * k / rates.matmulSeconds({m, n, k}, DType::BF16) / 1e12;
  };
  EXPECT_WITHIN(rate(640, 256, 16384), 1, 1e-6);         // 5 tiles in two parts of 8192 summands
  EXPECT_WITHIN(rate(384, 256, 5000), 0.95 * 0.6, 1e-6); // 6 half tiles: parts of 2500 would be too short
}

TEST(KernelRates, LongProductsAreSlowedDown) {
  config::Cluster cluster = tenMultiprocessors();
  cluster.device.kernels.tileFlops = {{{1e-3, 1e12}, {1e-2, 0.8e12}}};
  const Rates rates(cluster);
  const double short_ = 2.0 * 1280 * 256 * 1024; // 0.67 ms
  EXPECT_WITHIN(rates.matmulSeconds({1280, 256, 1024}, DType::BF16), short_ / 1e12, 1e-6);
  EXPECT_WITHIN(rates.matmulSeconds({1280, 256, 1024 * 100.0}, DType::BF16), 100 * short_ / 0.8e12, 1e-6);
  cluster.device.kernels.fillSeconds = 1e-3;
  EXPECT_WITHIN(Rates(cluster).matmulSeconds({1280, 256, 1024}, DType::BF16), short_ / 1e12 + 1e-3, 1e-6);
}

TEST(KernelRates, OddRowsHaveTheRateOfTheSideThatIsOdd) {
  const Rates rates = ratesOf("h200");
  const double flops = 2.0 * 16384 * 50257 * 768;
  const Matmul logits{.m = 16384, .n = 50257, .k = 768, .isUnaligned = true, .isResultUnaligned = true};
  const Matmul gradient{.m = 16384, .n = 768, .k = 50257, .isUnaligned = true};
  EXPECT_WITHIN(flops / rates.matmulSeconds(logits, DType::BF16), 102e12, 0.01);
  EXPECT_WITHIN(flops / rates.matmulSeconds(gradient, DType::BF16), 153e12, 0.01);
  // Products in fp32 have no such units anyway.
  Matmul even = logits;
  even.isUnaligned = even.isResultUnaligned = false;
  EXPECT_EQ(rates.matmulSeconds(logits, DType::F32), rates.matmulSeconds(even, DType::F32));
}

TEST(KernelRates, ColumnsRowsAndEpiloguesHaveTheirOwnMemory) {
  config::Cluster cluster = tenMultiprocessors();
  cluster.device.memoryBytesPerSecond = 1e12, cluster.device.memoryEfficiency = 1;
  cluster.device.kernels.columnBytesPerSecond = {{{1, 5e11}, {2, 2e11}}};
  cluster.device.kernels.epilogueBytesPerSecond = 0;
  const Rates rates(cluster);
  EXPECT_WITHIN(rates.kernelSeconds({.bytes = 1e9}), 1e-3, 1e-6);
  EXPECT_WITHIN(rates.kernelSeconds({.bytes = 1e9, .columnSums = 1}), 2e-3, 1e-6);
  EXPECT_WITHIN(rates.kernelSeconds({.bytes = 1e9, .columnSums = 2}), 5e-3, 1e-6);
  EXPECT_WITHIN(rates.kernelSeconds({.bytes = 1e9, .rowVectors = 200}), 1e-3 * 224 / 200, 1e-6); // 7 warps
  EXPECT_WITHIN(rates.kernelSeconds({.bytes = 1e9, .rowVectors = 24}), 1e-3, 1e-6); // rows that share a block
  const Matmul plain{1280, 256, 1024};
  Matmul gelu = plain;
  gelu.besideBytes = 1e9;
  const double alone = rates.matmulSeconds(plain, DType::BF16);
  EXPECT_WITHIN(rates.matmulSeconds(gelu, DType::BF16) - alone, 1e-3, 1e-6);
  cluster.device.kernels.epilogueBytesPerSecond = 5e11;
  EXPECT_WITHIN(Rates(cluster).matmulSeconds(gelu, DType::BF16) - alone, 2e-3, 1e-6);
}

TEST(KernelRates, GradientsOfEmbeddingsCompareTheirIndices) {
  config::Cluster cluster = tenMultiprocessors();
  cluster.device.functionBytesPerSecond["embedding_backward"] = {{{1, 1e11}}};
  cluster.device.kernels.embeddingPairSeconds = 1e-12;
  const Rates rates(cluster);
  EXPECT_WITHIN(rates.functionSeconds("embedding_backward", 1e8), 1e-3, 1e-6);
  EXPECT_WITHIN(rates.functionSeconds("embedding_backward", 1e8, 1e5), 1e-3 + 1e-2, 1e-6);
}

TEST(KernelRates, HostsUpdateByTheirCoresAndTheirMemory) {
  config::Cluster cluster = config::builtinCluster("h200");
  cluster.host.cores = 15;
  EXPECT_WITHIN(134e9 * Rates(cluster).hostKernelSeconds(1), 1, 0.01); // measured with so many threads
  EXPECT_WITHIN(Rates(cluster).hostKernelSeconds(1, 2), 2 * Rates(cluster).hostKernelSeconds(1), 1e-9);
  cluster.host.cores = 112;
  EXPECT_WITHIN(Rates(cluster).hostKernelSeconds(1), 2 / cluster.host.memoryBytesPerSecond, 1e-9);
}

TEST(KernelRates, FiguresOfADescriptionCountInPlaceOfFinerOnesOfItsBase) {
  auto device = [](const char *figures) {
    return config::readClusterText("{name: 'mine', base: 'h200', device: {" + std::string(figures) + "}}",
                                   "c")
        ->device;
  };
  EXPECT_FALSE(device("").kernels.tileFlops.empty());
  EXPECT_TRUE(device("matmul_flops: {bf16: 5e14}").kernels.tileFlops.empty());
  EXPECT_EQ(device("matmul_flops: {bf16: 5e14}, kernels: {tile_flops: 6e14}").kernels.tileFlops.at(1), 6e14);
  EXPECT_EQ(device("launch_seconds: 2e-6").kernels.shortestSeconds, 0); // measured with a kernel in it
  EXPECT_EQ(device("launch_seconds: 2e-6, kernels: {shortest_seconds: 3e-6}").kernels.shortestSeconds, 3e-6);
}
