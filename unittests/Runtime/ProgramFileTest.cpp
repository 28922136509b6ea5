//===- ProgramFileTest.cpp - .dsx files survive a round trip, damage does not --===//
//
// A file with any byte changed is refused by the checksum; with the checksum made right again it is refused
// by one of the verifiers or is a valid program. Either way nothing crashes.
//
//===---------------------------------------------------------------------------===//
#include "TwoStages.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>
#include <filesystem>
#include <random>

namespace ds::rt {
namespace {

using test::ProgramBuilder;
using test::TwoStages;
using testing::HasSubstr;

/// One of everything that the file can hold.
Program sampleProgram() {
  ProgramBuilder b;
  const uint32_t x = b.input("x", {4, 8});
  const uint32_t targets = b.input("targets", {4}, DType::I64, 16);
  const uint32_t w = b.state("w", {16, 8}, {Init::Kind::Normal, 0.0, 0.02});
  b.program.states[0].aliases = {"tied"};
  b.program.states[0].readNames = {"model.w"};
  b.ranks(2);
  const uint32_t shard = b.keep({80});
  b.sharded("m", {16, 8}, shard, 32, {}, Role::Moment, "w");
  const uint32_t loss = b.output("loss");
  const uint32_t logits = b.place({4, 16}), lse = b.place({4}), count = b.keep({});
  b.live(logits, 0, 0, 4);
  b.live(lse, 0, 1, 4);
  b.library(LibraryFn::Matmul, {x, w, logits}, {0, 1, 0, 0});
  b.library(LibraryFn::CrossEntropyForward, {logits, targets, loss, lse, count}, {-100});
  b.library(LibraryFn::CrossEntropyBackward, {logits, targets, lse, count, loss, logits}, {-100});
  b.library(LibraryFn::Matmul, {logits, x, w}, {1, 0, 1, 0});
  const uint32_t grad = b.keep({128}), part = b.rankWindow(grad, {0});
  b.communicate(CollectiveKind::ReduceScatter, Reduction::Sum, 64, {grad, part}, 2);
  b.segment({Work::Forward, Work::Backward}, "micro-step");
  b.launch("ds_update", 16, {w}, {3});
  b.segment({Work::Update}, "update");
  b.program.segments[0].chunk = 3;
  b.program.stages[0].schedule.push_back({1});
  b.slotted({5}, 3);
  b.program.numEvents = 1;
  b.program.image = {1, 2, 3};
  b.program.cpuFeatures = {"avx2", "fma"};
  b.program.weightsFile = "w.safetensors";
  b.program.unusedWeights = {"mask"};
  b.program.modelConfig = "{\"model_type\": \"gpt2\"}\n";
  b.program.convertsWeights = b.program.tf32 = true;
  b.program.storage = {"/nvme", 4096, 32, 2, true, false, "/parameters"};
  b.program.strings = {"layer 0"};
  b.program.predicted = {123, 0.5, 1e9, 1e8, 2e12};
  b.program.nodeLocalSaves = true;
  b.program.watch = {10, MonitorSettings{"tb", "job"}, MonitorSettings{"", "csv job"}, true,
                     ProfileSettings{3, 2, 4, false, "profile.txt"}};
  b.program.planHash = hashPlan(b.program);
  return b.program;
}

/// Makes the header agree with a payload that a test has changed.
void seal(std::vector<uint8_t> &bytes) {
  const uint64_t size = bytes.size() - 32;
  const uint64_t checksum = XXH3_64bits_withSeed(bytes.data() + 32, size, kProgramFormat);
  std::memcpy(bytes.data() + 16, &size, 8);
  std::memcpy(bytes.data() + 24, &checksum, 8);
}

std::string refusal(const std::vector<uint8_t> &bytes) {
  Result<Program> program = parseProgram(bytes, "p.dsx");
  if (program)
    return "accepted";
  EXPECT_EQ(program.error().code, ExitCode::Corrupt);
  return program.error().message;
}

TEST(ProgramFile, RoundTripKeepsEveryByte) {
  const Program program = sampleProgram();
  ASSERT_TRUE(verifyProgram(program)) << verifyProgram(program).error().message;
  const std::vector<uint8_t> bytes = serializeProgram(program).value();
  Result<Program> again = parseProgram(bytes, "p.dsx");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(serializeProgram(*again).value(), bytes);
  EXPECT_EQ(again->states[0].aliases, program.states[0].aliases);
  EXPECT_EQ(again->states[0].readNames, program.states[0].readNames);
  EXPECT_EQ(again->unusedWeights, program.unusedWeights);
  EXPECT_EQ(again->modelConfig, program.modelConfig);
  EXPECT_TRUE(again->convertsWeights);
  EXPECT_TRUE(again->tf32);
  EXPECT_EQ(again->storage, program.storage);
  EXPECT_EQ(again->predicted.peakBytes, 123u);
  EXPECT_EQ(again->predicted.recomputeFlops, 1e8);
  EXPECT_EQ(again->predicted.peakFlopsPerSecond, 2e12);
  EXPECT_TRUE(again->nodeLocalSaves);
  EXPECT_EQ(again->watch, program.watch);
  EXPECT_EQ(again->world, 2u);
  EXPECT_EQ(again->mesh, (Mesh{{"dp", 2}}));
  EXPECT_EQ(again->dataAxes, AxisSet{0});
  EXPECT_EQ(again->states[0].layout, Layout());
  EXPECT_EQ(again->states[1].layout, (Layout{{}, {0}, 32, 80}));
  EXPECT_EQ(again->buffers.back().shape, program.buffers.back().shape);
  EXPECT_EQ(again->buffers.back().slots, 3u);
  EXPECT_EQ(again->buffers.back().slotStride, 64u);
  EXPECT_EQ(again->segments[0].chunk, 3u);
  EXPECT_EQ(again->segments[0].work, (WorkSet{Work::Forward, Work::Backward}));
  ASSERT_EQ(again->stages[0].schedule.size(), 2u);
  EXPECT_EQ(again->stages[0].schedule[0].gradients, Gradients::Set);
  EXPECT_TRUE(again->stages[0].schedule[0].reduces);
  EXPECT_FALSE(again->stages[0].schedule[1].reduces);
  ASSERT_EQ(again->collectives.size(), 1u);
  EXPECT_EQ(again->collectives[0].name, "reduce_scatter_0");
  EXPECT_EQ(again->collectives[0].elements, 64u);
  EXPECT_EQ(again->collectives[0].axes, AxisSet{0});
  EXPECT_EQ(again->collectives[0].reduction, Reduction::Sum);
}

TEST(ProgramFile, KeepsAxes) {
  ProgramBuilder b;
  b.ranks({{"dp.node", 2}, {"dp.local", 2}, {"tp", 2}, {"pp", 1}});
  const uint32_t whole = b.keep({8, 8}), part = b.rankWindow(whole, {1, 2}), cut = b.keep({4, 3}),
                 shard = b.keep({8});
  b.program.states.push_back({"w", {}, Role::Parameter, "", {4, 6}, cut, {}, true, {{AxisSet(), {2}}, {}}});
  b.program.states.push_back(
      {"m", {}, Role::Moment, "w", {6, 4}, shard, {}, false, {{{2}, AxisSet()}, {1}, 3, 8}});
  b.program.states.back().slot = "exp_avg_sq";
  b.communicateAlong({1, 2}, CollectiveKind::AllGather, Reduction::None, 16, {part, whole});
  b.segment();
  const std::vector<uint8_t> bytes = serializeProgram(b.program).value();
  const Result<Program> again = parseProgram(bytes, "p.dsx");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(serializeProgram(*again).value(), bytes);
  EXPECT_EQ(again->mesh, b.program.mesh);
  EXPECT_EQ(again->dataAxes, (AxisSet{0, 1}));
  EXPECT_EQ(again->stageAxes, AxisSet{3});
  EXPECT_EQ(again->states[0].layout, b.program.states[0].layout);
  EXPECT_EQ(again->states[1].layout, b.program.states[1].layout);
  EXPECT_EQ(again->states[0].slot, "");
  EXPECT_EQ(again->states[1].slot, "exp_avg_sq");
  EXPECT_EQ(again->collectives[0].axes, (AxisSet{1, 2}));
  EXPECT_EQ(again->buffers[whole].axisStrides, std::vector<uint64_t>());
  EXPECT_EQ(again->buffers[part].axisStrides, (std::vector<uint64_t>{0, 2 * 16 * 4, 16 * 4, 0}));
}

TEST(ProgramFile, KeepsViews) {
  ProgramBuilder b;
  b.state("table", {9, 4});
  Layout padded;
  padded.view = {9, 2, 2};
  padded.existing = 7;
  b.program.states[0].logicalShape = {7, 4};
  b.program.states[0].layout = padded;
  b.state("fused", {6, 4});
  b.program.states[1].layout.view = {3, 2, 4};
  b.segment();
  const std::vector<uint8_t> bytes = serializeProgram(b.program).value();
  const Result<Program> again = parseProgram(bytes, "p.dsx");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(serializeProgram(*again).value(), bytes);
  EXPECT_EQ(again->states[0].layout, padded);
  EXPECT_EQ(again->states[1].layout, b.program.states[1].layout);
  const auto refusedWith = [&](const auto &change) {
    Program changed = b.program;
    change(changed.states[0]);
    return refusal(serializeProgram(changed).value());
  };
  EXPECT_THAT(refusedWith([](State &state) { state.layout.existing = 0; }),
              HasSubstr("states[0] 'table' has 0 existing rows of 9, but allowed are 1 to 8"));
  EXPECT_THAT(refusedWith([](State &state) { state.layout.existing = 10; }),
              HasSubstr("states[0] 'table' has 10 existing rows of 9, but allowed are 1 to 8"));
  EXPECT_THAT(refusedWith([](State &state) { state.layout.existing.reset(); }),
              HasSubstr("states[0] 'table' has the view [9, 2, 2] of 36 elements, but 28 elements"));
  EXPECT_THAT(refusedWith([](State &state) { state.layout.view.clear(); }),
              HasSubstr("states[0] 'table' has 7 existing rows, but no view"));
  EXPECT_THAT(
      refusedWith([](State &state) {
        state.layout.view = {9, INT64_MAX, 4};
      }),
      HasSubstr("states[0] 'table' has a view of size 9223372036854775807, or its product overflows"));
  EXPECT_THAT(refusedWith([](State &state) {
                state.layout.view = {8, 2, 2};
              }),
              HasSubstr("states[0] 'table' has 32 elements on each rank, but its buffer holds 36"));
  EXPECT_THAT(refusedWith([](State &state) { state.layout.cuts.resize(2); }),
              HasSubstr("states[0] 'table' has cuts of 2 dimensions, but 3 dimensions of its view"));
}

TEST(ProgramFile, KeepsAllStages) {
  const Program program = TwoStages().b.program;
  const std::vector<uint8_t> bytes = serializeProgram(program).value();
  Result<Program> again = parseProgram(bytes, "p.dsx");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(serializeProgram(*again).value(), bytes);
  ASSERT_EQ(again->stages.size(), 2u);
  EXPECT_EQ(again->stages[1].arenas.device, program.stages[1].arenas.device);
  EXPECT_EQ(again->stages[1].schedule.at(0).segment, 2u);
  EXPECT_EQ(again->stages[1].evaluation, 3);
  EXPECT_EQ(again->states[3].stage, 1u);
  EXPECT_EQ(again->inputs[1].stage, 1u);
  EXPECT_EQ(again->outputs[1].stage, 1u);
  EXPECT_EQ(again->lifetimes.back().stage, 1u);
  EXPECT_EQ(again->segments[3].stage, 1u);
}

TEST(ProgramFile, KeepsTheEntryForLogits) {
  Program program = sampleProgram();
  const std::string without = hashPlan(program);
  program.stages[0].logits = {7, 2, 3};
  EXPECT_NE(hashPlan(program), without);
  Result<Program> again = parseProgram(serializeProgram(program).value(), "p.dsx");
  ASSERT_FALSE(again); // there is no segment 7
  EXPECT_THAT(again.error().message, HasSubstr("the segment 7 of 2 for logits does not exist"));
}

TEST(ProgramFile, KeepsKernelsForCuda) {
  ProgramBuilder b;
  b.program.target = "cuda:sm_90";
  b.launch("norm", 16, {b.keep({64}), b.output("loss")});
  b.program.kernels[0] = {"norm", 0, 1, 256, 512, 8, true, {16, 4}, 0, {{16, true}, {4}}, 1};
  b.program.commands[0].numParams = 1;
  b.program.params = {16};
  b.segment();
  b.program.image = {'.', 0};
  b.program.cubin = {7, 8};
  const Program again = parseProgram(serializeProgram(b.program).value(), "p.dsx").value();
  EXPECT_EQ(again.target, "cuda:sm_90");
  EXPECT_EQ(again.cubin, b.program.cubin);
  EXPECT_EQ(again.kernels[0].blockThreads, 256u);
  EXPECT_EQ(again.kernels[0].sharedBytes, 512u);
  EXPECT_EQ(again.kernels[0].unitsPerBlock, 8);
  EXPECT_TRUE(again.kernels[0].persistent);
  EXPECT_EQ(again.kernels[0].params, 1u);
  ASSERT_EQ(again.kernels[0].operands.size(), 2u);
  EXPECT_EQ(again.kernels[0].operands[0].bytes, 16u);
  EXPECT_TRUE(again.kernels[0].operands[0].perUnit);
  EXPECT_FALSE(again.kernels[0].operands[1].perUnit);
  EXPECT_EQ(again.kernels[0].alignments, (std::vector<uint32_t>{16, 4}));
}

// What a command names is not limited by the width of a field: large models have more than 65,536 events.
TEST(ProgramFile, NamesMoreThingsThanSixteenBitsCount) {
  ProgramBuilder b;
  b.program.numEvents = 70000;
  for (uint32_t event = 0; event < b.program.numEvents; ++event)
    b.command(CommandKind::RecordEvent, event, {});
  b.segment();
  Result<Program> again = parseProgram(serializeProgram(b.program).value(), "p.dsx");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->commands.back().callee, 69999u);
}

// An empty list, such as a scalar's shape, lies wherever the builder stands; names of every length move it
// there.
TEST(ProgramFile, ReadsScalarStatesWhereverTheirShapeLies) {
  for (size_t length = 1; length <= 9; ++length) {
    ProgramBuilder b;
    b.state(std::string(length, 's'), {}, {}, Role::Scalar);
    b.segment();
    Result<std::vector<uint8_t>> bytes = serializeProgram(b.program);
    ASSERT_TRUE(bytes);
    Result<Program> read = parseProgram(*bytes, "scalars");
    EXPECT_TRUE(read) << read.error().message;
  }
}

TEST(ProgramFile, WritesAndReadsAFile) {
  const std::string path = testing::TempDir() + "ds_program_file_test.dsx";
  ASSERT_TRUE(writeProgram(sampleProgram(), path));
  EXPECT_TRUE(readProgram(path));
  std::filesystem::remove(path);
}

TEST(ProgramFile, LeavesNothingWhereItCannotWrite) {
  Status status = writeProgram(sampleProgram(), "/nonexistent/p.dsx");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Io);
  EXPECT_THAT(status.error().message, HasSubstr("/nonexistent/p.dsx"));
  const std::string directory = testing::TempDir() + "ds_program_is_a_directory";
  std::filesystem::create_directories(directory + "/x");
  ASSERT_FALSE(writeProgram(sampleProgram(), directory));
  for (const auto &entry : std::filesystem::directory_iterator(testing::TempDir()))
    EXPECT_FALSE(entry.path().string().starts_with(directory + ".")) << entry.path();
  std::filesystem::remove_all(directory);
}

