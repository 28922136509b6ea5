//===- MemoryTest.cpp - What fits where, by the case studies of the field -----------===//
#include "ds/Cost/Estimate.h"
#include "ds/Cost/Formulas.h"

#include "Published.h"

#include <gtest/gtest.h>

using namespace ds;
using namespace ds::cost;

static config::Cluster clusterOf(const char *name) {
  Result<config::Cluster> cluster = config::readCluster(name);
  EXPECT_TRUE(cluster) << name;
  return *cluster;
}

static bool holds(const char *cluster, const ModelShape &shape, const ParallelPlan &plan) {
  EXPECT_TRUE(checkPlan(shape, plan));
  return fits(estimateMemory(shape, plan, clusterOf(cluster)), clusterOf(cluster));
}

/// A GPT with sequences of 1024.
static ModelShape shortGpt(int64_t heads, int64_t hidden, int64_t layers) {
  ModelShape shape = gpt(heads, hidden, layers);
  shape.seq = 1024;
  return shape;
}

static ParallelPlan recomputing(int64_t dp, int64_t stage, Home optimizer = Home::Device) {
  ParallelPlan plan;
  plan.dp = dp;
  plan.zeroStage = stage;
  plan.recompute = Recompute::Full;
  plan.optimizerHome = optimizer;
  return plan;
}

TEST(Memory, StatesAreZerosFormulas) {
  ModelShape shape = shortGpt(25, 1600, 48);
  double psi = static_cast<double>(shape.parameters());
  for (int64_t ranks : {1, 4, 64, 1024})
    for (int64_t stage = 0; stage <= 3; ++stage) {
      MemoryEstimate memory = estimateMemory(shape, recomputing(ranks, stage), clusterOf("a100-80g"));
      EXPECT_NEAR((memory.parameters + memory.gradients + memory.optimizer) /
                      zeroStateBytes(psi, static_cast<double>(ranks), stage),
                  1, 1e-12);
    }
}

TEST(Memory, ActivationsAreThePublishedBytes) {
  // What is kept beside one layer's worth that is computed again, on the first of eight stages.
  ModelShape shape = gpt(96, 12288, 96);
  for (bool sharded : {false, true})
    for (Recompute recompute : {Recompute::None, Recompute::Selective, Recompute::Full}) {
      ParallelPlan plan;
      plan.tp = plan.pp = 8, plan.interleave = 3, plan.accumulation = 64;
      plan.shardSequence = sharded, plan.recompute = recompute;
      double again =
          recompute == Recompute::None ? 0 : layerActivationBytes(shape, 1, 8, sharded, Recompute::None);
      EXPECT_NEAR(estimateMemory(shape, plan, clusterOf("a100-80g")).activations /
                      (firstStageActivationBytes(shape, plan) + outsideActivationBytes(shape, plan) + again),
                  1, 1e-12);
    }
}

TEST(Memory, FusedAttentionGatedLayersAndFp32) {
  ModelShape shape = gpt(32, 4096, 32);
  shape.vocab = 32000, shape.ffn = 11008, shape.kvHeads = 8;
  shape.gated = shape.rmsNorm = true;
  shape.dropout = shape.learnedPositions = false;
  ParallelPlan plan;
  plan.flashAttention = true;
  auto activations = [&] { return estimateMemory(shape, plan, clusterOf("a100-80g")).activations; };
  double tokens = 2048, h = 4096;
  double layer = tokens * (8 * h + 4 * h + 4 * h / 4 + 6 * 11008);
  double outside = 4 * tokens * h * (1 + 32000 / h); // no dropout, no mask
  EXPECT_NEAR(activations(), 32 * layer + outside, 1);
  plan.sp = 8; // each rank has an eighth of every sequence
  EXPECT_NEAR(activations(), (32 * layer + outside) / 8, 1);
  plan.sp = 1, plan.dtype = plan.gradientDtype = DType::F32;
  EXPECT_NEAR(activations(), 2 * (32 * layer + outside), 1);
  plan.lossChunks = 8; // an eighth of the logits at a time
  EXPECT_NEAR(activations(), 2 * (32 * layer + outside - 7.0 / 8 * 4 * tokens * 32000), 1);
  plan.lossChunks = 1;
  EXPECT_EQ(estimateMemory(shape, plan, clusterOf("a100-80g")).optimizer,
            8 * static_cast<double>(shape.parameters())); // no masters
}

