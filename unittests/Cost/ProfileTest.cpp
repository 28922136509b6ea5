//===- ProfileTest.cpp - Operations by the profiler's rules --------------------------===//
#include "ds/Cost/Profile.h"

#include "ds/Cost/Estimate.h"

#include "Published.h"

#include <gtest/gtest.h>

#include <map>

using namespace ds::cost;

static std::pair<double, double> pair(const OpCount &count) { return {count.flops, count.macs}; }
using Counts = std::pair<double, double>;

TEST(Profile, RulesOfOps) {
  EXPECT_EQ(pair(countProduct(6, 4, 5)),
            Counts(240, 120)); // F.linear of [2, 3, 4] to 5, with or without bias
  EXPECT_EQ(pair(countAddmm(6, 4, 5, 5)), Counts(245, 120));
  // conv2d of [2, 3, 8, 8] by 16 windows of 3 x 3, padded: 2 * 64 outputs, 27 products each.
  EXPECT_EQ(pair(countConvolution(128, 9, 3, 16, 1, false)), Counts(2 * 128 * 27 * 16, 128 * 27 * 16));
  EXPECT_EQ(pair(countConvolution(128, 9, 3, 16, 1, true)),
            Counts(2 * 128 * 27 * 16 + 16 * 128, 128 * 27 * 16));
  EXPECT_EQ(pair(countConvolution(128, 9, 16, 16, 16, false)),
            Counts(2 * 128 * 9 * 16, 128 * 9 * 16)); // depthwise
  EXPECT_EQ(pair(countElementwise(24)), Counts(24, 0));
  EXPECT_EQ(pair(countNorm(24, true)), Counts(120, 0));
  EXPECT_EQ(pair(countNorm(24, false)), Counts(96, 0));
}

TEST(Profile, ModulesAddUp) {
  ModelShape llama = gpt(32, 4096, 4);
  llama.vocab = 32000, llama.ffn = 11008, llama.kvHeads = 8;
  llama.gated = llama.rmsNorm = true;
  llama.biases = llama.learnedPositions = llama.tied = false;
  for (const ModelShape &shape : {gpt(12, 768, 12), llama}) {
    std::map<std::string, ModuleProfile> rows;
    for (const ModuleProfile &row : profileModel(shape, 2))
      rows[row.name] = row;
    double parameters = 0, flops = 0, macs = 0;
    for (const auto &[name, row] : rows)
      if (row.depth == 1)
        parameters += row.parameters, flops += row.count.flops, macs += row.count.macs;
    EXPECT_EQ(parameters, rows["model"].parameters);
    EXPECT_EQ(flops, rows["model"].count.flops);
    EXPECT_EQ(macs, rows["model"].count.macs);
    double inside = rows["attention"].parameters + rows["mlp"].parameters + rows["norms"].parameters;
    EXPECT_EQ(inside, rows["layer"].parameters);
    // Multiply-accumulates are half of the operations that a step's forward is counted with.
    ParallelPlan plan;
    plan.microBatch = 2;
    EXPECT_NEAR(6 * macs / stepFlops(shape, plan, false), 1, 1e-12);
  }
}

TEST(Profile, OneLayerOfGpt2) {
  ModelShape shape = gpt(12, 768, 12);
  shape.seq = 1024;
  for (const ModuleProfile &row : profileModel(shape, 1)) {
    double tokens = 1024, h = 768, scores = 12.0 * 1024 * 1024;
    if (row.name == "attention")
      EXPECT_EQ(pair(row.count), Counts(8 * tokens * h * h + 4 * tokens * tokens * h + 3 * scores,
                                        4 * tokens * h * h + 2 * tokens * tokens * h));
    if (row.name == "mlp")
      EXPECT_EQ(pair(row.count), Counts(16 * tokens * h * h + 4 * tokens * h, 8 * tokens * h * h));
    if (row.name == "layer")
      EXPECT_EQ(row.count.flops, 24 * tokens * h * h + 4 * tokens * tokens * h + 3 * scores + 4 * tokens * h +
                                     12 * tokens * h);
  }
}
