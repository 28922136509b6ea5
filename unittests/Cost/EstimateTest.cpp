//===- EstimateTest.cpp - Steps against published measurements -----------------------===//
#include "ds/Cost/Estimate.h"
#include "ds/Cost/Formulas.h"

#include "Published.h"
#include "Terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

using namespace ds;
using namespace ds::cost;

static const Rates &a100() {
  static const Rates rates(config::builtinCluster("dgx-a100"));
  return rates;
}

static StepEstimate checked(const ModelShape &shape, const ParallelPlan &plan, const Rates &rates) {
  Status status = checkPlan(shape, plan);
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
  StepEstimate step = estimateStep(shape, plan, rates);
  double sum = 0;
  for (const Term &term : step.terms)
    sum += term.seconds;
  EXPECT_DOUBLE_EQ(sum, step.seconds);
  return step;
}

namespace {
/// A row of Megatron's table 1, with the micro-batch, chunks and overlap of its published scripts.
struct Megatron {
  int64_t heads, hidden, layers, tp, pp, devices, batch, microBatch, interleave;
  bool overlapped;
  double teraflops;
};
} // namespace

static constexpr Megatron kMegatron[] = {{24, 2304, 24, 1, 1, 32, 512, 16, 1, true, 137},
                                         {32, 3072, 30, 2, 1, 64, 512, 16, 1, true, 138},
                                         {32, 4096, 36, 4, 1, 128, 512, 16, 1, true, 142},
                                         {48, 6144, 40, 8, 1, 256, 1024, 8, 1, true, 135},
                                         {64, 8192, 48, 8, 2, 512, 1536, 4, 1, false, 138},
                                         {80, 10240, 60, 8, 4, 1024, 1792, 2, 3, false, 140},
                                         {96, 12288, 80, 8, 8, 1536, 2304, 2, 2, false, 148},
                                         {128, 16384, 96, 8, 16, 1920, 2160, 1, 2, false, 155},
                                         {128, 20480, 105, 8, 35, 2520, 2520, 1, 3, false, 163},
                                         {160, 25600, 128, 8, 64, 3072, 3072, 1, 1, false, 163}};

TEST(Estimate, MegatronTable1) {
  double sum = 0;
  for (const Megatron &row : kMegatron) {
    ModelShape shape = gpt(row.heads, row.hidden, row.layers);
    ParallelPlan plan;
    plan.tp = row.tp, plan.pp = row.pp, plan.dp = row.devices / row.tp / row.pp;
    plan.microBatch = row.microBatch, plan.interleave = row.interleave;
    plan.accumulation = row.batch / plan.dp / row.microBatch;
    plan.recompute = Recompute::Full;
    plan.dtype = plan.gradientDtype = DType::F16;
    plan.overlapReduce = row.overlapped;
    StepEstimate step = checked(shape, plan, a100());
    double published = megatronFlops(shape, static_cast<double>(row.batch)) /
                       (static_cast<double>(row.devices) * row.teraflops * 1e12);
    double error = step.seconds / published - 1;
    EXPECT_LE(std::abs(error), 0.075) << row.hidden;
    sum += std::abs(error);
  }
  EXPECT_LE(sum / std::size(kMegatron), 0.05);
}

namespace {
struct Recomputation {
  int64_t heads, hidden, layers, pp, interleave, microBatch, micros;
  double full, selective;
};
} // namespace

static constexpr Recomputation kRecomputation[] = {{64, 6144, 48, 1, 1, 4, 1, 1.42, 1.10},
                                                   {96, 12288, 96, 8, 3, 1, 64, 18.13, 13.75},
                                                   {128, 20480, 105, 35, 3, 1, 280, 49.05, 37.83},
                                                   {160, 25600, 128, 64, 1, 1, 512, 94.42, 71.49}};

static ParallelPlan planOf(const Recomputation &row, bool selective) {
  ParallelPlan plan;
  plan.tp = 8, plan.pp = row.pp, plan.interleave = row.interleave;
  plan.microBatch = row.microBatch, plan.accumulation = row.micros;
  plan.recompute = selective ? Recompute::Selective : Recompute::Full;
  plan.shardSequence = selective;
  plan.overlapTensor = true;
  plan.dtype = plan.gradientDtype = DType::F16;
  return plan;
}

TEST(Estimate, RecomputationTable) {
  for (const Recomputation &row : kRecomputation)
    for (bool selective : {false, true}) {
      StepEstimate step = checked(gpt(row.heads, row.hidden, row.layers), planOf(row, selective), a100());
      double error = step.seconds / (selective ? row.selective : row.full) - 1;
      EXPECT_LE(std::abs(error), 0.08) << row.hidden << (selective ? " selective" : " full");
    }
}