TEST(Memory, AttentionsWorkspaceIsThePrograms) {
  ModelShape shape = shortGpt(12, 768, 12);
  shape.dropout = false;
  ParallelPlan plan;
  plan.flashAttention = true, plan.microBatch = 64, plan.lossChunks = 64;
  config::Cluster cluster = clusterOf("h100-80g");
  auto memory = [&] { return estimateMemory(shape, plan, cluster); };
  // Eight samples at once, as test/Passes/assign-workspaces-cuda.mlir has it; the logits are gone by then.
  double usual = 201720320, logits = 4 * 64 * 1024.0 * (768 + 51200 / 64.0);
  ASSERT_EQ(shape.vocab, 51200);
  EXPECT_EQ(memory().workspace, 0); // 392 MiB of logits
  plan.microBatch = 16;             // and so much of 16 samples, with a quarter of the logits
  logits /= 4;
  EXPECT_NEAR(memory().workspace, usual - logits, 1);
  EXPECT_NEAR(memory().deviceBytes(),
              memory().parameters + memory().gradients + memory().optimizer + memory().activations +
                  memory().workspace + memory().context,
              1);
  // One head of one sample takes 2 MiB; without room for it the runtime's own kernels compute the gradient.
  double others = memory().deviceBytes() - memory().workspace;
  double seconds = estimateStep(shape, plan, Rates(cluster)).seconds;
  cluster.device.memoryBytes = static_cast<int64_t>(others - logits) + (4 << 20);
  EXPECT_FALSE(memory().lacksWorkspace);
  EXPECT_EQ(memory().workspace, 0);
  cluster.device.memoryBytes -= 3 << 20;
  EXPECT_TRUE(memory().lacksWorkspace);
  EXPECT_GT(estimateStep(shape, plan, Rates(cluster)).seconds, 1.1 * seconds);
  cluster.device.memoryBytes -= 3 << 20; // which would not make it fit
  EXPECT_FALSE(memory().lacksWorkspace);
  // Nothing where no program would ask for it.
  cluster = clusterOf("h100-80g");
  plan.lossChunks = 1 << 20;
  EXPECT_GT(memory().workspace, 0);
  plan.flashAttention = false;
  EXPECT_EQ(memory().workspace, 0);
  plan.flashAttention = true, plan.dtype = DType::F32;
  EXPECT_EQ(memory().workspace, 0);
  plan.dtype = DType::BF16, cluster.device.architecture = "cpu";
  EXPECT_EQ(memory().workspace, 0);
}

