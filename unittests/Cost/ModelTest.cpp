//===- ModelTest.cpp - Shapes and plans ----------------------------------------------===//
#include "ds/Cost/Model.h"

#include "Published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::cost;
using testing::HasSubstr;

TEST(Model, PublishedModelsHaveTheirParameters) {
  ModelShape gpt2 = gpt(12, 768, 12);
  gpt2.vocab = 50257;
  gpt2.seq = 1024;
  EXPECT_EQ(gpt2.parameters(), 124439808); // the published checkpoint
  ModelShape xl = gpt(25, 1600, 48);
  xl.vocab = 50257;
  xl.seq = 1024;
  EXPECT_EQ(xl.parameters(), 1557611200);
  ModelShape llama = gpt(32, 4096, 32);
  llama.vocab = 32000;
  llama.ffn = 11008;
  llama.gated = llama.rmsNorm = true;
  llama.biases = llama.learnedPositions = llama.tied = false;
  EXPECT_EQ(llama.parameters(), 6738415616); // Llama 2 7B
  llama.layers = 80, llama.hidden = 8192, llama.heads = 64, llama.kvHeads = 8, llama.ffn = 28672;
  EXPECT_EQ(llama.parameters(), 68976648192); // Llama 2 70B, grouped queries
}

TEST(Model, PlansThatDoNotDivideAreRefused) {
  auto told = [](auto change) {
    ModelShape shape = gpt(96, 12288, 96);
    ParallelPlan plan;
    plan.tp = 8, plan.pp = 8, plan.interleave = 3, plan.accumulation = 64;
    change(shape, plan);
    Status status = checkPlan(shape, plan);
    return status ? std::string("ok") : status.error().message;
  };
  EXPECT_EQ(told([](ModelShape &, ParallelPlan &) {}), "ok");
  EXPECT_EQ(told([](ModelShape &s, ParallelPlan &) { s.heads = 100; }),
            "hidden = 12288 is not divisible by heads = 100");
  EXPECT_EQ(told([](ModelShape &s, ParallelPlan &) { s.kvHeads = 7; }),
            "heads = 96 is not divisible by key-value heads = 7");
  EXPECT_EQ(told([](ModelShape &, ParallelPlan &p) { p.tp = 5; }),
            "heads = 96 is not divisible by tp * sp = 5");
  EXPECT_EQ(told([](ModelShape &, ParallelPlan &p) { p.pp = 5; }),
            "layers = 96 is not divisible by pp * interleave = 15");
  EXPECT_EQ(told([](ModelShape &, ParallelPlan &p) { p.pp = 97, p.interleave = 1; }),
            "layers = 96 leaves no layer to some of pp = 97 stages");
  EXPECT_EQ(told([](ModelShape &, ParallelPlan &p) { p.pp = 10, p.interleave = 1; }), "ok");
  EXPECT_THAT(told([](ModelShape &, ParallelPlan &p) { p.accumulation = 12; }),
              HasSubstr("interleave = 3 needs"));
  EXPECT_EQ(told([](ModelShape &, ParallelPlan &p) { p.zeroStage = 2; }),
            "ZeRO stage = 2 does not go with pp = 8");
  EXPECT_THAT(told([](ModelShape &, ParallelPlan &p) { p.parameterHome = Home::Cpu; }),
              HasSubstr("under ZeRO stage 3 only"));
  EXPECT_EQ(told([](ModelShape &, ParallelPlan &p) { p.microBatch = 0; }), "micro-batch = 0 is not positive");
}
