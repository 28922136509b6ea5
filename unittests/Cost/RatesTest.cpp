//===- RatesTest.cpp - Seconds of ops, collectives and copies -----------------------===//
//
// Against published measurements, and against the arithmetic of each algorithm.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/Rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

using namespace ds;
using namespace ds::cost;

static constexpr double kMiB = 1 << 20, kGiB = 1 << 30;

static Rates ratesOf(std::string_view name) {
  Result<config::Cluster> cluster = config::readCluster(std::string(name));
  EXPECT_TRUE(cluster) << name;
  return Rates(*cluster);
}

/// Within a share of what is expected.
#define EXPECT_WITHIN(value, expected, share) EXPECT_NEAR((value) / (expected), 1.0, share)

TEST(Rates, AllReduceOnA100AsMeasured) {
  Rates rates = ratesOf("dgx-a100");
  struct Measured {
    int64_t ranks;
    double bytes, busBandwidth;
  };
  for (Measured m : {Measured{8, kMiB, 19.8e9}, Measured{8, 16 * kMiB, 126e9}, Measured{8, 64 * kMiB, 203e9},
                     Measured{8, 256 * kMiB, 217e9}, Measured{8, kGiB, 229e9}, Measured{2, kGiB, 197e9}})
    EXPECT_WITHIN(rates.allReduceBusBandwidth(m.bytes, rates.group(m.ranks)), m.busBandwidth, 0.10)
        << m.ranks << " ranks, " << m.bytes << " bytes";
}

TEST(Rates, H200AsMeasured) {
  Rates rates = ratesOf("h200");
  EXPECT_WITHIN(rates.allReduceBusBandwidth(16 * kGiB, rates.group(8)), 482.3e9, 0.02); // in the switch
  config::Cluster ringOnly = rates.cluster();
  ringOnly.inside.switchBytesPerSecond = 0;
  EXPECT_WITHIN(Rates(ringOnly).allReduceBusBandwidth(16 * kGiB, {8, 8}), 367.6e9, 0.02);
  EXPECT_WITHIN(kGiB / rates.collectiveSeconds(Collective::Send, kGiB, 2), 396e9, 0.02);
  EXPECT_WITHIN(kGiB / rates.hostCopySeconds(kGiB), 55e9, 0.02);
}

TEST(Rates, MatmulReachesTheBestPublishedRateAndFallsWithTheSize) {
  struct Best {
    const char *name;
    double size, least, most;
  };
  // On Hopper what lasts longer than 2 ms is slowed down.
  for (Best best : {Best{"a100-80g", 20480, 0.9 * 271e12, 271e12}, Best{"h100-80g", 8192, 770e12, 800e12},
                    Best{"h200", 8192, 770e12, 800e12}}) {
    Rates rates = ratesOf(best.name);
    auto rate = [&](double n) { return 2 * n * n * n / rates.matmulSeconds({n, n, n}, DType::BF16); };
    EXPECT_GE(rate(best.size), best.least) << best.name;
    EXPECT_LE(rate(best.size), best.most) << best.name;
    for (double n = 32; 2 * n <= best.size; n *= 2)
      EXPECT_LT(rate(n), rate(2 * n)) << best.name << " " << n;
  }
}

TEST(Rates, TilesReachBeyondOddResultsAndWavesEndEmpty) {
  Rates rates = ratesOf("a100-80g"); // 108 multiprocessors
  auto seconds = [&](double m, double n, double k) {
    return rates.matmulSeconds({m, n, k}, DType::BF16) - rates.cluster().device.launchSeconds;
  };
  // 4097 rows are computed as 4160.
  EXPECT_WITHIN(seconds(4097, 4096, 4096) / seconds(4096, 4096, 4096), 4160.0 / 4096, 0.005);
  // 12 x 9 tiles are one wave; 11 x 10, or 11 x 20 halves, begin another: three where 2.5 are usual.
  double more = 1408 * 1280.0 / (1536 * 1152.0);
  EXPECT_WITHIN(seconds(1408, 1280, 4096) / seconds(1536, 1152, 4096), more * 3 / (220.0 / 108 + 0.5), 0.005);
  // Without a number of multiprocessors nothing is taken off.
  config::Cluster cluster = rates.cluster();
  cluster.device.multiprocessors = 0;
  EXPECT_LT(Rates(cluster).matmulSeconds({4097, 4096, 4096, 1, false, false, true}, DType::BF16),
            rates.matmulSeconds({4097, 4096, 4096}, DType::BF16));
}

