//===- VerifyStagesTest.cpp - Programs of several stages -----------------------===//
#include "TwoStages.h"
#include "Verdict.h"

namespace ds::rt {
namespace {

using test::TwoStages;
using testing::HasSubstr;

std::string after(const std::function<void(Program &)> &change) {
  return test::verdict(TwoStages().b.program, change);
}

TEST(VerifyStages, AcceptsStagesThatShareNothing) {
  EXPECT_EQ(after([](Program &) {}), "accepted");
}

TEST(VerifyStages, AreAsManyAsTheMeshHas) {
  EXPECT_THAT(after([](Program &p) { p.stages.pop_back(); }), HasSubstr("has 1 stages, but its mesh has 2"));
  EXPECT_THAT(after([](Program &p) { p.stages.clear(); }), HasSubstr("has 0 stages, but its mesh has 2"));
  EXPECT_THAT(after([](Program &p) { p.stages[1].arenas.device = UINT64_MAX; }), HasSubstr("the limit is"));
}

TEST(VerifyStages, EverythingBelongsToOne) {
  EXPECT_THAT(after([](Program &p) { p.states[0].stage = 2; }),
              HasSubstr("states[0] 'tied' belongs to stage 2 of 2"));
  EXPECT_THAT(after([](Program &p) { p.inputs[1].stage = 2; }),
              HasSubstr("inputs[1] 'x' belongs to stage 2"));
  EXPECT_THAT(after([](Program &p) { p.outputs[1].stage = 2; }),
              HasSubstr("outputs[1] 'loss' belongs to stage 2"));
  EXPECT_THAT(after([](Program &p) { p.segments[0].stage = 2; }),
              HasSubstr("'step' belongs to stage 2 of 2"));
  EXPECT_THAT(after([](Program &p) { p.lifetimes[0].stage = 2; }),
              HasSubstr("lifetimes[0] belongs to stage 2 of 2"));
}

TEST(VerifyStages, NamesAreThoseOfOneStage) {
  EXPECT_THAT(after([](Program &p) { p.inputs[1].stage = 0; }),
              HasSubstr("inputs[1] has the name 'x' of an earlier entry"));
  EXPECT_THAT(after([](Program &p) { p.outputs[1].stage = 0; }),
              HasSubstr("outputs[1] has the name 'loss' of an earlier entry"));
  EXPECT_THAT(after([](Program &p) { p.states[2].stage = 0; }),
              HasSubstr("states[2] has the name 'tied' of an earlier entry"));
  EXPECT_THAT(after([](Program &p) { p.states[3].aliases = {"own0"}; }),
              HasSubstr("states[3] 'own1' has the name 'own0' of 'own0' on another stage"));
  EXPECT_THAT(after([](Program &p) { p.states[3].role = Role::Master, p.states[3].owner = "own0"; }),
              HasSubstr("'own1' is the master of 'own0', which is no parameter"));
}

TEST(VerifyStages, StatesOfOneNameAreCopies) {
  for (auto change : std::initializer_list<void (*)(State &)>{
           [](State &s) { s.role = Role::Buffer; }, [](State &s) { s.trainable = false; },
           [](State &s) { s.owner = "own0"; },
           [](State &s) {
             s.logicalShape = {8, 1};
           },
           [](State &s) { s.init.kind = Init::Kind::Uniform; }, [](State &s) { s.init.a = 1; },
           [](State &s) { s.init.b = 2; }})
    EXPECT_THAT(after([&](Program &p) { change(p.states[2]); }),
                HasSubstr("states[2] 'tied' on stage 1 is no copy of states[0] on stage 0"));
  EXPECT_THAT(after([](Program &p) { p.buffers[p.states[2].buffer].dtype = DType::I32; }),
              HasSubstr("is no copy of states[0]"));
}

TEST(VerifyStages, MemoryIsThatOfTheStage) {
  EXPECT_THAT(after([](Program &p) { p.stages[1].arenas.device -= 64; }),
              HasSubstr("but the device arena has"));
  EXPECT_THAT(after([](Program &p) { p.stages[1].arenas.device += 1 << 30; }),
              HasSubstr("stage 1: the device arena has"));
  EXPECT_THAT(after([](Program &p) {
                for (Lifetime &lifetime : p.lifetimes)
                  if (lifetime.segment != Lifetime::kWholeStep)
                    lifetime.stage = 1 - lifetime.stage;
              }),
              HasSubstr("belongs to stage 1, but its segment 'step' to stage 0"));
  // Stage 0 has more memory: what lies there is none of stage 1's.
  const uint32_t large = TwoStages().large;
  EXPECT_THAT(after([&](Program &p) { p.operands[p.commands.back().firstOperand] = large; }),
              HasSubstr("which no lifetime holds then"));
  EXPECT_THAT(after([&](Program &p) { p.states[3].buffer = large; }),
              HasSubstr("states[3] 'own1' at device offset"));
}

TEST(VerifyStages, SchedulesAreOfTheirOwnSegments) {
  EXPECT_THAT(after([](Program &p) { p.stages[1].schedule[0].segment = 0; }),
              HasSubstr("stage 1: schedule[0] runs 'step' of stage 0"));
  EXPECT_THAT(after([](Program &p) { p.stages[1].schedule.clear(); }),
              HasSubstr("stage 1: the schedule of 0 entries has no update"));
  EXPECT_THAT(
      after([](Program &p) { p.stages[1].evaluation = p.stages[0].evaluation; }),
      HasSubstr("stage 1: evaluation segment 1 of 4 does not exist, does other work or is another stage's"));
}

TEST(VerifyStages, InputsOfOneNameAreOne) {
  EXPECT_THAT(after([](Program &p) { p.inputs[1].indexLimit = 0, p.inputs[1].hasIgnoreIndex = true; }),
              HasSubstr("inputs[1] 'x' on stage 1 is not inputs[0] on stage 0"));
  EXPECT_THAT(after([](Program &p) {
                p.buffers[p.inputs[1].buffer].shape = {4, 2}, p.buffers[p.inputs[1].buffer].strides = {2, 1};
              }),
              HasSubstr("they differ in shape, type, index limit, ignore index or targets"));
  EXPECT_THAT(after([](Program &p) { p.inputs[1].targets = {{0, 1}}; }), HasSubstr("is not inputs[0]"));
}

/// Of three stages two give the loss; who skips a step skips it on all.
TEST(VerifyStages, OutputsAreOfOneStageOrAll) {
  test::ProgramBuilder b;
  for (uint32_t stage = 0; stage < 3; ++stage) {
    if (stage > 0)
      b.addStage();
    if (stage != 1)
      b.output("loss");
    b.segment();
    b.program.stages[stage].schedule = {{stage, 0, 1, Gradients::Set, true}};
  }
  EXPECT_THAT(test::verdict(b.program, [](Program &) {}),
              HasSubstr("the output 'loss' is given by stages 0, 2 of 3, expected one or all"));
  EXPECT_EQ(test::verdict(b.program, [](Program &p) { p.outputs.pop_back(); }), "accepted");
  EXPECT_THAT(
      test::verdict(b.program, [](Program &p) { p.outputs.pop_back(), p.outputs[0].name = "skipped"; }),
      HasSubstr("the output 'skipped' is given by stages 0 of 3, expected all"));
}

TEST(VerifyStages, EvaluationIsOfAllOrNone) {
  EXPECT_THAT(after([](Program &p) { p.stages[1].evaluation = -1; }),
              HasSubstr("stage 1: has no evaluation segment, but stage 0 has one"));
  EXPECT_THAT(after([](Program &p) { p.stages[0].evaluation = -1; }),
              HasSubstr("stage 1: has an evaluation segment, but stage 0 has none"));
}

TEST(VerifyStages, NoStateIsCutAlongThem) {
  EXPECT_THAT(after([](Program &p) {
                p.states[1].logicalShape = {16};
                p.states[1].layout.cuts = {AxisSet{0}};
              }),
              HasSubstr("states[1] 'own0' is cut along pp, but a state is one stage's"));
}

TEST(VerifyStages, RanksAreAMultipleOfThem) {
  EXPECT_THAT(after([](Program &p) { p.world = 3; }), HasSubstr("mesh [pp = 2]: "));
}

} // namespace
} // namespace ds::rt