TEST(Memory, StagesOfAPipeline) {
  ModelShape shape = gpt(96, 12288, 96);
  config::Cluster cluster = clusterOf("a100-80g");
  ParallelPlan plan;
  plan.tp = plan.pp = 8, plan.accumulation = 64, plan.shardSequence = true;
  plan.recompute = Recompute::Selective;
  auto at = [&](int64_t stage) { return estimateStageMemory(shape, plan, cluster, stage); };
  double layer = 34 * 2048 * 12288.0 / 8, again = layerActivationBytes(shape, 1, 8, true, Recompute::None);
  double flat = 2048 * 12288.0 / 8;
  for (int64_t stage = 0; stage < 8; ++stage) { // 12 layers, 8 - stage micro-batches in flight
    double outside = stage == 0 ? 8 * flat : stage == 7 ? 4 * flat + 4 * 2048 * 51200.0 / 8 : 0;
    EXPECT_NEAR(at(stage).activations, static_cast<double>(12 * (8 - stage)) * layer + again + outside, 1);
  }
  // Embeddings on the first, a copy of them with the last norm on the last, layers alone between.
  double layers = 12.0 * static_cast<double>(shape.layerParameters());
  EXPECT_EQ(at(0).parameters, 2 * (layers + (51200 + 2048) * 12288.0) / 8);
  EXPECT_EQ(at(3).parameters, 2 * layers / 8);
  EXPECT_EQ(at(7).parameters, 2 * (layers + 51200 * 12288.0 + 2 * 12288) / 8);
  EXPECT_EQ(estimateMemory(shape, plan, cluster).deviceBytes(), at(0).deviceBytes());
  plan.accumulation = 1, plan.microBatch = 8; // one micro-batch everywhere: the logits decide
  EXPECT_EQ(estimateMemory(shape, plan, cluster).deviceBytes(), at(7).deviceBytes());
  plan.accumulation = 64, plan.microBatch = 1, plan.interleave = 3; // chunks of 4 layers
  EXPECT_NEAR(at(0).activations, 4.0 * (8 * 3 + 7) * layer + again + 8 * flat, 1);
  EXPECT_NEAR(at(6).activations, 4.0 * (2 * 1 + 2 * 8 + 1) * layer + again, 1);
}

TEST(Memory, StagesOfUnequalLength) {
  // 70 layers over 12 stages: ten of six layers, two of five.
  ModelShape shape = gpt(112, 14336, 70);
  config::Cluster cluster = clusterOf("a100-80g");
  ParallelPlan plan = recomputing(8, 1);
  plan.tp = 4, plan.pp = 12, plan.accumulation = 128;
  int64_t layers = 0;
  for (int64_t stage = 0; stage < 12; ++stage)
    layers += layersOfStage(shape, plan, stage);
  EXPECT_EQ(layers, 70);
  EXPECT_EQ(layersOfStage(shape, plan, 9), 6);
  EXPECT_EQ(layersOfStage(shape, plan, 10), 5);
  double layer = static_cast<double>(shape.layerParameters()) / 4;
  EXPECT_EQ(estimateStageMemory(shape, plan, cluster, 9).parameters, 2 * 6 * layer);
  double checkpoint = 2 * 2048 * 14336.0; // one for each layer of the micro-batches in flight
  EXPECT_NEAR(estimateStageMemory(shape, plan, cluster, 9).activations -
                  estimateStageMemory(shape, plan, cluster, 10).activations,
              (6 * 3 - 5 * 2) * checkpoint, 1);
}

TEST(Memory, CheckpointsSharedOutAndOnTheHost) {
  // ZeRO's Pa (arXiv 1910.02054, section 6.1): 16 tensor-parallel ranks keep a sixteenth each.
  ModelShape shape = shortGpt(64, 8192, 125);
  config::Cluster cluster = clusterOf("dgx-2");
  ParallelPlan plan = recomputing(1, 0);
  plan.tp = 16, plan.microBatch = 32;
  double one = 2.0 * 32 * 1024 * 8192, all = 125 * one;
  double whole = estimateMemory(shape, plan, cluster).activations;
  plan.partitionCheckpoints = true;
  MemoryEstimate shared = estimateMemory(shape, plan, cluster);
  EXPECT_NEAR(whole - shared.activations, all * 15 / 16, 1);
  // On the host, the device has two of them; the host those of all sixteen ranks.
  plan.checkpointHome = Home::Cpu;
  MemoryEstimate host = estimateMemory(shape, plan, cluster);
  EXPECT_NEAR(shared.activations - host.activations, (125 - 2) * one / 16, 1);
  EXPECT_NEAR(host.host.bytes(), all, 1);
  EXPECT_EQ(host.pinnedBytes(), host.host.bytes());
  plan.recompute = Recompute::None;
  EXPECT_FALSE(checkPlan(shape, plan)); // there are no checkpoints
}

