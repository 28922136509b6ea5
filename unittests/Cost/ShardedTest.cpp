//===- ShardedTest.cpp - Fully sharded training as published -------------------------===//
//
// The tables of github.com/mosaicml/llm-foundry (scripts/train/benchmarking): GPTs of 125M to 70B with fused
// attention and parameters, gradients and states sharded over all devices. They were not used to fit the
// model but for the sustained rates of H100 and the ports that a gather drives. Attention was that of early
// 2023: FlashAttention, by itself or in Triton.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/Estimate.h"

#include "AttentionKernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

using namespace ds;
using namespace ds::cost;

namespace {
/// One row: the share of the dense peak that the model's operations reach, in percent.
struct Row {
  std::string_view model;
  int64_t seq, devices, microBatch, accumulation;
  bool recompute;
  bool low; ///< gradients are reduced in 16 bits
  double utilisation;
};

struct Shape {
  std::string_view model;
  int64_t hidden, heads, layers;
};
} // namespace

static constexpr Shape kShapes[] = {{"125m", 768, 12, 12}, {"350m", 1024, 16, 24}, {"760m", 1536, 12, 24},
                                    {"1b", 2048, 16, 24},  {"3b", 2560, 20, 32},   {"7b", 4096, 32, 32},
                                    {"13b", 5120, 40, 40}, {"30b", 7168, 56, 48},  {"70b", 8192, 64, 80}};

static constexpr Row kA100With80[] = {
    {"70b", 2048, 64, 8, 4, true, true, 53.33},    {"70b", 2048, 32, 2, 16, true, true, 48.56},
    {"30b", 8192, 8, 1, 21, true, false, 39.38},   {"30b", 4096, 8, 1, 21, true, false, 51.37},
    {"30b", 2048, 8, 3, 21, true, false, 55.3},    {"30b", 512, 8, 12, 21, true, false, 56.4},
    {"13b", 16384, 8, 3, 3, true, false, 54.07},   {"13b", 8192, 8, 5, 3, true, false, 56.07},
    {"13b", 2048, 8, 2, 3, false, false, 59.57},   {"13b", 1024, 8, 40, 3, true, false, 59.48},
    {"7b", 32768, 8, 2, 2, true, false, 49.46},    {"7b", 8192, 8, 8, 2, true, false, 54.47},
    {"7b", 2048, 8, 6, 2, false, false, 64.23},    {"7b", 1024, 8, 64, 2, true, false, 58.01},
    {"3b", 8192, 8, 3, 6, false, false, 59.34},    {"3b", 2048, 8, 10, 2, false, false, 62.11},
    {"3b", 512, 8, 40, 6, false, false, 63.71},    {"1b", 8192, 8, 3, 4, false, false, 56.69},
    {"1b", 2048, 8, 14, 4, false, false, 59.86},   {"1b", 512, 8, 56, 4, false, false, 60.68},
    {"760m", 2048, 8, 24, 2, false, false, 56.85}, {"350m", 2048, 8, 32, 2, false, false, 51.62},
    {"125m", 2048, 8, 40, 2, false, false, 44.79}, {"125m", 16384, 8, 4, 2, false, false, 50.61},
};

static constexpr Row kA100With40[] = {
    {"70b", 2048, 128, 4, 1, true, true, 48.91},    {"70b", 2048, 64, 2, 1, true, true, 35.87},
    {"30b", 2048, 128, 6, 1, true, true, 52.25},    {"30b", 2048, 32, 4, 1, true, true, 51.74},
    {"13b", 2048, 128, 16, 1, true, true, 51.93},   {"13b", 2048, 16, 10, 1, true, true, 52.5},
    {"13b", 2048, 8, 4, 16, true, true, 43.94},     {"7b", 2048, 128, 18, 1, true, true, 50.14},
    {"7b", 2048, 32, 18, 1, true, true, 51.55},     {"7b", 2048, 8, 12, 4, true, true, 50.92},
    {"3b", 2048, 128, 6, 1, false, true, 54.8},     {"3b", 2048, 64, 6, 1, false, true, 55.94},
    {"3b", 2048, 16, 5, 1, false, true, 56.02},     {"3b", 2048, 8, 5, 8, false, true, 57.82},
    {"1b", 2048, 128, 10, 1, false, true, 54.41},   {"1b", 2048, 8, 8, 8, false, true, 56.23},
    {"350m", 2048, 128, 18, 1, false, true, 45.61}, {"350m", 2048, 8, 16, 4, false, true, 49.17},
};

