//===- ExecutorTest.cpp - Programs made by hand run as they say ----------------===//
//
// The kernels come from a small shared object (TestKernels.c) that takes the place of the compiler's image.
//
//===---------------------------------------------------------------------------===//
#include "ProgramBuilder.h"

#include "ds/Runtime/Engine/Executor.h"
#include "ds/Runtime/Process/CpuFeatures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace ds::rt {
namespace {

using test::bits;
using test::ProgramBuilder;
using testing::HasSubstr;

std::vector<uint8_t> testImage() { return test::readBytes(DS_TEST_KERNELS); }

std::unique_ptr<Executor> loadOrFail(Program program, const ExecutorOptions &options = {}) {
  Status valid = verifyProgram(program);
  EXPECT_TRUE(valid) << (valid ? "" : valid.error().message);
  Result<std::unique_ptr<Executor>> executor = Executor::load(std::move(program), options);
  EXPECT_TRUE(executor) << (executor ? "" : executor.error().message);
  return executor ? std::move(*executor) : nullptr;
}

/// Linear regression: y = x w^T, d = y - t, loss = mean d^2, w -= rate * d^T x.

struct Regression {
  ProgramBuilder b;
  uint32_t x, t, w, loss, y, d, g;

  explicit Regression(int64_t rows = 64, int64_t in = 8, int64_t out = 4) {
    x = b.input("x", {rows, in});
    t = b.input("t", {rows, out});
    w = b.state("w", {out, in});
    loss = b.output("loss");
    y = b.place({rows, out});
    d = b.place({rows, out});
    g = b.place({out, in});
    b.live(y, 0, 0, 2);
    b.live(d, 0, 1, 4);
    b.live(g, 0, 3, 5);
    b.library(LibraryFn::Matmul, {x, w, y}, {0, 1, 0, 0});
    b.launch("ds_subtract", rows * out, {y, t, d});
    b.launch("ds_mean_square", 1, {d, loss}, {rows * out});
    b.library(LibraryFn::Matmul, {d, x, g}, {1, 0, 0, 0});
    b.launch("ds_descend", 0, {w, g}, {out * in, 5});
    addWorkspaces(1 << 20);
    b.segment();
    b.program.image = testImage();
  }
  void addWorkspaces(int64_t bytes) {
    const uint32_t workspace = b.keep({bytes}, DType::U8);
    for (Command &c : b.program.commands)
      if (c.kind == CommandKind::Library)
        c.workspace = workspace;
  }
};

/// Runs `steps` steps on data with a known solution and returns the losses.
std::vector<double> train(Executor &executor, const Regression &r, int steps) {
  const Buffer &bx = executor.program().buffers[r.x], &bt = executor.program().buffers[r.t];
  const int64_t rows = bx.shape[0], in = bx.shape[1], out = bt.shape[1];
  std::vector<double> losses;
  auto fill = [&](uint32_t) -> Status {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> uniform(-1, 1);
    float *x = static_cast<float *>(executor.data(r.x)), *t = static_cast<float *>(executor.data(r.t));
    for (int64_t i = 0; i < rows * in; ++i)
      x[i] = uniform(random);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < out; ++j) {
        t[i * out + j] = 0;
        for (int64_t k = 0; k < in; ++k)
          t[i * out + j] += x[i * in + k] * static_cast<float>(j + 1) * 0.1f;
      }
    return {};
  };
  for (int i = 0; i < steps; ++i) {
    EXPECT_TRUE(executor.runStep(fill));
    losses.push_back(readOutput(executor, executor.program().outputs[0]));
  }
  return losses;
}

TEST(Executor, TrainsALinearModel) {
  Regression r;
  auto executor = loadOrFail(r.b.program);
  ASSERT_TRUE(executor);
  const std::vector<double> losses = train(*executor, r, 60);
  EXPECT_LT(losses.back(), 1e-4 * losses.front());
  const float *w = static_cast<float *>(executor->data(r.w));
  EXPECT_NEAR(w[0], 0.1f, 1e-2);
  EXPECT_NEAR(w[31], 0.4f, 1e-2);
}

TEST(Executor, RunsEveryUnitOnce) {
  for (int64_t extent : {1, 7, 64, 1000, 100003})
    for (int64_t grain : {1, 16, 4096}) {
      ProgramBuilder b;
      const uint32_t counts = b.keep({extent});
      b.launch("ds_count", 0, {counts}, {extent});
      b.program.kernels[0].grain = grain;
      b.segment();
      b.program.image = testImage();
      b.program.threads = 3;
      auto executor = loadOrFail(b.program);
      ASSERT_TRUE(executor);
      ASSERT_TRUE(executor->run(0));
      const float *data = static_cast<float *>(executor->data(counts));
      for (int64_t i = 0; i < extent; ++i)
        ASSERT_EQ(data[i], 1.0f) << "unit " << i << " of " << extent << ", grain " << grain;
    }
}

