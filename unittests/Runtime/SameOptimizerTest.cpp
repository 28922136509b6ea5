//===- SameOptimizerTest.cpp - Whose moments a program goes on with -------------------===//

#include "Saving/SameOptimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::rt;
using testing::HasSubstr;

namespace {

using Names = std::vector<std::string>;

Program trainedBy(const std::string &optimizer, const Names &moments) {
  Program program;
  if (!optimizer.empty())
    program.configText = "train_batch_size = 8   # f\noptimizer.type = \"" + optimizer + "\"   # f\n";
  for (const std::string &moment : moments) {
    State state;
    state.name = "state_" + std::to_string(program.states.size()); // names say nothing
    state.role = Role::Moment;
    state.owner = "h.w";
    state.slot = moment;
    program.states.push_back(state);
  }
  return program;
}

Manifest savedBy(const std::string &optimizer, const Names &moments) {
  Manifest manifest;
  manifest.optimizer = optimizer;
  for (const std::string &moment : moments)
    manifest.tensors.push_back({"h.w." + moment, Role::Moment, "h.w", FileDType::F32, {}, {}, false, {}, {}});
  return manifest;
}

const Names kAdam = {"exp_avg", "exp_avg_sq"}, kLion = {"exp_avg"}, kSgd = {"momentum_buffer"}, kNone;

TEST(SameOptimizer, GoesOnWithItsOwn) {
  EXPECT_TRUE(checkSameOptimizer(trainedBy("AdamW", kAdam), savedBy("AdamW", kAdam), "s"));
  EXPECT_TRUE(checkSameOptimizer(trainedBy("AdamW", kAdam), savedBy("adam", kAdam), "s"));
  EXPECT_TRUE(checkSameOptimizer(trainedBy("SGD", kNone), savedBy("SGD", kNone), "s"));
  EXPECT_TRUE(checkSameOptimizer(trainedBy("Lion", kLion), savedBy("", kLion), "s"));
  EXPECT_TRUE(checkSameOptimizer(trainedBy("", kAdam), savedBy("Lamb", kAdam), "s"));
}

TEST(SameOptimizer, WeightsAloneBeginAny) {
  for (const Names &moments : {kAdam, kLion, kSgd, kNone})
    EXPECT_TRUE(checkSameOptimizer(trainedBy("SGD", moments), savedBy("", kNone), "s"));
}

/// By name where both have one, though the moments would fit; else by the moments.
TEST(SameOptimizer, RefusesAnothers) {
  const std::pair<Program, Manifest> cases[] = {{trainedBy("Lion", kLion), savedBy("AdamW", kAdam)},
                                                {trainedBy("SGD", kNone), savedBy("AdamW", kAdam)},
                                                {trainedBy("SGD", kSgd), savedBy("AdamW", kAdam)},
                                                {trainedBy("Lamb", kAdam), savedBy("AdamW", kAdam)},
                                                {trainedBy("AdamW", kAdam), savedBy("SGD", kNone)},
                                                {trainedBy("AdamW", kAdam), savedBy("Lion", kLion)},
                                                {trainedBy("Lion", kLion), savedBy("", kAdam)},
                                                {trainedBy("SGD", kNone), savedBy("", kLion)},
                                                {trainedBy("", kLion), savedBy("", kAdam)}};
  for (const auto &[program, manifest] : cases) {
    const Status status = checkSameOptimizer(program, manifest, "s/step-4");
    ASSERT_FALSE(status) << manifest.optimizer << " to " << program.configText;
    EXPECT_EQ(status.error().code, ExitCode::Invalid);
    EXPECT_THAT(status.error().message, HasSubstr("'s/step-4' was trained by "));
  }
  EXPECT_EQ(checkSameOptimizer(trainedBy("Lion", kLion), savedBy("AdamW", kAdam), "s").error().message,
            "'s' was trained by 'AdamW' with 'exp_avg', 'exp_avg_sq', but the program trains by 'Lion' with "
            "'exp_avg'");
  EXPECT_EQ(checkSameOptimizer(trainedBy("SGD", kNone), savedBy("", kLion), "s").error().message,
            "'s' was trained by an optimizer with 'exp_avg', but the program trains by 'SGD'");
}

} // namespace