TEST(Memory, CheckpointsUnderSequenceShardedNormsAreSharedOut) {
  // 70B with sequences of 131072: 80 inputs of layers are 160 GiB, of which each of eight ranks has 20
  // (arXiv 2205.05198, section 4.2: between a layer's products the sequence is split).
  ModelShape shape = gpt(64, 8192, 80);
  shape.seq = 131072;
  config::Cluster cluster = clusterOf("h200");
  ParallelPlan plan = recomputing(1, 0);
  plan.tp = 8, plan.flashAttention = true;
  double all = 80 * 2.0 * 131072 * 8192;
  StageActivations whole = stageActivations(shape, plan, 0);
  EXPECT_EQ(whole.layers * whole.perLayer, all);
  plan.shardSequence = true;
  StageActivations split = stageActivations(shape, plan, 0);
  EXPECT_EQ(split.layers * split.perLayer, all / 8);
  EXPECT_NEAR(all / 8 / (1 << 30), 20, 1e-9);
  plan.partitionCheckpoints = true; // there is nothing left to share out, nor to gather
  EXPECT_EQ(stageActivations(shape, plan, 0).perLayer, split.perLayer);
  for (const Term &term : estimateStep(shape, plan, Rates(cluster)).terms)
    EXPECT_NE(term.name, "checkpoint gathers");
}

TEST(Memory, PageLockedMemoryAndStaging) {
  ModelShape shape = shortGpt(40, 5120, 40);
  double psi = static_cast<double>(shape.parameters());
  ParallelPlan plan = recomputing(1, 3, Home::Cpu);
  plan.parameterHome = Home::Cpu;
  MemoryEstimate host = estimateMemory(shape, plan, clusterOf("1x-v100-32g"));
  EXPECT_EQ(host.host.bytes(), 16 * psi);
  EXPECT_EQ(host.pinnedBytes(), 4 * psi); // 16-bit parameters and gradients cross the link
  plan.optimizerHome = plan.parameterHome = Home::Nvme;
  MemoryEstimate storage = estimateMemory(shape, plan, clusterOf("1x-v100-32g"));
  EXPECT_EQ(storage.storage.bytes(), 16 * psi);
  EXPECT_EQ(storage.host.bytes(), 4 * 4 * 5e8 + 5 * 1e8 * 2); // four fp32 buckets, five buffers of parameters
  EXPECT_EQ(storage.pinnedBytes(), storage.host.bytes());
}

TEST(Memory, BucketsUnderWay) {
  auto working = [](const ModelShape &shape, int64_t stage, int64_t ranks, Home optimizer = Home::Device) {
    return estimateMemory(shape, recomputing(ranks, stage, optimizer), clusterOf("a100-80g")).working();
  };
  ModelShape small = shortGpt(25, 1600, 48), large = shortGpt(160, 25600, 128);
  double layer = static_cast<double>(small.layerParameters());
  EXPECT_EQ(working(small, 1, 4), 0);
  EXPECT_EQ(working(small, 2, 4), 2 * 5e8 * 2); // two buckets of gradients
  EXPECT_EQ(working(small, 2, 1), 0);           // nothing is reduced
  EXPECT_EQ(working(small, 2, 1, Home::Cpu), 2 * 5e8 * 2);
  EXPECT_EQ(working(small, 3, 4), 2 * layer * 2 + 2 * layer * 2); // layers are smaller than buckets
  double largest = 4.0 * 25600 * 25600;                           // one parameter is larger than a bucket
  EXPECT_EQ(working(large, 3, 1024), 2 * largest * 2 + 2 * largest * 2);
}

TEST(Memory, Gpt2XlOnFour3090) {
  ModelShape shape = shortGpt(25, 1600, 48);
  shape.vocab = 50257;
  EXPECT_FALSE(holds("4x-rtx3090", shape, recomputing(4, 0)));
  EXPECT_TRUE(holds("4x-rtx3090", shape, recomputing(4, 3)));
}