TEST(ProgramFile, RefusesToWriteAnInvalidProgram) {
  Program program = sampleProgram();
  program.buffers[0].offset = 1 << 20;
  Status status = writeProgram(program, testing::TempDir() + "never.dsx");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Internal);
}

TEST(ProgramFile, NamesWhatIsWrongWithTheHeader) {
  const std::vector<uint8_t> good = serializeProgram(sampleProgram()).value();
  auto with = [&](size_t at) {
    std::vector<uint8_t> bytes = good;
    bytes[at] ^= 2;
    return refusal(bytes);
  };
  EXPECT_THAT(with(0), HasSubstr("not a program"));
  EXPECT_THAT(with(12), HasSubstr("reserved"));
  EXPECT_THAT(with(16), HasSubstr("header promises"));
  EXPECT_THAT(with(24), HasSubstr("checksum"));
  EXPECT_THAT(with(40), HasSubstr("checksum"));
  EXPECT_THAT(refusal({good.begin(), good.begin() + 31}), HasSubstr("31 bytes"));
  EXPECT_THAT(refusal({}), HasSubstr("0 bytes"));
}

TEST(ProgramFile, TellsAnotherVersionsProgramFromADamagedOne) {
  std::vector<uint8_t> bytes = serializeProgram(sampleProgram()).value();
  auto refused = [&](uint32_t version) {
    std::memcpy(bytes.data() + 8, &version, sizeof version);
    Result<Program> program = parseProgram(bytes, "p.dsx");
    EXPECT_FALSE(program);
    EXPECT_EQ(program.error().code, ExitCode::Corrupt);
    EXPECT_THAT(program.error().hint, HasSubstr("ds-opt MODEL --emit=program -o p.dsx"));
    return program.error();
  };
  const Error older = refused(kProgramFormat - 1), newer = refused(kProgramFormat + 1);
  EXPECT_EQ(older.message, fmt::format("p.dsx: an older ds-opt has made this program: it has format {}, but "
                                       "this ds-run reads format {}",
                                       kProgramFormat - 1, kProgramFormat));
  EXPECT_EQ(newer.message, fmt::format("p.dsx: a newer ds-opt has made this program: it has format {}, but "
                                       "this ds-run reads format {}",
                                       kProgramFormat + 1, kProgramFormat));
  EXPECT_THAT(newer.hint, HasSubstr("or run it with the ds-run of its build"));
}