TEST(Rates, RowsAtOddPlacesHalveTheRate) {
  // GPT-2 124M's vocabulary: a quarter of a step as 50304, whose rows are padded, half as 50257.
  Rates rates = ratesOf("a100-80g");
  Matmul padded{16384, 50304, 768}, odd{16384, 50257, 768};
  odd.isUnaligned = true;
  EXPECT_WITHIN(rates.matmulSeconds(odd, DType::BF16) / rates.matmulSeconds(padded, DType::BF16), 2, 0.01);
  EXPECT_WITHIN(rates.matmulSeconds(odd, DType::F32) / rates.matmulSeconds(padded, DType::F32), 1, 0.01);
}

TEST(Rates, NarrowMatmulsAreBoundByTheirBytes) {
  Rates rates = ratesOf("a100-80g");
  double bytes = 2.0 * (8.0 * 16384 + 16384.0 * 16384 + 8.0 * 16384); // a decoding step's product
  EXPECT_WITHIN(rates.matmulSeconds({8, 16384, 16384}, DType::F16), rates.memorySeconds(bytes), 0.01);
  EXPECT_GT(rates.matmulSeconds({4096, 4096, 4096}, DType::F32),
            8 * rates.matmulSeconds({4096, 4096, 4096}, DType::F16));
}

TEST(Rates, ConvolutionsReadEachWindowWhereItLies) {
  // Windows of 3 x 3 over 128 channels: the matrix of them has 9 times the input's bytes, which nobody moves.
  Rates rates = ratesOf("a100-80g");
  const Matmul product{4.0 * 64 * 64, 128, 9 * 128};
  const double moved = 2.0 * (2 * product.m * 128 + product.n * product.k);
  EXPECT_LE(rates.convolutionSeconds(product, moved, DType::BF16), rates.matmulSeconds(product, DType::BF16));
  // One filter for each channel: a thousand small products, bound by what they read and write.
  const Matmul depthwise{1 << 20, 1, 9, 1024};
  EXPECT_GE(rates.convolutionSeconds(depthwise, 4.0 * kGiB, DType::BF16), 4.0 * kGiB / 2.1e12);
  EXPECT_GT(rates.convolutionSeconds(depthwise, 4.0 * kGiB, DType::BF16),
            rates.convolutionSeconds(product, moved, DType::BF16));
}

TEST(Rates, OpsTakeTheSlowerOfArithmeticAndMemory) {
  Rates rates; // cpu
  double launch = rates.cluster().device.launchSeconds;
  EXPECT_DOUBLE_EQ(rates.computeSeconds(0, 1.6e10, DType::F32), 1 + launch); // 20 GB/s at 0.8
  EXPECT_DOUBLE_EQ(rates.memorySeconds(1.6e10), 1 + launch);
  EXPECT_WITHIN(rates.computeSeconds(2 * 1024.0 * 1024 * 1024, 1, DType::F32),
                2 * 1024.0 * 1024 * 1024 / 4.2e11, 0.01);
  EXPECT_EQ(rates.computeSeconds(1e9, 0, DType::I8), rates.computeSeconds(1e9, 0, DType::F32)); // no table
}

TEST(Rates, CausalAttentionIsHalfTheWork) {
  // arXiv 2307.08691, section 4.1: 4 s^2 d a forward, 2.5 times that backward, half of both where causal.
  rt::AttentionWork work{.heads = 16, .queries = 2048, .keys = 2048, .width = 128, .isCausal = false};
  double full = 4.0 * 2048 * 2048 * 128 * 16;
  EXPECT_EQ(attentionFlops(work), full);
  work.isGradient = true;
  EXPECT_EQ(attentionFlops(work), 2.5 * full);
  work.isCausal = true;
  EXPECT_EQ(attentionFlops(work), 1.25 * full);
  work.keys = 4096; // queries with a past: all pairs count
  EXPECT_EQ(attentionFlops(work), 5 * full);
  config::Cluster cluster = ratesOf("v100-32g").cluster();
  cluster.device.matmulFlops[DType::F16] = {{{1, 1e13}}};
  cluster.device.attentionEfficiency = 0.5;
  work.keys = 2048;
  EXPECT_WITHIN(Rates(cluster).attentionSeconds(work, 1, DType::F16), 1.25 * full / 5e12, 1e-3);
}