TEST(Memory, ThirteenBillionOnOneV100) {
  ModelShape thirteen = shortGpt(40, 5120, 40), two = shortGpt(16, 2048, 40),
             oneAndAHalf = shortGpt(16, 1536, 48);
  EXPECT_NEAR(static_cast<double>(thirteen.parameters()) / 1e9, 13, 0.3);
  EXPECT_TRUE(holds("1x-v100-32g", thirteen, recomputing(1, 2, Home::Cpu)));
  EXPECT_FALSE(holds("1x-v100-32g", thirteen, recomputing(1, 0)));
  EXPECT_TRUE(holds("1x-v100-32g", oneAndAHalf, recomputing(1, 0))); // 1.4B is where data parallelism stops
  EXPECT_FALSE(holds("1x-v100-32g", two, recomputing(1, 0)));
}

TEST(Memory, FortyBillionOnOneV100) {
  ModelShape shape = shortGpt(64, 8192, 50);
  ParallelPlan plan = recomputing(1, 3, Home::Cpu);
  plan.microBatch = 8;
  EXPECT_FALSE(holds("1x-v100-32g", shape, plan));
  plan.parameterHome = Home::Cpu;
  EXPECT_TRUE(holds("1x-v100-32g", shape, plan));
  MemoryEstimate memory = estimateMemory(shape, plan, clusterOf("1x-v100-32g"));
  EXPECT_EQ(memory.parameters + memory.gradients + memory.optimizer, 0);
  EXPECT_NEAR(memory.host.bytes() / (16 * static_cast<double>(shape.parameters())), 1, 1e-12);
}

TEST(Memory, Gpt3OnOneNode) {
  ModelShape shape = gpt(96, 12288, 96);
  ParallelPlan plan = recomputing(1, 2, Home::Nvme);
  plan.tp = 8;
  EXPECT_TRUE(holds("8x-a100-80g", shape, plan));
  MemoryEstimate memory = estimateMemory(shape, plan, clusterOf("8x-a100-80g"));
  EXPECT_NEAR(memory.storage.bytes(), 14 * static_cast<double>(shape.parameters()), 1e3);
  plan.optimizerHome = Home::Cpu; // 14 bytes of 175B parameters are more than 2 TiB
  EXPECT_FALSE(holds("8x-a100-80g", shape, plan));
  plan.optimizerHome = Home::Device;
  EXPECT_FALSE(holds("8x-a100-80g", shape, plan));
}

TEST(Memory, OneTrillionOn1024) {
  ModelShape shape = shortGpt(160, 25600, 128);
  EXPECT_TRUE(holds("dgx-a100", shape, recomputing(1024, 3)));
  EXPECT_FALSE(holds("dgx-a100", shape, recomputing(1024, 2)));
}

TEST(Memory, LargestModelsOnOneDgx2) {
  // arXiv 2104.07857: 20B with stage 3, 70B with everything on the host, 1T with everything on storage.
  struct Case {
    int64_t heads, hidden, layers;
    Home optimizer, parameter;
    bool fits;
  };
  for (Case c : {Case{32, 4096, 98, Home::Device, Home::Device, true},  // 20B
                 Case{64, 8192, 50, Home::Device, Home::Device, false}, // 40B
                 Case{64, 8192, 87, Home::Cpu, Home::Cpu, true},        // 70B
                 Case{64, 8192, 150, Home::Cpu, Home::Cpu, false},      // 121B: 1.9 TB of states
                 Case{160, 25600, 128, Home::Cpu, Home::Cpu, false},    // 1T
                 Case{160, 25600, 128, Home::Nvme, Home::Nvme, true}}) {
    ParallelPlan plan = recomputing(16, 3, c.optimizer);
    plan.parameterHome = c.parameter;
    EXPECT_EQ(holds("dgx-2", shortGpt(c.heads, c.hidden, c.layers), plan), c.fits)
        << c.hidden << " " << c.layers;
  }
}
