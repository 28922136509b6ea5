//===- ProposalTest.cpp - Another setting of the same command line -----------------===//
#include "PlannedMachine.h"

#include "gmock/gmock.h"

using namespace ds::planner;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

TEST(SizesOfInput, AreThoseBeforeTheType) {
  EXPECT_THAT(sizesOfInput("x=4x128xi64"), ElementsAre(4, 128));
  EXPECT_THAT(sizesOfInput("x=4xf32"), ElementsAre(4));
  EXPECT_THAT(sizesOfInput("x=f32"), IsEmpty()); // a scalar
}

TEST(SizesOfInput, AreNoneWhereMisspelt) {
  for (const char *input :
       {"x=0x4xi64", "x=04x4xi64", "x=-1x4xi64", "x=axbxi64", "x=99999999999999999999xi64"})
    EXPECT_THAT(sizesOfInput(input), IsEmpty()) << input;
}

TEST(InputKinds, FollowTheFileName) {
  PlanSettings settings;
  for (auto [name, kind] : {std::pair("a.pt", InputKind::TorchScript),
                            {"a.pth", InputKind::TorchScript},
                            {"a.ts", InputKind::TorchScript},
                            {"config.json", InputKind::HfConfig},
                            {"a.mlir", InputKind::Mlir},
                            {"-", InputKind::Mlir}}) {
    settings.input = name;
    EXPECT_EQ(settings.inputKind(), kind) << name;
  }
}

class Proposals : public testing::Test {
protected:
  PlannedMachine machine;
  Proposal proposal{machine.settings, machine.config};
};

TEST_F(Proposals, BeginAsTheConfigurationSays) {
  EXPECT_EQ(proposal.choice.microBatch, 4);
  EXPECT_EQ(proposal.choice.accumulation, 4);
  EXPECT_EQ(proposal.choice.zeroStage, 0);
  EXPECT_EQ(proposal.choice.change, "");
}

TEST_F(Proposals, SmallerMicroBatchesKeepTheSamplesOfAStep) {
  proposal.setMicroBatch(1);
  EXPECT_EQ(proposal.choice.microBatch, 1);
  EXPECT_EQ(proposal.choice.accumulation, 16);
  EXPECT_EQ(proposal.choice.change, "train_micro_batch_size_per_gpu = 1"); // the rest follows
  EXPECT_THAT(proposal.settings.sets,
              ElementsAre("train_micro_batch_size_per_gpu=1", "gradient_accumulation_steps=16"));
  EXPECT_THAT(proposal.settings.inputs, ElementsAre("x=1x96xi64", "y=1x96xi64"));
}

TEST_F(Proposals, StatesElsewhereHaveADirectoryOnNvme) {
  proposal.setOptimizerHome(ds::config::Home::Nvme);
  EXPECT_EQ(proposal.choice.optimizerHome, "nvme");
  EXPECT_EQ(proposal.choice.change, "zero_optimization.offload_optimizer.device = \"nvme\"");
  EXPECT_THAT(proposal.settings.sets,
              ElementsAre("zero_optimization.offload_optimizer.device=\"nvme\"",
                          "zero_optimization.offload_optimizer.nvme_path=\"/local_nvme\""));
  proposal.setOptimizerHome(ds::config::Home::Device);
  EXPECT_EQ(proposal.choice.optimizerHome, "device");
  EXPECT_EQ(proposal.settings.sets.back(), "zero_optimization.offload_optimizer.device=\"none\"");
}

TEST_F(Proposals, ParametersComeBackWhereStage3IsLeft) {
  proposal.setStage(3);
  proposal.setParameterHome(ds::config::Home::Cpu);
  proposal.setStage(2);
  EXPECT_EQ(proposal.parameterHome, ds::config::Home::Device);
  EXPECT_EQ(proposal.settings.sets.back(), "zero_optimization.offload_param.device=\"none\"");
}

TEST_F(Proposals, LargerMicroBatchesMakeLargerSteps) {
  proposal.growMicroBatch(12);
  EXPECT_EQ(proposal.choice.accumulation, 4);
  EXPECT_THAT(proposal.settings.sets,
              ElementsAre("train_micro_batch_size_per_gpu=12", "gradient_accumulation_steps=4",
                          "train_batch_size=\"auto\""));
  EXPECT_THAT(proposal.settings.inputs, ElementsAre("x=12x96xi64", "y=12x96xi64"));
}

TEST_F(Proposals, ChangesAreNamedTogether) {
  proposal.setStage(3);
  proposal.setMicroBatch(2);
  EXPECT_EQ(proposal.choice.change, "zero_optimization.stage = 3 and train_micro_batch_size_per_gpu = 2");
}

TEST_F(Proposals, InputsOfOtherSizesStayAsTheyAre) {
  proposal.settings.inputs.push_back("mask=3x96xf32");
  proposal.settings.inputs.push_back("scale=f32");
  proposal.resizeInputs(0, 4, 8);
  EXPECT_THAT(proposal.settings.inputs,
              ElementsAre("x=8x96xi64", "y=8x96xi64", "mask=3x96xf32", "scale=f32"));
}

TEST_F(Proposals, TakeTheLargestArenaOfAllRanks) {
  ds::report::PlanReport report;
  report.ranks.resize(2);
  report.ranks[0].deviceArena = 5, report.ranks[1].deviceArena = 9;
  report.ranks[0].hostArena = 3;
  report.memoryLimit = 8;
  proposal.take(report);
  EXPECT_EQ(proposal.choice.deviceBytes, 9);
  EXPECT_EQ(proposal.choice.hostBytes, 3);
  EXPECT_FALSE(proposal.choice.fits);
}

} // namespace