/// Against a count of the pairs, one by one; half of the pairs on the diagonal are left out of both.
TEST(Rates, WindowsLeaveWhatLiesInThem) {
  for (bool isCausal : {true, false})
    for (auto [queries, keys] : {std::pair(300, 300), {100, 300}, {300, 100}})
      for (int window : {1, 40, 99, 299}) {
        double pairs = 0;
        for (int t = 0; t < queries; ++t)
          for (int s = 0; s < keys; ++s) {
            int own = t + keys - queries;
            pairs += std::abs(own - s) < window && (!isCausal || s <= own) ? 1 : 0;
          }
        rt::AttentionWork work;
        work.heads = work.width = 1, work.queries = queries, work.keys = keys;
        work.window = window, work.isCausal = isCausal;
        if (window < keys)
          EXPECT_NEAR(attentionPairs(work), pairs, std::max(queries, window))
              << queries << " " << keys << " " << window << " " << isCausal;
      }
}

/// TFLOP/s of causal attention over a batch of 16384 positions of width 2048.
static double attentionRate(const Rates &rates, double positions, double width, bool isGradient) {
  rt::AttentionWork work;
  work.heads = 16384 / positions * 2048 / width;
  work.queries = work.keys = positions, work.width = width, work.isGradient = isGradient;
  double seconds = rates.attentionSeconds(work, 1, DType::BF16) - rates.cluster().device.launchSeconds;
  return attentionFlops(work) / seconds / 1e12;
}

TEST(Rates, FusedAttentionByLengthWidthAndDirection) {
  // arXiv 2307.08691, figures 4 and 5; cuDNN on an H200, measured and published
  // (lib/Config/clusters/h100-80g.json).
  Rates ampere = ratesOf("a100-80g"), hopper = ratesOf("h200");
  EXPECT_WITHIN(attentionRate(ampere, 512, 128, false), 132, 0.01);
  EXPECT_WITHIN(attentionRate(ampere, 16384, 128, false), 197, 0.01);
  for (auto [positions, rate] : {std::pair(2048, 484), {4096, 591}, {8192, 644}, {16384, 673}})
    EXPECT_WITHIN(attentionRate(hopper, positions, 128, false), rate, 0.01) << positions;
  EXPECT_WITHIN(attentionRate(hopper, 65536, 128, false), 673, 0.01); // beyond: as at the end
  EXPECT_WITHIN(attentionRate(hopper, 1024, 64, true), 172, 0.01);
  // Both directions together, of the figure in which they are.
  double forward = attentionRate(ampere, 4096, 128, false), backward = attentionRate(ampere, 4096, 128, true);
  EXPECT_WITHIN(3.5 / (1 / forward + 2.5 / backward), 173, 0.01);
  // Sixteen blocks of 128 queries have as many of the multiprocessors.
  rt::AttentionWork one{.heads = 1, .queries = 2048, .keys = 2048, .width = 128};
  double launch = hopper.cluster().device.launchSeconds;
  EXPECT_WITHIN(hopper.attentionSeconds(one, 1, DType::BF16) - launch,
                attentionFlops(one) / (484e12 * 16 / 132), 1e-9);
  EXPECT_GT(hopper.attentionSeconds(one, 1, DType::F32) - launch,
            attentionFlops(one) / 50e12); // by the share
}

TEST(Rates, AConstantOverridesTheCurveOfABase) {
  auto rates = [](const char *text) { return Rates(*config::readClusterText(text, "c")); };
  Rates constant = rates("{name: 'mine', base: 'h100-80g', device: {attention_efficiency: 0.5}}");
  EXPECT_TRUE(constant.cluster().device.attentionShapes.empty());
  Rates both = rates("{name: 'mine', base: 'h100-80g',"
                     " device: {attention_shapes: [[512, 64, 1e14, 2e14]], attention_efficiency: 0.5}}");
  EXPECT_WITHIN(attentionRate(both, 512, 64, true), 200, 1e-9);
  EXPECT_FALSE(rates("{name: 'mine', base: 'h100-80g'}").cluster().device.attentionShapes.empty());
}

TEST(Rates, RingsSendWhatTheAlgorithmSays) {
  EXPECT_EQ(Rates::bytesSent(Collective::AllGather, 100, 4), 300); // 3 parts
  EXPECT_EQ(Rates::bytesSent(Collective::ReduceScatter, 100, 4), 300);
  EXPECT_EQ(Rates::bytesSent(Collective::AllReduce, 400, 4), 600); // 2 * 3/4 of 400
  EXPECT_EQ(Rates::bytesSent(Collective::AllToAll, 400, 4), 300);
  EXPECT_EQ(Rates::bytesSent(Collective::Broadcast, 400, 4), 400);
  EXPECT_EQ(Rates::bytesSent(Collective::Broadcast, 400, 1), 0);
}

