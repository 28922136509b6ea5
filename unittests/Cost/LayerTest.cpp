//===- LayerTest.cpp - Each term against its arithmetic ------------------------------===//
//
// On machines whose figures are so plain that one side of every op takes no time.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/Estimate.h"

#include "Published.h"
#include "Terms.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace ds;
using namespace ds::cost;

/// One device kind with a constant rate of products and of memory, links without latency, a host.
static config::Cluster plain(double matmul, double memory) {
  config::Cluster cluster = config::builtinCluster("dgx-a100");
  for (DType dtype : {DType::F32, DType::F16, DType::BF16})
    cluster.device.matmulFlops[dtype] = {{{1, matmul}}};
  cluster.device.memoryBytesPerSecond = memory;
  cluster.device.memoryEfficiency = 1;
  cluster.device.launchSeconds = 0;
  cluster.device.contention = 0;
  cluster.device.attentionEfficiency = 1;
  cluster.device.attentionShapes = {};
  cluster.device.multiprocessors = 0;
  cluster.inside.latencySeconds = cluster.between.latencySeconds = 0;
  return cluster;
}

static constexpr double kFast = 1e30, kRate = 1e12, kMemory = 1e9;

static ModelShape smallGpt() {
  ModelShape shape = gpt(16, 1024, 8);
  shape.seq = 512;
  shape.vocab = 32000;
  return shape;
}

TEST(Layer, ProductsByTheirOperations) {
  Rates rates(plain(kRate, kFast));
  ParallelPlan plan;
  plan.microBatch = 2;
  double tokens = 1024, h = 1024, weights = 24 * tokens * h * h, attention = 4 * tokens * 512 * h;
  auto layer = [&] { return estimateStep(smallGpt(), plan, rates).layer; };
  EXPECT_NEAR(layer().forward, (weights + attention) / kRate, 1e-12);
  EXPECT_NEAR(layer().backward, 2 * (weights + attention) / kRate, 1e-12);
  EXPECT_EQ(layer().recompute, 0);
  plan.recompute = Recompute::Selective;
  EXPECT_NEAR(layer().recompute, attention / kRate, 1e-12);
  plan.recompute = Recompute::Full;
  EXPECT_NEAR(layer().recompute, (weights + attention) / kRate, 1e-12);
  plan.flashAttention = true; // which skips half, and computes its scores once more
  EXPECT_NEAR(layer().forward, (weights + attention / 2) / kRate, 1e-12);
  EXPECT_NEAR(layer().backward, (2 * weights + 2.5 * attention / 2) / kRate, 1e-12);
  plan.tp = 4;
  EXPECT_NEAR(layer().forward, (weights + attention / 2) / kRate / 4, 1e-12);
  EXPECT_NEAR(termOf(estimateStep(smallGpt(), plan, rates), "logits"), 6 * tokens * h * 32000 / kRate / 4,
              1e-12);
}

/// Rows of logits lie apart, also where two ranks share 50257 words; 105 words and inner activations do not.
TEST(Layer, OddRowsOfLogitsCostNoMore) {
  const Rates rates(config::builtinCluster("h200"));
  ParallelPlan plan;
  plan.microBatch = 16, plan.dtype = DType::BF16;
  auto logits = [&](int64_t vocab) {
    ModelShape shape = smallGpt();
    shape.vocab = vocab;
    return termOf(estimateStep(shape, plan, rates), "logits");
  };
  EXPECT_NEAR(logits(50257) / logits(50304), 1, 0.01);
  EXPECT_GT(logits(105) / logits(112), 1.05);
  ModelShape odd = smallGpt(), even = smallGpt();
  odd.ffn = 4093, even.ffn = 4096;
  EXPECT_GT(estimateStep(odd, plan, rates).layer.forward,
            1.5 * estimateStep(even, plan, rates).layer.forward);
  plan.tp = 2;
  EXPECT_NEAR(logits(50257) / logits(50304), 1, 0.01);
}

TEST(Layer, FrameworksAddTheirLaunches) {
  config::Cluster cluster = plain(kRate, kFast);
  ParallelPlan plan;
  plan.accumulation = 4, plan.pp = 2;
  StepEstimate own = estimateStep(smallGpt(), plan, Rates(cluster));
  EXPECT_EQ(termOf(own, "framework's launches"), 0);
  cluster.device.eagerOverheadSeconds = 4e-3;
  StepEstimate eager = estimateStep(smallGpt(), plan, Rates(cluster));
  EXPECT_NEAR(termOf(eager, "framework's launches"), 4 * 4 * 4e-3, 1e-12); // layers of a stage, micro-batches
  EXPECT_NEAR(eager.seconds - own.seconds, 5 * 4 * 4e-3, 1e-9);            // and one more in the bubble
}