TEST(Executor, RunsEveryItem) {
  ProgramBuilder b;
  std::vector<uint32_t> operands;
  for (int64_t size : {5, 0, 300})
    operands.insert(operands.end(), {b.keep({size}), b.keep({size}), b.keep({size})});
  b.launch("ds_subtract", 0, operands, {5, 0, 300});
  b.program.kernels[0].items = 4;
  b.touch(b.program.kernels[0], {operands[0], operands[1], operands[2]}, {5});
  b.segment();
  b.program.image = testImage();
  auto executor = loadOrFail(b.program);
  ASSERT_TRUE(executor);
  for (size_t k = 0; k < operands.size(); ++k)
    std::fill_n(static_cast<float *>(executor->data(operands[k])), b.program.buffers[operands[k]].shape[0],
                float(10 - k));
  ASSERT_TRUE(executor->run(0));
  for (size_t k = 2; k < operands.size(); k += 3)
    for (int64_t i = 0; i < b.program.buffers[operands[k]].shape[0]; ++i)
      ASSERT_EQ(static_cast<const float *>(executor->data(operands[k]))[i], 1.0f)
          << "operand " << k << " element " << i;
}

TEST(Executor, PoisonDoesNotChangeARightPlan) {
  Regression r;
  auto plain = loadOrFail(r.b.program, {.isa = {}, .poison = false});
  auto poisoned = loadOrFail(r.b.program, {.isa = {}, .poison = true});
  ASSERT_TRUE(plain && poisoned);
  EXPECT_EQ(train(*plain, r, 5), train(*poisoned, r, 5));
}

TEST(Executor, PoisonShowsALifetimeThatBeginsTooLate) {
  // d is written by command 1, but its lifetime says 2: the poison of command 2 destroys it.
  Regression r;
  r.b.program.lifetimes[5].begin = 2;
  ASSERT_FALSE(verifyProgram(r.b.program)) << "the verifier finds this one too";
  auto plain = Executor::load(r.b.program, {.isa = {}, .poison = false});
  auto poisoned = Executor::load(r.b.program, {.isa = {}, .poison = true});
  ASSERT_TRUE(plain && poisoned);
  EXPECT_TRUE(std::isfinite(train(**plain, r, 2).back()));
  EXPECT_TRUE(std::isnan(train(**poisoned, r, 2).back()));
}

TEST(Executor, PoisonShowsALifetimeThatEndsTooEarly) {
  // The gradient dies with its product: the update then reads poison. Only w shows it, one step later.
  Regression r;
  r.b.program.lifetimes[6].end = 4;
  auto poisoned = Executor::load(r.b.program, {.isa = {}, .poison = true});
  ASSERT_TRUE(poisoned);
  const std::vector<double> losses = train(**poisoned, r, 2);
  EXPECT_TRUE(std::isfinite(losses[0]));
  EXPECT_TRUE(std::isnan(losses[1]));
}

TEST(Executor, PoisonShowsAReadOfWhatWasNeverWritten) {
  // Valid by every rule of the verifier: the copy reads its own temporary before anything wrote it.
  ProgramBuilder b;
  const uint32_t temporary = b.place({16}), kept = b.keep({16});
  b.live(temporary, 0, 0, 1);
  b.library(LibraryFn::Copy, {temporary, kept});
  b.segment();
  auto plain = loadOrFail(b.program, {.isa = {}, .poison = false});
  auto poisoned = loadOrFail(b.program, {.isa = {}, .poison = true});
  ASSERT_TRUE(plain->run(0) && poisoned->run(0));
  EXPECT_EQ(static_cast<float *>(plain->data(kept))[3], 0.0f);
  EXPECT_TRUE(std::isnan(static_cast<float *>(poisoned->data(kept))[3]));
}

