//===- FormulasTest.cpp - The tables of the papers, cell by cell --------------------===//
#include "ds/Cost/Formulas.h"

#include "Published.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace ds::cost;

static constexpr double kMiB = 1 << 20, kGiB = 1 << 30, kTiB = 1024.0 * kGiB;

/// `value` as printed: equal to `printed` up to half a unit of its last digit, rounded either way.
#define EXPECT_PRINTED(value, printed, unit) EXPECT_NEAR(value, printed, (unit)*0.51)

TEST(Formulas, ZeroTable1) {
  struct Row {
    double ranks, small[3], middle[3], large[3]; // GB under stages 1, 2, 3
  };
  const Row rows[] = {{1, {120, 120, 120}, {2048, 2048, 2048}, {16000, 16000, 16000}},
                      {4, {52.5, 41.3, 30}, {896, 704, 512}, {7000, 5500, 4000}},
                      {16, {35.6, 21.6, 7.5}, {608, 368, 128}, {4750, 2875, 1000}},
                      {64, {31.4, 16.6, 1.88}, {536, 284, 32}, {4187, 2218, 250}},
                      {256, {30.4, 15.4, 0.47}, {518, 263, 8}, {4046, 2054, 62.5}},
                      {1024, {30.1, 15.1, 0.12}, {513, 257, 2}, {4011, 2013, 15.6}}};
  for (const Row &row : rows)
    for (int64_t stage = 1; stage <= 3; ++stage) {
      auto gigabytes = [&](double parameters) { return zeroStateBytes(parameters, row.ranks, stage) / 1e9; };
      double cell = row.small[stage - 1];
      EXPECT_PRINTED(gigabytes(7.5e9), cell, cell < 2 ? 0.01 : 0.1) << row.ranks << " stage " << stage;
      // The paper rounds some of these down (4187.5, 2218.75).
      EXPECT_NEAR(gigabytes(128e9), row.middle[stage - 1], 1) << row.ranks << " stage " << stage;
      EXPECT_NEAR(gigabytes(1e12), row.large[stage - 1], 1) << row.ranks << " stage " << stage;
    }
}

TEST(Formulas, ZeroStatesForEveryNumberOfRanks) {
  for (double n = 1; n <= 1024; ++n) {
    double psi = 1024 * 1024;
    EXPECT_DOUBLE_EQ(zeroStateBytes(psi, n, 0), 16 * psi);
    EXPECT_NEAR(zeroStateBytes(psi, n, 1), 4 * psi + 12 * psi / n, 1e-6);
    EXPECT_NEAR(zeroStateBytes(psi, n, 2), 2 * psi + 14 * psi / n, 1e-6);
    EXPECT_NEAR(zeroStateBytes(psi, n, 3), 16 * psi / n, 1e-6);
  }
  EXPECT_EQ(zeroStateBytes(1, 4, 1, {4, 4, 8}), 10); // fp32: 4 + 4 + 8 / 4
  for (auto [stage, volume] : {std::pair<int64_t, double>{0, 2}, {1, 2}, {2, 2}, {3, 3}})
    EXPECT_EQ(zeroVolumeElements(10, stage), 10 * volume);
}

TEST(Formulas, ZeroTable2LargestModels) {
  // Parameters that 32 GB hold on 64 data-parallel ranks, without and with stages 1, 2, 3.
  const std::pair<int64_t, double> cells[] = {{0, 2}, {1, 7.6}, {2, 14.4}, {3, 128}};
  for (auto [stage, billions] : cells)
    EXPECT_NEAR(32e9 / zeroStateBytes(1, 64, stage) / 1e9, billions, 0.05 + 0.003 * billions) << stage;
}