TEST(Estimate, LayerOf22B) {
  struct Row {
    bool sharded;
    Recompute recompute;
    double forward, backward; // milliseconds, arXiv 2205.05198, table 4
  };
  for (Row row : {Row{false, Recompute::None, 7.7, 11.9}, Row{true, Recompute::None, 7.2, 11.8},
                  Row{false, Recompute::Full, 7.7, 19.5}, Row{false, Recompute::Selective, 7.7, 13.2},
                  Row{true, Recompute::Selective, 7.2, 13.1}}) {
    ParallelPlan plan = planOf(kRecomputation[0], false);
    plan.shardSequence = row.sharded, plan.recompute = row.recompute;
    LayerSeconds layer = estimateStep(gpt(64, 6144, 48), plan, a100()).layer;
    EXPECT_NEAR(1e3 * (layer.forward + layer.forwardExchange) / row.forward, 1, 0.07);
    EXPECT_NEAR(1e3 * (layer.backward + layer.recompute + layer.backwardExchange) / row.backward, 1, 0.07);
  }
}

namespace {
/// A point of Megatron's table 2: 3D parallelism against ZeRO-3 without model parallelism.
struct Crossover {
  int64_t heads, hidden, layers, tp, pp, devices, batch, interleave;
  int64_t zeroDevices, zeroBatch, zeroMicroBatch;
  double pipeline, zero; // TFLOP/s per device
};
} // namespace

static constexpr Crossover kCrossover[] = {{96, 12288, 96, 8, 12, 384, 1536, 1, 384, 1536, 4, 153, 144},
                                           {96, 12288, 96, 8, 12, 768, 1536, 1, 768, 1536, 2, 149, 88},
                                           {96, 12288, 96, 8, 12, 1536, 1536, 1, 1536, 1536, 1, 141, 44},
                                           {128, 20480, 105, 8, 35, 560, 2240, 1, 640, 2560, 4, 171, 138},
                                           {128, 20480, 105, 8, 35, 1120, 2240, 1, 1120, 2240, 2, 167, 98},
                                           {128, 20480, 105, 8, 35, 2240, 2240, 1, 2240, 2240, 1, 159, 48}};

TEST(Estimate, CrossoverOf3DParallelismAndZero3) {
  for (const Crossover &point : kCrossover) {
    ModelShape shape = gpt(point.heads, point.hidden, point.layers);
    ParallelPlan pipeline;
    pipeline.tp = point.tp, pipeline.pp = point.pp, pipeline.dp = point.devices / point.tp / point.pp;
    pipeline.accumulation = point.batch / pipeline.dp;
    pipeline.recompute = Recompute::Full;
    pipeline.overlapReduce = false;
    ParallelPlan zero;
    zero.dp = point.zeroDevices, zero.microBatch = point.zeroMicroBatch;
    zero.zeroStage = 3;
    zero.recompute = Recompute::Full;
    double threeD = checked(shape, pipeline, a100()).hardwareFlopsPerDevice(pipeline) / 1e12;
    double zero3 = checked(shape, zero, a100()).hardwareFlopsPerDevice(zero) / 1e12;
    EXPECT_GT(threeD, zero3) << point.devices;
    EXPECT_NEAR(threeD / point.pipeline, 1, 0.06) << point.devices;
    EXPECT_NEAR(zero3 / point.zero, 1, 0.13) << point.devices;
  }
}

TEST(Estimate, FlopsAreThePublishedFormulas) {
  ModelShape shape = gpt(96, 12288, 96);
  ParallelPlan plan;
  plan.accumulation = 64;
  auto ratio = [&](Recompute recompute, double formula) {
    plan.recompute = recompute;
    return stepFlops(shape, plan, true) / formula;
  };
  EXPECT_NEAR(ratio(Recompute::None, modelFlops(shape, 64)), 1, 1e-12);
  EXPECT_NEAR(ratio(Recompute::Full, megatronFlops(shape, 64)), 1, 1e-12);
  // The published one counts attention's two products twice again; repeated once they are a sixth less.
  double attention = 12.0 * 64 * 96 * 2048 * 2048 * 12288;
  EXPECT_NEAR(ratio(Recompute::Selective, selectiveFlops(shape, 64) - attention + attention / 3), 1, 1e-12);
}

TEST(Estimate, FusedAttentionIsHalfOfThePublishedWork) {
  ModelShape shape = gpt(96, 12288, 96);
  ParallelPlan plan;
  plan.accumulation = 64;
  EXPECT_EQ(stepWork(shape, plan), stepFlops(shape, plan, false)); // every score is computed
  plan.flashAttention = true; // causal: half of 2 products forward, and of 5 in place of 4 backward
  double product = 2.0 * 64 * 96 * 2048 * 2048 * 12288;
  EXPECT_NEAR((stepFlops(shape, plan, false) - stepWork(shape, plan)) / ((6 - 7 / 2.0) * product), 1, 1e-12);
}