TEST(Rates, AnAllReduceIsAReduceScatterAndAGather) {
  Rates rates = ratesOf("a100-80g");
  double launch = rates.cluster().device.launchSeconds;
  for (int64_t ranks : {2, 8, 64}) {
    double part = 1e9 / static_cast<double>(ranks);
    EXPECT_NEAR(rates.collectiveSeconds(Collective::AllReduce, 1e9, ranks) - launch,
                2 * (rates.collectiveSeconds(Collective::AllGather, part, ranks) - launch), 1e-4)
        << ranks;
  }
}

TEST(Rates, GroupsLieInNodes) {
  Rates rates = ratesOf("dgx-a100");
  EXPECT_EQ(rates.group(4).perNode, 4);
  EXPECT_EQ(rates.group(64).perNode, 8);
  EXPECT_EQ(rates.group(64, 8).perNode, 1); // one of each node: data parallelism beside eight tensor ranks
  EXPECT_EQ(rates.group(64, 2).perNode, 4);
}

TEST(Rates, PortsBoundWhatCrossesNodes) {
  config::Cluster cluster = ratesOf("h100-80g").cluster(); // 8 ports of 50 GB/s at 0.85
  // One node's eight parts enter the other's ports while 14 parts go round inside: here inside is slower.
  EXPECT_WITHIN(Rates(cluster).collectiveSeconds(Collective::AllGather, 1e9, Group{16, 8}), 14e9 / 367.6e9,
                0.01);
  cluster.between.portsPerCollective = {{{1, 4}}};
  EXPECT_WITHIN(Rates(cluster).collectiveSeconds(Collective::AllGather, 1e9, Group{16, 8}),
                8e9 / (4 * 50e9 * 0.85), 0.01);
  cluster.between.portsPerCollective = {{{1, 1}}};
  EXPECT_WITHIN(Rates(cluster).collectiveSeconds(Collective::AllGather, 1e9, Group{16, 8}),
                8e9 / (50e9 * 0.85), 0.01);
  cluster.between.portsPerNode = 1; // eight groups share one port
  EXPECT_WITHIN(Rates(cluster).collectiveSeconds(Collective::AllGather, 1e9, Group{2, 1}),
                1e9 / (50e9 * 0.85 / 8), 0.01);
}

TEST(Rates, ShortAllReducesTakeATree) {
  Rates rates = ratesOf("v100-32g");
  double ring = 2 * 63 * rates.cluster().between.latencySeconds;
  EXPECT_LT(rates.collectiveSeconds(Collective::AllReduce, 64, Group{64, 1}), 0.2 * ring);
}

TEST(Rates, OneRankCommunicatesForFree) {
  for (Collective kind : {Collective::AllGather, Collective::ReduceScatter, Collective::AllReduce,
                          Collective::Broadcast, Collective::AllToAll, Collective::Send, Collective::Recv})
    EXPECT_EQ(Rates().collectiveSeconds(kind, 1e9, 1), 0);
}

TEST(Rates, WithoutALinkBetweenNodesAllRanksAreOnOne) {
  Rates rates; // 64 ranks in a node, and nothing between nodes
  double latency = rates.cluster().inside.latencySeconds;
  EXPECT_NEAR(rates.collectiveSeconds(Collective::AllGather, 1, 1024), 1023 * latency, 1e-5);
}

TEST(Rates, ReduceScattersOnTheCpuAreDirect) {
  Rates rates; // the latency of one step, not of three
  double gather = rates.collectiveSeconds(Collective::AllGather, 1000, 4);
  double scatter = rates.collectiveSeconds(Collective::ReduceScatter, 1000, 4);
  EXPECT_NEAR(gather - scatter, 2 * rates.cluster().inside.latencySeconds, 1e-12);
}

TEST(Rates, LinksAreShared) {
  Rates rates = ratesOf("dgx-a100"); // two devices behind one link
  EXPECT_WITHIN(rates.hostCopySeconds(1e9, 8), 2 * rates.hostCopySeconds(1e9, 1), 0.01);
  EXPECT_DOUBLE_EQ(rates.storageReadSeconds(25e9, 8), 8);
  EXPECT_DOUBLE_EQ(rates.storageWriteSeconds(20e9), 1);
}