TEST(Formulas, DeepspeedEstimators) {
  // 2851M parameters, largest layer 32M, eight devices on one node; GiB as DeepSpeed prints them.
  EXPECT_PRINTED(deepspeedZero2(2851e6, 8, 1, true).deviceBytes / kGiB, 5.31, 0.01);
  EXPECT_PRINTED(deepspeedZero2(2851e6, 8, 1, true).hostBytes / kGiB, 127.45, 0.01);
  EXPECT_PRINTED(deepspeedZero2(2851e6, 8, 1, false).deviceBytes / kGiB, 15.93, 0.01);
  EXPECT_PRINTED(deepspeedZero2(2851e6, 8, 1, false).hostBytes / kGiB, 127.45, 0.01);
  struct Row {
    bool optimizer, parameters, init;
    double host, device;
  };
  for (Row row : {Row{true, true, true, 71.69, 0.12}, Row{true, true, false, 127.45, 0.12},
                  Row{true, false, true, 63.72, 0.78}, Row{true, false, false, 127.45, 0.78},
                  Row{false, false, true, 1.43, 6.09}, Row{false, false, false, 127.45, 6.09}}) {
    MemoryNeed need = deepspeedZero3({2851e6, 32e6, 8, 1, row.optimizer, row.parameters, row.init});
    EXPECT_PRINTED(need.hostBytes / kGiB, row.host, 0.01) << row.host;
    EXPECT_PRINTED(need.deviceBytes / kGiB, row.device, 0.01) << row.host;
  }
  // t5-large on four devices.
  EXPECT_PRINTED(deepspeedZero3({737.67e6, 32.90e6, 4, 1, false, false}).deviceBytes / kMiB, 3291, 1);
  EXPECT_NEAR(deepspeedZero3({737.67e6, 32.90e6, 4, 1, true, true}).deviceBytes / kMiB, 125, 1);
  EXPECT_PRINTED(deepspeedZero3({737.67e6, 32.90e6, 4, 1, true, false}).deviceBytes / kMiB, 477, 1);
}

namespace {
/// A row of Megatron's table 1.
struct Megatron {
  double billions;
  int64_t heads, hidden, layers, devices, batch;
  double teraflops, seconds;
};
} // namespace

static constexpr Megatron kMegatron[] = {
    {1.7, 24, 2304, 24, 32, 512, 137, 3.53},          {3.6, 32, 3072, 30, 64, 512, 138, 3.70},
    {7.5, 32, 4096, 36, 128, 512, 142, 3.70},         {18.4, 48, 6144, 40, 256, 1024, 135, 9.40},
    {39.1, 64, 8192, 48, 512, 1536, 138, 14.45},      {76.1, 80, 10240, 60, 1024, 1792, 140, 16.06},
    {145.6, 96, 12288, 80, 1536, 2304, 148, 24.82},   {310.1, 128, 16384, 96, 1920, 2160, 155, 37.61},
    {529.6, 128, 20480, 105, 2520, 2520, 163, 54.09}, {1008.0, 160, 25600, 128, 3072, 3072, 163, 102.6}};

TEST(Formulas, MegatronParametersAndFlops) {
  for (const Megatron &row : kMegatron) {
    ModelShape shape = gpt(row.heads, row.hidden, row.layers);
    EXPECT_PRINTED(megatronParameters(shape) / 1e9, row.billions, row.billions > 1000 ? 1 : 0.1);
    EXPECT_EQ(static_cast<double>(shape.parameters()) - 2 * static_cast<double>(row.hidden),
              megatronParameters(shape)); // the last norm
    double seconds = megatronFlops(shape, static_cast<double>(row.batch)) /
                     (static_cast<double>(row.devices) * row.teraflops * 1e12);
    EXPECT_PRINTED(seconds, row.seconds, row.seconds > 100 ? 0.1 : 0.01) << row.billions;
  }
}