TEST(Estimate, FusedAttentionLeavesOutWhatLiesOutsideOfAWindow) {
  ModelShape shape = gpt(96, 12288, 96);
  ParallelPlan plan;
  plan.flashAttention = true;
  const double full = stepWork(shape, plan), seconds = estimateStep(shape, plan, a100()).seconds;
  // A quarter of 2048 positions: 512 * (2048 - 256) pairs in place of 2048^2 / 2, of 2 + 5 products of 24
  // layers.
  shape.window = 512, shape.windowLayers = 24;
  double saved = 2048.0 * 2048 / 2 - 512.0 * (2048 - 256);
  EXPECT_NEAR((full - stepWork(shape, plan)) / (2 * 7 * 24 * saved * 12288), 1, 1e-9);
  EXPECT_LT(estimateStep(shape, plan, a100()).seconds, seconds);
  shape.window = 2048;
  EXPECT_EQ(stepWork(shape, plan), full);
  shape.window = 512, plan.flashAttention = false; // every score is computed
  EXPECT_EQ(stepWork(shape, plan), stepFlops(shape, plan, false));
}

TEST(Estimate, BytesSentAreThePapersVolumes) {
  ModelShape shape = gpt(32, 4096, 36);
  ParallelPlan plan;
  plan.dp = 64;
  double psi = static_cast<double>(36 * shape.layerParameters() + shape.embeddingParameters());
  double ranks = 63.0 / 64;
  for (int64_t stage = 0; stage <= 3; ++stage) {
    plan.zeroStage = stage;
    StepEstimate step = estimateStep(shape, plan, a100());
    double elements = (step.gatheredBytes + step.scatteredBytes + step.reducedBytes) / 2;
    EXPECT_NEAR(elements, ranks * zeroVolumeElements(psi, stage), 1) << stage;
  }
  plan.accumulation = 4; // stages 2 and 3 reduce every micro-batch, stage 3 gathers for each
  auto elements = [&](int64_t stage) {
    plan.zeroStage = stage;
    StepEstimate step = estimateStep(shape, plan, a100());
    return (step.gatheredBytes + step.scatteredBytes + step.reducedBytes) / 2 / ranks / psi;
  };
  EXPECT_NEAR(elements(1), 2, 1e-9);
  EXPECT_NEAR(elements(2), 4 + 1, 1e-9);
  EXPECT_NEAR(elements(3), 4 * 3, 1e-9);
}

TEST(Estimate, TermsFollowThePlan) {
  ModelShape shape = gpt(96, 12288, 96);
  ParallelPlan plan;
  plan.tp = 8, plan.pp = 8, plan.accumulation = 64;
  StepEstimate flat = checked(shape, plan, a100());
  plan.interleave = 3;
  StepEstimate chunked = checked(shape, plan, a100());
  EXPECT_NEAR(termOf(chunked, "pipeline bubble") / termOf(flat, "pipeline bubble"), 1.0 / 3, 0.02);
  EXPECT_NEAR(termOf(chunked, "pipeline transfers") / termOf(flat, "pipeline transfers"), 3, 1e-9);
  EXPECT_EQ(termOf(flat, "recompute"), 0);
  for (const Term &term : flat.terms)
    EXPECT_FALSE(term.source.empty()) << term.name;
  // Fused attention has neither passes over scores nor anything to recompute selectively.
  plan.flashAttention = true, plan.recompute = Recompute::Selective;
  StepEstimate fused = checked(shape, plan, a100());
  EXPECT_EQ(termOf(fused, "recompute"), 0);
  EXPECT_LT(termOf(fused, "forward"), termOf(chunked, "forward"));
  // Ranks that share sequences exchange around attention, and each has a part of the tokens.
  ParallelPlan sequence;
  sequence.sp = 8;
  StepEstimate shared = checked(gpt(32, 4096, 36), sequence, a100());
  EXPECT_GT(termOf(shared, "tensor exchange"), 0);
  EXPECT_LT(termOf(shared, "forward"), termOf(checked(gpt(32, 4096, 36), {}, a100()), "forward") / 4);
}

TEST(Estimate, OffloadCostsCopiesAndAnUpdateOnTheHost) {
  Rates v100(config::builtinCluster("v100-32g"));
  ModelShape shape = gpt(32, 4096, 50); // 10B
  shape.seq = 1024;
  ParallelPlan plan;
  plan.microBatch = 8, plan.zeroStage = 2, plan.recompute = Recompute::Full;
  plan.dtype = plan.gradientDtype = DType::F16;
  plan.optimizerHome = Home::Cpu;
  StepEstimate host = checked(shape, plan, v100);
  double parameters =
      50.0 * static_cast<double>(shape.layerParameters()) + static_cast<double>(shape.embeddingParameters());
  EXPECT_NEAR(termOf(host, "parameters to the device"), 2 * parameters / 12e9, 0.01); // 2 bytes at 12 GB/s
  EXPECT_NEAR(termOf(host, "update on the host"), 32 * parameters / (2.56e11 * 0.5), 0.01);
  EXPECT_NEAR(host.hardwareFlopsPerDevice(plan) / 40e12, 1, 0.25); // about 40 TFLOP/s, arXiv 2101.06840
  plan.optimizerHome = Home::Nvme;
  StepEstimate storage = checked(shape, plan, v100);
  EXPECT_GE(storage.seconds, host.seconds);
  EXPECT_GT(termOf(storage, "update on the host"), 0);
}