TEST(Layer, PassesByTheirBytes) {
  Rates rates(plain(kFast, kMemory));
  ModelShape shape = smallGpt();
  ParallelPlan plan;
  double flat = 512 * 1024 * 2, scores = 16.0 * 512 * 512 * 2;
  // Products take their bytes here: operands and result of each.
  double operands = 512 * 1024 + 3 * 1024 * 1024 + 3 * 512 * 1024.0; // queries, keys and values
  operands += 512 * 1024 + 1024 * 1024 + 512 * 1024.0;               // output
  operands += 2 * (512 * 1024 + 4 * 1024 * 1024 + 4 * 512 * 1024.0); // MLP
  double core = 2 * 2 * (2 * 512 * 1024 + 16.0 * 512 * 512);
  auto layer = [&] { return estimateStep(shape, plan, rates).layer; };
  // Norms, bias-dropout-residuals, bias of the first product, GELU over 4h; softmax and dropout.
  double forward = (2 * 2 + 2 * 3.5 + 6 + 2 * 4) * flat + 4.5 * scores;
  double backward = (2 * 5 + 2 * 5.5 + 3 + 3 * 4) * flat + 5.5 * scores;
  EXPECT_NEAR(layer().forward, (2 * operands + core + forward) / kMemory, 1e-12);
  EXPECT_NEAR(layer().backward, (4 * operands + 2 * core + backward) / kMemory, 1e-12);
  plan.flashAttention = true;
  double rest = 2 * operands + forward - 4.5 * scores; // no scores: queries, keys, values and result
  EXPECT_NEAR(layer().forward, (rest + 4 * flat) / kMemory, 1e-12);
  plan.flashAttention = false, shape.dropout = false;
  EXPECT_NEAR(layer().forward, (2 * operands + core + forward - 2 * 0.5 * flat - 2.5 * scores) / kMemory,
              1e-12);
}

/// A joined loss passes over logits of 16 bits twice, in place of once and three times over fp32 ones each
/// way; where words are cut it waits for the other ranks between both.
TEST(Layer, AJoinedLossPassesOnce) {
  const Rates rates(plain(kFast, kMemory));
  ParallelPlan plan;
  const double elements = 512 * 32000.0;
  auto logits = [&] { return termOf(estimateStep(smallGpt(), plan, rates), "logits"); };
  const double apart = logits();
  plan.joinsLoss = true;
  EXPECT_NEAR(apart - logits(), elements * (2 + 24 - 4) / kMemory, 1e-12);
  plan.tp = 4;
  const double cut = logits();
  plan.joinsLoss = false;
  EXPECT_EQ(cut, logits());
}

/// 16 heads of 512 positions, whose weights are drawn at so much each, forward and backward.
TEST(Layer, DropoutOfAttentionIsCounted) {
  const Rates rates(config::builtinCluster("h200"));
  const config::KernelSpec &kernels = rates.cluster().device.kernels;
  ModelShape shape = smallGpt();
  ParallelPlan plan;
  plan.flashAttention = true, plan.dtype = DType::BF16;
  const LayerSeconds kept = estimateStep(shape, plan, rates).layer;
  shape.dropsAttention = true;
  const LayerSeconds dropped = estimateStep(shape, plan, rates).layer;
  const double weights = 16.0 * 512 * 512;
  EXPECT_GT(kernels.droppedScoreSeconds, 0);
  EXPECT_NEAR(dropped.forward - kept.forward, weights * kernels.droppedScoreSeconds, 1e-12);
  EXPECT_NEAR(dropped.backward - kept.backward, weights * kernels.droppedGradientSeconds, 1e-12);
}

TEST(Layer, ExchangesRepeatWithRecomputation) {
  config::Cluster cluster = plain(kFast, kFast);
  cluster.inside.busBytesPerSecond = {{{1, kMemory}}};
  Rates rates(cluster);
  ParallelPlan plan;
  plan.tp = 8;
  double once = 2 * 2 * 7.0 / 8 * 512 * 1024 * 2 / kMemory; // two all-reduces
  auto exchange = [&] { return termOf(estimateStep(smallGpt(), plan, rates), "tensor exchange") / 8; };
  EXPECT_NEAR(exchange(), 2 * once, 1e-9);
  plan.shardSequence = true; // gathers and scatters in their place
  EXPECT_NEAR(exchange(), 2 * once, 1e-9);
  plan.recompute = Recompute::Full;
  EXPECT_NEAR(exchange(), 3 * once, 1e-9);
}