TEST(Formulas, PipelineBubbles) {
  EXPECT_DOUBLE_EQ(pipelineBubble(1, 8), 0);
  EXPECT_DOUBLE_EQ(pipelineBubble(4, 8), 3.0 / 8);
  EXPECT_DOUBLE_EQ(pipelineBubble(4, 8, 2), 3.0 / 16);
  EXPECT_DOUBLE_EQ(pipelineIdleShare(4, 8), 3.0 / 11); // (p - 1) / (m + p - 1)
  EXPECT_DOUBLE_EQ(pipelineIdleShare(4, 8, 3), 1.0 / 9);
  EXPECT_DOUBLE_EQ(zeroBubble(Pipeline::OneForwardOneBackward, 4, 8), 3.0 / 8);
  EXPECT_DOUBLE_EQ(zeroBubble(Pipeline::ZeroBubbleH1, 4, 8), 1.0 / 8);
  EXPECT_DOUBLE_EQ(zeroBubble(Pipeline::ZeroBubbleH2, 4, 8), 0);
  EXPECT_DOUBLE_EQ(zeroBubble(Pipeline::ZeroBubbleV, 4, 8), 0);
  EXPECT_EQ(zeroBubbleMemory(Pipeline::ZeroBubbleH2), 2);
  EXPECT_EQ(zeroBubbleMemory(Pipeline::ZeroBubbleV), 1);
}

TEST(Formulas, MegatronStates) {
  EXPECT_EQ(megatronBytesPerParameter(8, false), 18);
  EXPECT_EQ(megatronBytesPerParameter(8, true), 7.5);
}

namespace {
struct Activations {
  int64_t heads, hidden, layers, pp, interleave, microBatch, micros;
  double tensor, sequence, selective, full; ///< GiB on the first stage
  double mfu, hfu, seconds;                 ///< with sequence sharding and selective recomputation
};
} // namespace

static constexpr Activations kActivations[] = {
    {64, 6144, 48, 1, 1, 4, 1, 59.3, 39.6, 9.6, 4.5, 41.5, 43.7, 1.10},
    {96, 12288, 96, 8, 3, 1, 64, 66.8, 41.4, 12.4, 5.8, 51.4, 52.8, 13.75},
    {128, 20480, 105, 35, 3, 1, 280, 114, 66.5, 23.1, 10.9, 56.0, 57.0, 37.83},
    {160, 25600, 128, 64, 1, 1, 512, 131, 76.6, 26.6, 12.5, 56.3, 57.0, 71.49}};

static ParallelPlan planOf(const Activations &row, bool shardSequence, Recompute recompute) {
  ParallelPlan plan;
  plan.tp = 8;
  plan.pp = row.pp;
  plan.interleave = row.interleave;
  plan.microBatch = row.microBatch;
  plan.accumulation = row.micros;
  plan.shardSequence = shardSequence;
  plan.recompute = recompute;
  return plan;
}

TEST(Formulas, ActivationsOfTheFirstStage) {
  for (const Activations &row : kActivations) {
    ModelShape shape = gpt(row.heads, row.hidden, row.layers);
    auto gibi = [&](bool shardSequence, Recompute recompute) {
      return firstStageActivationBytes(shape, planOf(row, shardSequence, recompute)) / kGiB;
    };
    double unit = row.tensor > 100 ? 1 : 0.1;
    EXPECT_PRINTED(gibi(false, Recompute::None), row.tensor, unit);
    EXPECT_PRINTED(gibi(true, Recompute::None), row.sequence, 0.1);
    EXPECT_PRINTED(gibi(true, Recompute::Selective), row.selective, 0.1);
    EXPECT_PRINTED(gibi(false, Recompute::Full), row.full, 0.1);
    EXPECT_DOUBLE_EQ(gibi(true, Recompute::Full), gibi(false, Recompute::Full) / 8); // inputs in 8 parts
  }
}