static constexpr Row kH100[] = {
    {"70b", 2048, 64, 8, 4, true, false, 42.57},  {"70b", 2048, 32, 2, 16, true, false, 36.15},
    {"30b", 8192, 8, 1, 21, true, false, 29.92},  {"30b", 2048, 32, 14, 3, true, false, 43.92},
    {"30b", 2048, 16, 10, 3, true, false, 43.07}, {"30b", 2048, 8, 3, 21, true, false, 38.11},
    {"13b", 16384, 8, 3, 3, true, false, 35.55},  {"13b", 4096, 8, 10, 3, true, false, 41.6},
    {"13b", 2048, 64, 2, 1, false, false, 39.86}, {"13b", 2048, 8, 2, 1, false, false, 39.79},
    {"13b", 1024, 8, 40, 3, true, false, 44.27},  {"7b", 8192, 8, 8, 2, true, false, 37.14},
    {"7b", 2048, 8, 6, 1, false, false, 46.44},   {"3b", 8192, 8, 3, 6, false, false, 40.31},
    {"3b", 2048, 64, 6, 3, false, false, 40.8},   {"3b", 2048, 16, 10, 3, false, false, 43.73},
    {"3b", 512, 8, 40, 6, false, false, 46.32},   {"1b", 2048, 64, 20, 1, false, false, 40.85},
    {"1b", 2048, 8, 14, 1, false, false, 41.82},  {"760m", 2048, 8, 24, 2, false, false, 34.9},
};

static ModelShape shapeOf(const Row &row) {
  ModelShape shape;
  for (const Shape &known : kShapes)
    if (known.model == row.model)
      shape.hidden = known.hidden, shape.heads = known.heads, shape.layers = known.layers;
  shape.vocab = 50368;
  shape.seq = row.seq;
  shape.biases = shape.dropout = false;
  return shape;
}

/// The estimated share of the peak in percent, counted as the tables count it.
static double utilisationOf(const Row &row, const Rates &rates) {
  ModelShape shape = shapeOf(row);
  ParallelPlan plan;
  plan.dp = row.devices, plan.microBatch = row.microBatch, plan.accumulation = row.accumulation;
  plan.zeroStage = 3;
  plan.recompute = row.recompute ? Recompute::Full : Recompute::None;
  plan.flashAttention = true;
  plan.gradientDtype = row.low ? DType::BF16 : DType::F32;
  EXPECT_TRUE(checkPlan(shape, plan));
  double perToken = 6 * static_cast<double>(shape.parameters()) +
                    12 * static_cast<double>(shape.layers * shape.hidden * shape.seq);
  double operations = perToken * static_cast<double>(shape.seq * plan.globalBatch());
  double seconds = estimateStep(shape, plan, rates).seconds;
  double peak = rates.cluster().device.peakFlops[DType::BF16] * static_cast<double>(row.devices);
  return 100 * operations / seconds / peak;
}

/// Holds a table to a mean and a largest error of the step's time.
template <size_t N>
static void compare(const char *cluster, const Row (&rows)[N], double mean, double most) {
  Rates rates(withKernel(config::builtinCluster(cluster), AttentionKernel::FlashAttention));
  double sum = 0;
  for (const Row &row : rows) {
    double error = row.utilisation / utilisationOf(row, rates) - 1;
    EXPECT_LE(std::abs(error), most) << cluster << " " << row.model << " sequences of " << row.seq << " on "
                                     << row.devices;
    sum += std::abs(error);
  }
  EXPECT_LE(sum / N, mean) << cluster;
}

TEST(Sharded, A100With80GB) { compare("a100-80g", kA100With80, 0.05, 0.25); }

TEST(Sharded, A100With40GB) { compare("a100-40g", kA100With40, 0.05, 0.25); }

TEST(Sharded, H100) { compare("h100-80g", kH100, 0.07, 0.20); }