/// Fills a buffer on the compute stream, copies it to the host on another and back on a third, with events.
TEST(Executor, StreamsMeetAtEvents) {
  ProgramBuilder b;
  b.program.streams = {StreamKind::ToHost, StreamKind::Compute, StreamKind::ToDevice};
  b.program.numEvents = 3;
  const uint32_t a = b.keep({1 << 16}), c = b.keep({1 << 16});
  b.program.stages[0].arenas.host = 4 << 16;
  b.program.buffers.push_back({Space::Host, DType::F32, 0, {1 << 16}, {1}});
  const uint32_t host = static_cast<uint32_t>(b.program.buffers.size() - 1);
  b.live(host, Lifetime::kWholeStep, 0, 0);
  using enum CommandKind;
  b.command(Kernel, 0, {a}, {1 << 16}, 1);
  b.command(RecordEvent, 0, {}, {}, 1);
  b.command(WaitEvent, 0, {}, {}, 0);
  b.command(Copy, 0, {a, host}, {}, 0);
  b.command(RecordEvent, 1, {}, {}, 0);
  b.command(WaitEvent, 1, {}, {}, 2);
  b.command(Copy, 0, {host, c}, {}, 2);
  b.command(RecordEvent, 2, {}, {}, 2);
  b.command(WaitEvent, 2, {}, {}, 1);
  b.command(Kernel, 0, {c}, {1 << 16}, 1);
  b.segment();
  b.program.kernels = {{"ds_count", 0, 1024}};
  b.touch(b.program.kernels[0], {a}, {1 << 16});
  b.program.image = testImage();
  auto executor = loadOrFail(b.program);
  ASSERT_TRUE(executor);
  for (int round = 1; round <= 200; ++round) {
    ASSERT_TRUE(executor->run(0));
    for (int i : {0, 777, (1 << 16) - 1})
      ASSERT_EQ(static_cast<float *>(executor->data(c))[i], static_cast<float>(round + 1))
          << "round " << round;
  }
}

/// A kernel of the host's stream that adds one where a byte is not 0, and what the byte's buffer is.
std::pair<ProgramBuilder, uint32_t> predicated(std::vector<int64_t> shape = {}, DType dtype = DType::Bool) {
  ProgramBuilder b;
  b.program.streams = {StreamKind::Compute, StreamKind::Host};
  b.program.hostThreads = 1;
  const uint32_t counts = b.keepUnits(Space::Host, {256});
  const uint32_t truth = b.keepUnits(Space::Host, std::move(shape), dtype);
  b.command(CommandKind::Kernel, 0, {counts}, {256}, 1).predicate = truth;
  b.segment();
  b.program.kernels = {{"ds_count", 0, 64}};
  b.touch(b.program.kernels[0], {counts}, {256});
  b.program.image = testImage();
  return {b, truth};
}

TEST(Executor, DoesNothingWhereThePredicateIsFalse) {
  for (bool poisons : {false, true}) {
    auto [b, truth] = predicated();
    auto executor = loadOrFail(b.program, {.isa = {}, .poison = poisons});
    ASSERT_TRUE(executor);
    float done = 0;
    for (bool holds : {true, false, true, true, false}) {
      *static_cast<bool *>(executor->data(truth)) = holds;
      done += holds ? 1.0f : 0.0f;
      ASSERT_TRUE(executor->run(0));
      for (int i : {0, 100, 255})
        EXPECT_EQ(static_cast<float *>(executor->data(0))[i], done);
    }
  }
}

TEST(Executor, APredicateIsATruthThatLives) {
  auto refused = [](ProgramBuilder b) { return verifyProgram(b.program).error().message; };
  EXPECT_TRUE(verifyProgram(predicated().first.program));
  EXPECT_THAT(refused(predicated({2}).first), HasSubstr("which is no truth value in the host's memory"));
  EXPECT_THAT(refused(predicated({}, DType::U8).first), HasSubstr("which is no truth value"));
  auto [b, truth] = predicated();
  Result<std::vector<uint8_t>> bytes = serializeProgram(b.program);
  ASSERT_TRUE(bytes);
  Result<Program> read = parseProgram(*bytes, "a.dsx");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->commands[0].predicate, truth);
  b.program.lifetimes.pop_back();
  EXPECT_THAT(refused(b), HasSubstr("which no lifetime holds then"));
}

TEST(Executor, MeasuresEveryCommand) {
  Regression r;
  auto executor = loadOrFail(r.b.program);
  executor->measure(true);
  train(*executor, r, 2);
  const std::vector<Timing> timings = executor->takeTimings();
  ASSERT_EQ(timings.size(), 2 * r.b.program.commands.size());
  for (const Timing &timing : timings)
    EXPECT_LE(timing.beginNs, timing.endNs);
  EXPECT_TRUE(executor->takeTimings().empty());
}

TEST(Executor, RefusesAProgramForANewerProcessor) {
  Regression r;
  r.b.program.targetCpu = "planet-9000";
  r.b.program.cpuFeatures = {"sse2", "warp-drive"};
  auto executor = Executor::load(r.b.program);
  ASSERT_FALSE(executor);
  EXPECT_EQ(executor.error().code, ExitCode::Device);
  EXPECT_THAT(executor.error().message, HasSubstr("'planet-9000', but this machine lacks warp-drive"));
}