/// The built-in cpu with what a calibration adds.
static config::Cluster calibrated() {
  config::Cluster cluster = config::builtinCluster("cpu");
  cluster.devicesPerNode = 2;
  cluster.device.launchSeconds = 1e-6;
  cluster.device.forkSeconds = 5e-6;
  cluster.device.vectorFlops = 1e11;
  cluster.device.cachedBytesPerSecond = {{{1e4, 1e11}, {1e8, 1e10}}};
  cluster.device.matmulShapes[DType::F32].axes = {{64, 1024}, {64, 1024}, {64, 1024}};
  for (int i = 0; i < 8; ++i)
    cluster.device.matmulShapes[DType::F32].rates.push_back({1e11, 2e11, 4e11});
  cluster.device.attentionShapes = {{{128}, {64}}, {{5e10, 6e10}}};
  cluster.device.functionBytesPerSecond["copy"] = {{{1e4, 1e10}, {1e8, 5e9}}};
  cluster.inside.collectiveBytesPerSecond["all_gather"] = {{{1e3, 1e8}, {1e6, 1e9}}};
  return cluster;
}

TEST(CalibratedRates, ProductsByTheirShapeAndForm) {
  Rates rates(calibrated());
  Matmul plain{256, 256, 256};
  double flops = 2.0 * 256 * 256 * 256;
  EXPECT_WITHIN(rates.matmulSeconds(plain, DType::F32), flops / 1e11, 1e-9);
  Matmul right = plain, left = plain;
  right.transposeB = left.transposeA = true;
  EXPECT_WITHIN(rates.matmulSeconds(right, DType::F32), flops / 2e11, 1e-9);
  EXPECT_WITHIN(rates.matmulSeconds(left, DType::F32), flops / 4e11, 1e-9);
  Matmul batch = plain;
  batch.batch = 3;
  EXPECT_WITHIN(rates.matmulSeconds(batch, DType::F32), 3 * flops / 1e11, 1e-9);
  // Fewer columns than were measured: as many as were.
  EXPECT_WITHIN(rates.matmulSeconds({256, 8, 256}, DType::F32),
                rates.matmulSeconds({256, 64, 256}, DType::F32), 1e-9);
  // A type without a table counts by the curve.
  EXPECT_EQ(rates.matmulSeconds(plain, DType::BF16), Rates().matmulSeconds(plain, DType::BF16) - 2e-6 + 1e-6);
}

TEST(CalibratedRates, ConvolutionsByTheProductThatTheyAre) {
  Rates rates(calibrated());
  const Matmul groups{256, 256, 256, 3};
  EXPECT_WITHIN(rates.convolutionSeconds(groups, 0, DType::F32), 3 * 2.0 * 256 * 256 * 256 / 1e11, 1e-9);
  EXPECT_EQ(rates.convolutionSeconds(groups, 1e12, DType::F32), rates.memorySeconds(1e12));
}

TEST(CalibratedRates, KernelsByBytesArithmeticAndForks) {
  Rates rates(calibrated());
  // Memory alone: 1e8 bytes at 1e10 bytes/s, a launch and a fork.
  EXPECT_WITHIN(rates.kernelSeconds({1e8}), 1e-2 + 6e-6, 1e-9);
  // What is written without having been read is read all the same.
  EXPECT_WITHIN(rates.kernelSeconds({1e8, 5e7}), 1.5e-2 + 6e-6, 1e-9);
  // Arithmetic that takes longer, with a third of the memory's time.
  EXPECT_WITHIN(rates.kernelSeconds({1e8, 0, 3e9}), 3e-2 + 1e-2 / 3 + 6e-6, 1e-9);
  // Short ones are not divided: 1e4 bytes at 1e11.
  EXPECT_WITHIN(rates.kernelSeconds({1e4}), 1e-7 + 1e-6, 1e-9);
  // Elsewhere the bytes count, and the launch.
  Rates gpu = ratesOf("a100-80g");
  EXPECT_EQ(gpu.kernelSeconds({1e8, 5e7, 1e9}), gpu.memorySeconds(1e8));
}

TEST(CalibratedRates, DivisionsAndRootsCountAsTheMachineHasThem) {
  config::Cluster cluster = calibrated(); // 1e11 additions a second
  EXPECT_WITHIN(Rates(cluster).kernelSeconds({0, 0, 0, 1e9}), 9e9 / 1e11 + 6e-6, 1e-9);
  EXPECT_WITHIN(Rates(cluster).kernelSeconds({0, 0, 0, 0, 1e9}), 11e9 / 1e11 + 6e-6, 1e-9);
  cluster.device.divisionAdditions = 30;
  cluster.device.rootAdditions = 40;
  EXPECT_WITHIN(Rates(cluster).kernelSeconds({0, 0, 0, 1e9, 1e9}), 70e9 / 1e11 + 6e-6, 1e-9);
}