TEST(Formulas, ActivationsOfALayer) {
  ModelShape shape = gpt(64, 6144, 48);
  double sbh = 2048 * 4 * 6144.0, scores = 5 * 64 * 2048 / 6144.0;
  auto bytes = [&](double tp, bool sharded, Recompute recompute) {
    return layerActivationBytes(shape, 4, tp, sharded, recompute);
  };
  EXPECT_DOUBLE_EQ(bytes(1, false, Recompute::None), sbh * (34 + scores));
  EXPECT_DOUBLE_EQ(bytes(8, false, Recompute::None), sbh * (10 + 24.0 / 8 + scores / 8));
  EXPECT_DOUBLE_EQ(bytes(8, true, Recompute::None), sbh / 8 * (34 + scores));
  EXPECT_DOUBLE_EQ(bytes(8, false, Recompute::Selective), sbh * (10 + 24.0 / 8));
  EXPECT_DOUBLE_EQ(bytes(8, true, Recompute::Selective), 34 * sbh / 8);
  EXPECT_DOUBLE_EQ(bytes(8, false, Recompute::Full), 2 * sbh);
  EXPECT_DOUBLE_EQ(bytes(8, true, Recompute::Full), 2 * sbh / 8);
  ParallelPlan plan =
      planOf(kActivations[0], false, Recompute::None); // one stage: mask, norm, projection, logits
  EXPECT_DOUBLE_EQ(outsideActivationBytes(shape, plan), sbh / 8 + 4 * sbh / 8 * (1 + 51200.0 / 6144));
  plan = planOf(kActivations[1], false, Recompute::None);
  EXPECT_DOUBLE_EQ(outsideActivationBytes(gpt(96, 12288, 96), plan), 2048 * 12288.0); // * 8 stages / 8
  plan.accumulation = 2; // two micro-batches in eight stages
  EXPECT_DOUBLE_EQ(
      firstStageActivationBytes(gpt(96, 12288, 96), plan),
      firstStageActivationBytes(gpt(96, 12288, 96), planOf(kActivations[1], false, Recompute::None)) / 4);
}

TEST(Formulas, ModelAndHardwareFlops) {
  const double recomputedMfu[] = {41.7, 51.4, 56.0, 56.3};
  for (size_t i = 0; i < std::size(kActivations); ++i) {
    const Activations &row = kActivations[i];
    ModelShape shape = gpt(row.heads, row.hidden, row.layers);
    double batch = static_cast<double>(row.microBatch * row.micros),
           devices = 8.0 * static_cast<double>(row.pp);
    double peak = devices * 312e12 * row.seconds / 100;
    EXPECT_NEAR(modelFlops(shape, batch) / peak, recomputedMfu[i], 0.06);
    EXPECT_NEAR(selectiveFlops(shape, batch) / peak, row.hfu, 0.3); // the table rounds its seconds
  }
}

TEST(Formulas, ZeroInfinity) {
  struct Row {
    double trillions, layers, hidden, heads, states, checkpoints, model, activations; // hd in units of 1024
  };
  for (Row row :
       {Row{0.10, 80, 10240, 128, 1.83, 0.05, 1.56, 1.62}, Row{0.50, 100, 20480, 160, 9.16, 0.12, 6.25, 2.50},
        Row{1.01, 128, 25600, 256, 18.31, 0.20, 9.77, 3.56},
        Row{10.05, 195, 65536, 512, 182.81, 0.76, 64.0, 8.0},
        Row{101.47, 315, 163840, 1024, 1845.70, 3.08, 400, 18.0}}) {
    EXPECT_PRINTED(infinityStateBytes(row.layers, row.hidden) / 20 / 1e12, row.trillions, 0.01);
    EXPECT_PRINTED(infinityStateBytes(row.layers, row.hidden) / kTiB, row.states, 0.01);
    EXPECT_PRINTED(infinityCheckpointBytes(row.layers, row.hidden, 32, 1024) / kTiB, row.checkpoints, 0.01);
    EXPECT_PRINTED(infinityModelWorkingBytes(row.hidden) / kGiB, row.model, 0.01);
    EXPECT_PRINTED(infinityActivationWorkingBytes(row.hidden, row.heads, 4, 1024) / kGiB, row.activations,
                   0.01);
  }
  // Half the peak of 70 TFLOP/s at batch 1 and 1024 tokens needs 68 GB/s; nine tenths for the optimizer at
  // batch 2 need 1.23 TB/s.
  EXPECT_NEAR(infinityEfficiency(1024, 68.4e9, 70e12), 0.5, 0.001);
  EXPECT_NEAR(infinityEfficiency(2 * 1024 / 4.0, 1.23e12, 70e12), 0.9, 0.001);
  EXPECT_NEAR(infinityEfficiency(24 * 2048, 1.42e9, 70e12), 0.5, 0.001);
  EXPECT_NEAR(infinityEfficiency(24 * 8192, 3.2e9, 70e12), 0.9, 0.001);
}
