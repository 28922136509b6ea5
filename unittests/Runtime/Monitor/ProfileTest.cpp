//===- ProfileTest.cpp - Operations and time of a step by module ---------------------===//

#include "Monitor/Profile.h"

#include "../ProgramBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ds::rt;
using namespace ds::rt::test;
using testing::HasSubstr;
using testing::Not;

namespace {

/// Two layers: a product each in both directions, one of them recomputed; an update and a collective.
class ProfileTest : public testing::Test {
protected:
  ProfileTest() {
    program.streams = {StreamKind::Compute, StreamKind::Gather};
    program.strings = {"matmul h.0.fc", "matmul h.1.fc", "add", "all_gather h.0.fc"};
    const auto add = [&](uint32_t location, Part part, double flops, uint8_t stream = 0) {
      Command command;
      command.kind = stream == 0 ? CommandKind::Library : CommandKind::Collective;
      command.stream = stream;
      command.location = location;
      command.part = part;
      command.flops = flops;
      program.commands.push_back(command);
    };
    add(0, Part::Forward, 1e9);
    add(1, Part::Forward, 3e9);
    add(1, Part::Backward, 6e9);
    add(0, Part::Recompute, 1e9);
    add(2, Part::Update, 0);
    add(3, Part::Forward, 0, 1);
    for (const char *name : {"h.0.fc.weight", "h.1.fc.weight", "scale"}) {
      State state;
      state.name = name;
      state.logicalShape = {4, 8};
      program.states.push_back(state);
    }
    int64_t begin = 0;
    for (uint32_t command = 0; command < 6; ++command, begin += 10'000'000)
      timings.push_back({command, program.commands[command].stream, begin, begin + 10'000'000});
    program.microBatch = 2;
  }
  Program program;
  std::vector<Timing> timings; ///< 10 ms each
};

TEST_F(ProfileTest, ModulesHaveAllThatIsInside) {
  const ModuleCost model = profileOf(program, timings);
  EXPECT_EQ(model.parameters, 96u);
  EXPECT_EQ(model.of(Part::Forward).flops, 4e9);
  EXPECT_DOUBLE_EQ(model.of(Part::Forward).seconds, 0.02) << "collectives are no module's";
  EXPECT_DOUBLE_EQ(model.of(Part::Update).seconds, 0.01);
  const ModuleCost &h = model.inside.at("h");
  EXPECT_EQ(h.parameters, 64u);
  EXPECT_EQ(h.inside.at("1").inside.at("fc").of(Part::Backward).flops, 6e9);
  EXPECT_EQ(h.inside.at("0").of(Part::Recompute).flops, 1e9);
  EXPECT_DOUBLE_EQ(h.seconds(), 0.04);
}

TEST_F(ProfileTest, TellsPartsModulesAndTree) {
  const std::string text = spellProfile(program, profileOf(program, timings), 3, 0.1, {});
  EXPECT_THAT(text, HasSubstr("profile of step 3 on rank 0 of 1"));
  EXPECT_THAT(text, HasSubstr("  forward        4.000 GFLOP    0.020000 s    0.2000 TFLOP/s\n"));
  EXPECT_THAT(text, HasSubstr("  recomputed     1.000 GFLOP    0.010000 s"));
  EXPECT_THAT(text, HasSubstr("  step        0.100000 s, 20.00 samples/s"));
  EXPECT_THAT(text,
              HasSubstr("depth 2\n  parameters   h.0 32\n  forward      h.1 3.000 GFLOP\n  forward time h."));
  EXPECT_THAT(text, HasSubstr("\n  h "));
  EXPECT_THAT(text, HasSubstr("\n      fc ")) << "the innermost";
}

TEST_F(ProfileTest, DepthAndTopAreTheConfigurations) {
  const ModuleCost model = profileOf(program, timings);
  const std::string two = spellProfile(program, model, 3, 0.1, {3, 2, 2, false, ""});
  EXPECT_THAT(two, HasSubstr("forward      h.1 3.000 GFLOP, h.0 1.000 GFLOP\n"));
  EXPECT_THAT(two, Not(HasSubstr("depth 3")));
  EXPECT_THAT(two, Not(HasSubstr("module  "))) << "not detailed";
  const std::string flat = spellProfile(program, model, 3, 0.1, {3, 1, 1, true, ""});
  EXPECT_THAT(flat, HasSubstr("\n  h "));
  EXPECT_THAT(flat, Not(HasSubstr("      fc ")));
}

} // namespace