TEST(ProgramFile, FindsEveryBitFlipAndTruncation) {
  const std::vector<uint8_t> good = serializeProgram(sampleProgram()).value();
  for (size_t at = 0; at < good.size(); ++at) {
    std::vector<uint8_t> bytes = good;
    bytes[at] ^= uint8_t(1) << (at % 8);
    EXPECT_NE(refusal(bytes), "accepted") << "byte " << at;
  }
  for (size_t size = 0; size < good.size(); size += 7)
    EXPECT_NE(refusal({good.begin(), good.begin() + size}), "accepted") << "size " << size;
}

TEST(ProgramFile, SurvivesMutationsThatKeepTheChecksum) {
  const std::vector<uint8_t> good = serializeProgram(sampleProgram()).value();
  std::mt19937_64 random(7);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> bytes = good;
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int k = 0; k < changes; ++k)
      bytes[32 + random() % (bytes.size() - 32)] = static_cast<uint8_t>(random());
    seal(bytes);
    if (Result<Program> program = parseProgram(bytes, "p.dsx"))
      accepted += static_cast<bool>(verifyProgram(*program));
  }
  EXPECT_GT(accepted, 0); // names, predictions and spare bytes may be anything
  EXPECT_LT(accepted, 15000);
}

TEST(ProgramFile, OneDirectoryOfStorageIsWrittenAsItEverWas) {
  Program program = sampleProgram();
  const size_t both = serializeProgram(program).value().size();
  program.storage.parameterPath.clear();
  const std::vector<uint8_t> bytes = serializeProgram(program).value();
  EXPECT_LT(bytes.size(), both);
  Result<Program> again = parseProgram(bytes, "p.dsx");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->storage, program.storage);
}

TEST(ProgramFile, HashChangesWithThePlanButNotWithPredictions) {
  Program program = sampleProgram();
  const std::string hash = hashPlan(program);
  EXPECT_EQ(hash.size(), 32u);
  program.predicted.stepSeconds = 7;
  program.watch.stepsPerPrint = 7;
  EXPECT_EQ(hashPlan(program), hash);
  program.storage.parameterPath.clear();
  EXPECT_NE(hashPlan(program), hash);
  program.storage.parameterPath = "/parameters";
  program.buffers[0].offset += 4;
  EXPECT_NE(hashPlan(program), hash);
}

} // namespace
} // namespace ds::rt