TEST(Layer, WhatDoesNotHideBesideCompute) {
  config::Cluster cluster = plain(kRate, kFast);
  cluster.inside.busBytesPerSecond = {{{1, kMemory}}};
  cluster.host.memoryBytesPerSecond = kFast;
  ModelShape shape = smallGpt();
  double parameters = static_cast<double>(8 * shape.layerParameters() + shape.embeddingParameters());
  ParallelPlan plan;
  plan.dp = 8;
  double backward = 8 * estimateStep(shape, plan, Rates(cluster)).layer.backward;
  double reduction = 2 * 7.0 / 8 * 2 * parameters / kMemory;
  auto reduced = [&] { return termOf(estimateStep(shape, plan, Rates(cluster)), "gradient reduction"); };
  EXPECT_NEAR(reduced(), reduction - backward, 1e-9);
  cluster.device.contention = 0.5;
  EXPECT_NEAR(reduced(), reduction - backward / 2, 1e-9);
  plan.overlapReduce = false;
  EXPECT_NEAR(reduced(), reduction, 1e-9);
}

TEST(Layer, CopiesOfWhatIsOffloaded) {
  config::Cluster cluster = plain(kRate, kFast);
  cluster.host.memoryBytesPerSecond = kFast;
  cluster.host.toDeviceBytesPerSecond = kMemory;
  cluster.nvme = {1000000000000, kMemory / 4, kMemory / 2};
  ModelShape shape = smallGpt();
  double parameters = static_cast<double>(8 * shape.layerParameters() + shape.embeddingParameters());
  ParallelPlan plan;
  plan.zeroStage = 3;
  plan.optimizerHome = Home::Cpu;
  auto step = [&] { return estimateStep(shape, plan, Rates(cluster)); };
  double backward = 8 * step().layer.backward;
  EXPECT_NEAR(termOf(step(), "gradients to the host"), 2 * parameters / kMemory - backward, 1e-9);
  EXPECT_NEAR(termOf(step(), "parameters to the device"), 2 * parameters / kMemory, 1e-9);
  plan.optimizerHome = Home::Nvme;
  EXPECT_NEAR(termOf(step(), "optimizer states from and to storage"), 14 * parameters * 6 / kMemory, 1e-9);
  // Offloaded parameters come layer by layer in both passes: the slower of link and storage.
  double forward = 8 * step().layer.forward;
  plan.parameterHome = Home::Cpu;
  double copy = 2 * parameters / kMemory;
  EXPECT_NEAR(termOf(step(), "parameter gathers"), copy - forward + copy / 8, 1e-9);
  plan.parameterHome = Home::Nvme;
  EXPECT_NEAR(termOf(step(), "parameter gathers"), 4 * copy - forward + 4 * copy / 8, 1e-9);
  EXPECT_EQ(termOf(step(), "parameters to the device"), 0);
}

TEST(Layer, CheckpointsThatAreSharedOutOrLeave) {
  config::Cluster cluster = plain(kRate, kFast);
  cluster.inside.busBytesPerSecond = {{{1, kMemory}}};
  cluster.host.memoryBytesPerSecond = kFast;
  cluster.host.toDeviceBytesPerSecond = kMemory;
  cluster.host.devicesPerLink = 1;
  ParallelPlan plan;
  plan.tp = 8, plan.recompute = Recompute::Full, plan.partitionCheckpoints = true;
  double checkpoint = 512 * 1024 * 2;
  auto step = [&] { return estimateStep(smallGpt(), plan, Rates(cluster)); };
  EXPECT_NEAR(termOf(step(), "checkpoint gathers"), 8 * 7.0 / 8 * checkpoint / kMemory, 1e-12);
  plan.checkpointHome = Home::Cpu; // an eighth each way, beside forward and backward
  double copy = checkpoint / 8 / kMemory, forward = step().layer.forward;
  ASSERT_LT(copy, forward);
  EXPECT_EQ(termOf(step(), "checkpoints to and from the host"), 0);
  cluster.host.toDeviceBytesPerSecond = kMemory / 100;
  double backward = step().layer.recompute + step().layer.backward;
  EXPECT_NEAR(termOf(step(), "checkpoints to and from the host"),
              8 * (200 * copy - forward - std::min(100 * copy, backward)), 1e-9);
}