TEST(Executor, RefusesAProgramForCuda) {
  Regression r;
  r.b.program.target = "cuda:sm_80";
  auto executor = Executor::load(r.b.program);
  ASSERT_FALSE(executor);
  EXPECT_EQ(executor.error().code, ExitCode::Device);
  EXPECT_THAT(executor.error().message, HasSubstr("made for cuda:sm_80, not for the CPU"));
  EXPECT_THAT(executor.error().hint, HasSubstr("--device cuda"));
}

TEST(Executor, NamesAMissingSymbolAndABrokenImage) {
  Regression r;
  r.b.program.kernels[1].name = "ds_missing";
  auto executor = Executor::load(r.b.program);
  ASSERT_FALSE(executor);
  EXPECT_EQ(executor.error().code, ExitCode::Corrupt);
  EXPECT_THAT(executor.error().message, HasSubstr("no symbol 'ds_missing'"));
  r.b.program.image = {1, 2, 3};
  executor = Executor::load(r.b.program);
  ASSERT_FALSE(executor);
  EXPECT_EQ(executor.error().code, ExitCode::Corrupt);
}

TEST(Executor, HoldsTheTableToWhatTheImageSays) {
  ProgramBuilder b;
  b.launch("ds_count", 0, {b.keep({64})}, {64});
  b.segment();
  b.program.image = test::readBytes(DS_TEST_INTERFACES);
  ASSERT_TRUE(loadOrFail(b.program));
  for (auto change : std::initializer_list<void (*)(Kernel &)>{
           [](Kernel &k) { k.extent = 1 << 20; }, [](Kernel &k) { k.operands[0].bytes = 1; },
           [](Kernel &k) { k.operands[0].perUnit = false; }, [](Kernel &k) { k.params = 2; }}) {
    Program program = b.program;
    change(program.kernels[0]);
    auto executor = Executor::load(program);
    ASSERT_FALSE(executor);
    EXPECT_EQ(executor.error().code, ExitCode::Corrupt);
    EXPECT_THAT(executor.error().message,
                HasSubstr("but its code is 'ds_count: extent 0, params 1, items 0, operands 4 per unit'"));
  }
}

// The system's loader maps what headers promise: a page that is not there would end the process.
TEST(Executor, RefusesAnImageThatIsCutOff) {
  Regression r;
  const std::vector<uint8_t> whole = r.b.program.image;
  for (size_t bytes : {whole.size() - 1, whole.size() / 2, size_t(4097), size_t(64), size_t(10)}) {
    r.b.program.image.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
    auto executor = Executor::load(r.b.program);
    ASSERT_FALSE(executor) << bytes;
    EXPECT_EQ(executor.error().code, ExitCode::Corrupt);
    EXPECT_THAT(executor.error().message, HasSubstr("the kernel image "));
  }
}

TEST(Executor, RefusesAPlanThatDoesNotFitTheMachine) {
  Program program = Regression().b.program;
  program.stages[0].arenas.device = uint64_t(1) << 46;
  auto executor = Executor::load(program);
  ASSERT_FALSE(executor);
  EXPECT_EQ(executor.error().code, ExitCode::DoesNotFit);
  EXPECT_THAT(executor.error().message, HasSubstr("70368744177664 bytes, but only"));
}

TEST(Executor, ReadsOutputsOfEveryType) {
  ProgramBuilder b;
  for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::I8,
                      DType::U8, DType::Bool}) {
    const uint32_t id = b.keep({}, dtype);
    b.library(LibraryFn::Fill, {id}, {bits(1)});
    b.program.outputs.push_back({spell(dtype), id});
  }
  b.segment();
  auto executor = loadOrFail(b.program);
  ASSERT_TRUE(executor->run(0));
  for (const Output &output : executor->program().outputs)
    EXPECT_EQ(readOutput(*executor, output), 1.0) << output.name;
}

TEST(CpuFeatures, AgreesWithTheCompiler) {
  EXPECT_EQ(hasCpuFeature("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(hasCpuFeature("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(hasCpuFeature("avx512vnni"), __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(hasCpuFeature("avx512bf16"), __builtin_cpu_supports("avx512bf16") != 0);
  EXPECT_EQ(hasCpuFeature("sse4.2"), __builtin_cpu_supports("sse4.2") != 0);
  EXPECT_EQ(hasCpuFeature("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_TRUE(hasCpuFeature("sse2"));
  EXPECT_FALSE(hasCpuFeature("avx5120"));
}

} // namespace
} // namespace ds::rt