TEST(CalibratedRates, RowsAreAddedUp) {
  config::Cluster cluster = calibrated();
  EXPECT_WITHIN(Rates(cluster).kernelSeconds({0, 0, 1e9, 0, 0, 1e5}), 1e-2 + 6e-6, 1e-9); // no figure
  cluster.device.rowSeconds = 1e-8;
  EXPECT_WITHIN(Rates(cluster).kernelSeconds({0, 0, 1e9, 0, 0, 1e5}), 1e-2 + 1e-3 + 6e-6, 1e-9);
}

TEST(CalibratedRates, ColumnsAndUpdatesHaveTheirOwnMemory) {
  config::Cluster cluster = calibrated();
  KernelLoad columns{1e8}, updates{1e8};
  columns.stripBytes = 128;
  updates.updates = true;
  for (const KernelLoad &load : {columns, updates}) // no figures: as any kernel
    EXPECT_EQ(Rates(cluster).kernelSeconds(load), Rates(cluster).kernelSeconds({1e8}));
  cluster.device.columnBytesPerSecond = {{{64, 256}, {1e6}}, {{2e9}, {8e9}}};
  cluster.device.updateBytesPerSecond = {{{1e6, 2e10}, {1e8, 5e9}}};
  EXPECT_WITHIN(Rates(cluster).kernelSeconds(columns), 1e8 / 4e9 + 6e-6, 1e-9); // half way in powers
  EXPECT_WITHIN(Rates(cluster).kernelSeconds(updates), 1e8 / 5e9 + 6e-6, 1e-9);
  EXPECT_WITHIN(Rates(cluster).kernelSeconds({1e8}), 1e8 / 1e10 + 6e-6, 1e-9);
}

TEST(CalibratedRates, OperandsThatWereNotTouchedForLongComeFromMemory) {
  Rates rates(calibrated()); // 1e11 bytes/s at 1e4 bytes, 1e10 at 1e8
  KernelLoad load{1e4};
  load.reuse = {{5e3, 0}, {5e3, 1e8}};
  EXPECT_WITHIN(rates.kernelSeconds(load), 5e3 / 1e11 + 5e3 / 1e10 + 1e-6, 1e-9);
  load.reuse = {{1e4, std::numeric_limits<double>::infinity()}};
  EXPECT_WITHIN(rates.kernelSeconds(load), 1e4 / 1e10 + 1e-6, 1e-9);
  Rates gpu = ratesOf("a100-80g"); // has no caches to tell apart
  EXPECT_EQ(gpu.kernelSeconds(load), gpu.memorySeconds(1e4));
}

TEST(CalibratedRates, FunctionsAttentionAndCollectivesByTheirTables) {
  Rates rates(calibrated());
  EXPECT_WITHIN(rates.functionSeconds("copy", 1e8), 1e8 / 5e9, 1e-9);
  EXPECT_WITHIN(rates.functionSeconds("copy", 10), 1e4 / 1e10, 1e-9); // not less than the smallest
  EXPECT_EQ(rates.functionSeconds("fill", 1e8), rates.memorySeconds(1e8));
  rt::AttentionWork work{.heads = 1000, .queries = 128, .keys = 128, .width = 64};
  double forward = 1000 * 2.0 * 128 * 128 * 64, backward = 2.5 * forward;
  EXPECT_WITHIN(rates.attentionSeconds(work, 1, DType::F32), forward / 5e10 + 6e-6, 1e-9);
  work.isGradient = true;
  EXPECT_WITHIN(rates.attentionSeconds(work, 1, DType::F32), backward / 6e10 + 6e-6, 1e-9);
  double launch = rates.cluster().device.launchSeconds;
  EXPECT_WITHIN(rates.collectiveSeconds(Collective::AllGather, 1e6, 2), launch + 1e6 / 1e9, 1e-9);
  EXPECT_WITHIN(rates.collectiveSeconds(Collective::AllGather, 1, 2), launch + 1e3 / 1e8, 1e-9);
  // Of other kinds the link's figures count.
  EXPECT_EQ(rates.collectiveSeconds(Collective::AllReduce, 1e6, 2) - launch,
            Rates().collectiveSeconds(Collective::AllReduce, 1e6, 2) - 2e-6);
}
