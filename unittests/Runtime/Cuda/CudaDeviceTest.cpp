//===- CudaDeviceTest.cpp - The CUDA part on a device made of host memory ---------------===//
#include "CudaFixture.h"

#include "ds/Runtime/Program/HostNeeds.h"

#include <cmath>
#include <sstream>
#include <thread>

namespace ds::rt {
namespace {

using test::Adder;
using test::bits;
using test::fillWith;
using test::ProgramBuilder;
using testing::HasSubstr;
using testing::Not;

using Cuda = test::CudaFixture;

TEST_F(Cuda, RunsAStepThreeWays) {
  // The first run waits after each command, the second records a graph, the third starts it again.
  Adder a;
  ASSERT_TRUE(verifyProgram(a.b.program));
  ASSERT_TRUE(load(a.b.program));
  for (float step = 1; step <= 3; ++step) {
    dsFakeCalls();
    ASSERT_TRUE(executor->runStep([&](uint32_t m) { return fillWith(*executor, m, 1); }));
    const std::string calls = dsFakeCalls();
    EXPECT_EQ(get<float>(a.s, 256), std::vector<float>(256, step));
    EXPECT_EQ(readOutput(*executor, executor->program().outputs[0]), step * step);
    if (step == 1)
      EXPECT_THAT(calls, HasSubstr("cuLaunchKernel ds_descend grid 1 block 128\ncuStreamSynchronize\n"));
    if (step == 2)
      EXPECT_THAT(calls, HasSubstr("cuStreamBeginCapture"));
    if (step == 3)
      EXPECT_THAT(calls, Not(HasSubstr("cuLaunchKernel")));
    if (step > 1)
      EXPECT_THAT(calls, HasSubstr("cuGraphLaunch"));
  }
}

TEST_F(Cuda, EveryMicroStepOfAGraphHasItsInputs) {
  Adder a(4);
  ASSERT_TRUE(load(a.b.program));
  for (int step = 0; step < 3; ++step)
    ASSERT_TRUE(executor->runStep([&](uint32_t m) { return fillWith(*executor, m, float(1 << m)); }));
  EXPECT_EQ(get<float>(a.s, 1)[0], 3 * 15.0f); // 1 + 2 + 4 + 8 each step
}

TEST_F(Cuda, RunsWithoutGraphsWhereTheUserSaysSo) {
  ::setenv("DS_CUDA_GRAPH", "0", 1);
  Adder a;
  ASSERT_TRUE(load(a.b.program));
  dsFakeCalls();
  for (int step = 0; step < 3; ++step)
    ASSERT_TRUE(executor->runStep([&](uint32_t m) { return fillWith(*executor, m, 1); }));
  EXPECT_THAT(std::string(dsFakeCalls()), Not(HasSubstr("cuGraphLaunch")));
  EXPECT_EQ(get<float>(a.s, 1)[0], 3.0f);
}

TEST_F(Cuda, RunsWithoutGraphsWhereACommandCannotBeRecorded) {
  ::setenv("DS_FAKE_UNRECORDABLE", "ds_mean_square", 1);
  Adder a;
  ASSERT_TRUE(load(a.b.program));
  dsFakeCalls();
  for (float step = 1; step <= 3; ++step) {
    ASSERT_TRUE(executor->runStep([&](uint32_t m) { return fillWith(*executor, m, 1); }));
    EXPECT_FALSE(executor->graph().recorded);
    EXPECT_EQ(get<float>(a.s, 1)[0], step);
    if (step == 1)
      EXPECT_EQ(executor->graph().refusal, "");
    else
      EXPECT_THAT(executor->graph().refusal, HasSubstr("launching the kernel"));
  }
  const std::string calls = dsFakeCalls();
  EXPECT_THAT(calls, Not(HasSubstr("cuGraphInstantiate"))) << "a part of a step is no graph";
  EXPECT_EQ(calls.find("cuStreamBeginCapture"), calls.rfind("cuStreamBeginCapture")) << "tried once";
}

TEST_F(Cuda, GraphsCanBeRequired) {
  ::setenv("DS_CUDA_GRAPH", "require", 1);
  Adder a;
  ASSERT_TRUE(load(a.b.program));
  auto step = [&] { return executor->runStep([&](uint32_t m) { return fillWith(*executor, m, 1); }); };
  ASSERT_TRUE(step() && !executor->graph().recorded && step());
  EXPECT_TRUE(executor->graph().recorded);
  ::setenv("DS_FAKE_UNRECORDABLE", "ds_mean_square", 1);
  ASSERT_TRUE(load(a.b.program));
  ASSERT_TRUE(step());
  Status status = step();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Device);
  EXPECT_THAT(status.error().message,
              HasSubstr("DS_CUDA_GRAPH=require, but no graph can be recorded: commands[1]"));
}

TEST_F(Cuda, TakesItsMemoryOnce) {
  Adder a(3);
  dsFakeCalls();
  ASSERT_TRUE(load(a.b.program));
  const std::string calls = dsFakeCalls();
  EXPECT_THAT(calls, HasSubstr("cuMemAlloc " + std::to_string(a.b.program.stages[0].arenas.device)));
  // Of the host what plans say: 4 bytes for each stream, and a place for the input of each micro-step.
  std::vector<uint64_t> pinned;
  std::istringstream lines(calls);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("cuMemHostAlloc "))
      pinned.push_back(std::stoull(line.substr(line.find(' '))));
  // Inputs are asked for again with room for the begin of a page: the driver lets little memory share one.
  const uint64_t inputs = inputStagingBytes(a.b.program);
  EXPECT_THAT(pinned,
              testing::UnorderedElementsAre(markBytes(a.b.program), inputs, inputs + kStorageUnit - 1));
  EXPECT_EQ(inputStagingBytes(a.b.program), 3 * 256 * sizeof(float));
  for (int step = 0; step < 3; ++step)
    ASSERT_TRUE(executor->runStep([&](uint32_t m) { return fillWith(*executor, m, 1); }));
  EXPECT_THAT(std::string(dsFakeCalls()), Not(HasSubstr("Alloc")));
  EXPECT_EQ(device->memory().arenas, a.b.program.stages[0].arenas.device);
  EXPECT_EQ(device->memory().overhead, 0u);
}

TEST_F(Cuda, ArenasStartAtZero) {
  Adder a;
  ASSERT_TRUE(load(a.b.program));
  EXPECT_EQ(get<float>(a.s, 256), std::vector<float>(256, 0));
}

/// Stream `to` goes on when `from` has come here.
void meet(ProgramBuilder &b, uint8_t from, uint8_t to) {
  const uint32_t event = b.program.numEvents++;
  b.command(CommandKind::RecordEvent, event, {}, {}, from);
  b.command(CommandKind::WaitEvent, event, {}, {}, to);
}

/// As Executor.StreamsMeetAtEvents: device to host on one stream, back on another; `addsThere` has the host
/// add one in between. The fake device runs the stream made last first, so that only the events keep the
/// order.
ProgramBuilder roundTrip(bool addsThere = false) {
  ProgramBuilder b;
  b.program.streams = {StreamKind::ToHost, StreamKind::Compute, StreamKind::ToDevice};
  const uint32_t a = b.keep({1024}), c = b.keep({1024});
  b.program.stages[0].arenas.host = 4096;
  b.program.buffers.push_back({Space::Host, DType::F32, 0, {1024}, {1}});
  const auto host = static_cast<uint32_t>(b.program.buffers.size() - 1);
  b.live(host, Lifetime::kWholeStep, 0, 0);
  using enum CommandKind;
  b.command(Kernel, 0, {a}, {1024}, 1);
  meet(b, 1, 0);
  b.command(Copy, 0, {a, host}, {}, 0);
  if (addsThere) {
    b.program.streams.push_back(StreamKind::Host);
    meet(b, 0, 3);
    b.command(Kernel, 1, {host}, {1024}, 3);
  }
  meet(b, addsThere ? 3 : 0, 2);
  b.command(Copy, 0, {host, c}, {}, 2);
  meet(b, 2, 1);
  b.command(Kernel, 0, {c}, {1024}, 1);
  b.segment();
  b.program.kernels = {{"ds_count", 0, 1024}};
  b.touch(b.program.kernels[0], {a}, {1024});
  test::toCuda(b.program);
  return b;
}

/// roundTrip, with the host adding one on its way.
ProgramBuilder hostRoundTrip() {
  ProgramBuilder b = roundTrip(/*addsThere=*/true);
  b.program.hostThreads = 2;
  b.program.targetCpu = "x86-64";
  b.program.hostImage = test::readBytes(DS_TEST_KERNELS);
  b.program.kernels.push_back({"ds_count", 0, 64});
  b.touch(b.program.kernels[1], {2}, {1024});
  return b;
}

TEST_F(Cuda, StreamsMeetAtEvents) {
  ProgramBuilder b = roundTrip();
  ASSERT_TRUE(load(b.program));
  for (int round = 1; round <= 4; ++round) {
    ASSERT_TRUE(executor->run(0));
    EXPECT_EQ(get<float>(1, 1024), std::vector<float>(1024, static_cast<float>(round + 1)))
        << "round " << round;
  }
}

TEST_F(Cuda, AMissingEventShows) {
  // Without its wait the copy back, on the last stream, runs before the copy to the host has. Only when
  // nothing waits in between: the first run waits after each command.
  ProgramBuilder b = roundTrip();
  b.program.commands[5].kind = CommandKind::RecordEvent;
  ASSERT_TRUE(load(b.program));
  ASSERT_TRUE(executor->run(0) && executor->run(0));
  EXPECT_NE(get<float>(1, 1)[0], 3.0f);
}

TEST_F(Cuda, TheHostStreamsKernelsAreTheProcessors) {
  ProgramBuilder b = hostRoundTrip();
  Status status = load(b.program);
  ASSERT_TRUE(status) << status.error().message;
  for (int round = 1; round <= 4; ++round) {
    ASSERT_TRUE(executor->run(0));
    EXPECT_EQ(get<float>(1, 1024), std::vector<float>(1024, static_cast<float>(round + 2)))
        << "round " << round;
  }
  EXPECT_TRUE(executor->graph().recorded);
}

TEST_F(Cuda, TimesOfTheHostAreBesideThoseOfTheDevice) {
  ::unsetenv("DS_FAKE_PROFILER");
  ProgramBuilder b = hostRoundTrip();
  ASSERT_TRUE(load(b.program));
  executor->measure(true);
  ASSERT_TRUE(executor->run(0) && executor->run(0));
  std::vector<uint32_t> commands;
  for (const Timing &timing : executor->takeTimings())
    commands.push_back(timing.command);
  EXPECT_THAT(commands, testing::UnorderedElementsAre(0, 3, 6, 9, 12));
}

TEST_F(Cuda, TheHostsImageIsForItsProcessor) {
  ProgramBuilder b = hostRoundTrip();
  b.program.cpuFeatures = {"avx1024"};
  Status status = load(b.program);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Device);
  EXPECT_THAT(status.error().message, testing::HasSubstr("avx1024"));
  b = hostRoundTrip();
  b.program.hostImage.resize(100);
  status = load(b.program);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Corrupt);
}

TEST_F(Cuda, MeasuresEveryCommand) {
  ProgramBuilder b = roundTrip();
  ASSERT_TRUE(load(b.program));
  executor->measure(true);
  ASSERT_TRUE(executor->run(0) && executor->run(0));
  const std::vector<Timing> timings = executor->takeTimings();
  ASSERT_EQ(timings.size(), 4u); // events are no work
  for (size_t i = 0; i < timings.size(); ++i) {
    EXPECT_LE(timings[i].beginNs, timings[i].endNs);
    EXPECT_TRUE(i == 0 || timings[i - 1].endNs <= timings[i].beginNs);
  }
}

TEST_F(Cuda, ObservesTheWorkOfEveryCommand) {
  // One microsecond each: what events would see besides, the other stream's work in between, is left out.
  // Only the first run, which waits after each command, tells nothing.
  ::unsetenv("DS_FAKE_PROFILER");
  ProgramBuilder b = roundTrip();
  ASSERT_TRUE(load(b.program));
  executor->measure(true);
  ASSERT_TRUE(executor->run(0) && executor->run(0) && executor->run(0));
  const std::vector<Timing> timings = executor->takeTimings();
  ASSERT_EQ(timings.size(), 8u);
  const std::vector<uint32_t> commands = {0, 3, 6, 9};
  for (size_t i = 0; i < timings.size(); ++i) {
    EXPECT_EQ(timings[i].command, commands[i % 4]);
    EXPECT_EQ(timings[i].stream, b.program.commands[commands[i % 4]].stream);
    EXPECT_EQ(timings[i].endNs - timings[i].beginNs, 1000);
    EXPECT_TRUE(i % 4 == 0 || timings[i - 1].endNs <= timings[i].beginNs);
  }
}

TEST_F(Cuda, AsksEventsWhereNothingIsObserved) {
  ::setenv("DS_FAKE_PROFILER", "2", 1);
  ProgramBuilder b = roundTrip();
  ASSERT_TRUE(load(b.program));
  executor->measure(true);
  ASSERT_TRUE(executor->run(0) && executor->run(0));
  EXPECT_EQ(executor->takeTimings().size(), 0u);
  ASSERT_TRUE(executor->run(0));
  EXPECT_EQ(executor->takeTimings().size(), 4u);
}

TEST_F(Cuda, ObservesEveryMicroStepButNotItsInputs) {
  ::unsetenv("DS_FAKE_PROFILER");
  Adder a(2);
  a.b.library(LibraryFn::Fill, {a.s}, {bits(0)});
  a.b.program.segments[0].numCommands = a.b.program.segments[1].firstCommand = 3;
  ASSERT_TRUE(load(a.b.program));
  executor->measure(true);
  for (int step = 0; step < 2; ++step)
    ASSERT_TRUE(executor->runStep([&](uint32_t m) { return fillWith(*executor, m, 1); }));
  std::vector<uint32_t> commands;
  for (const Timing &timing : executor->takeTimings()) {
    commands.push_back(timing.command);
    EXPECT_EQ(timing.endNs - timing.beginNs, 1000) << "with the copy of the next inputs";
  }
  EXPECT_EQ(commands, (std::vector<uint32_t>{0, 1, 2, 0, 1, 2}));
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST_F(Cuda, NamesTheKernelThatFailsInTheFirstStep) {
  ::setenv("DS_FAKE_FAULT", "ds_descend 1", 1);
  Adder a;
  ASSERT_TRUE(load(a.b.program));
  Status status = executor->runStep([&](uint32_t m) { return fillWith(*executor, m, 1); });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Device);
  EXPECT_THAT(status.error().message, HasSubstr("commands[0] (add of layer 0)"));
  EXPECT_THAT(status.error().message, HasSubstr("illegal memory access"));
}

TEST_F(Cuda, SaysHowFarAGraphCame) {
  ::setenv("DS_FAKE_FAULT", "ds_mean_square 3", 1);
  Adder a;
  ASSERT_TRUE(load(a.b.program));
  auto step = [&] { return executor->runStep([&](uint32_t m) { return fillWith(*executor, m, 1); }); };
  ASSERT_TRUE(step() && step());
  Status status = step();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Device);
  EXPECT_THAT(status.error().message, HasSubstr("after commands[0] (add of layer 0): "));
  EXPECT_THAT(status.error().hint, HasSubstr("DS_CUDA_CHECK=1"));
  // Nothing works any more, and nothing hangs or crashes.
  EXPECT_FALSE(step());
  EXPECT_TRUE(std::isnan(readOutput(*executor, executor->program().outputs[0])));
}

TEST_F(Cuda, ChecksEveryCommandWhenAsked) {
  ::setenv("DS_CUDA_CHECK", "1", 1);
  ::setenv("DS_FAKE_FAULT", "ds_descend 3", 1);
  Adder a;
  ASSERT_TRUE(load(a.b.program));
  auto step = [&] { return executor->runStep([&](uint32_t m) { return fillWith(*executor, m, 1); }); };
  ASSERT_TRUE(step() && step());
  Status status = step();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, testing::StartsWith("commands[0] (add of layer 0): "));
}

TEST_F(Cuda, RefusesAProgramForALaterDevice) {
  ::setenv("DS_FAKE_ARCH", "80", 1);
  Status status = load(Adder().b.program);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Device);
  EXPECT_THAT(status.error().message, HasSubstr("compiled for cuda:sm_90, but Fake GPU is sm_80"));
  EXPECT_THAT(status.error().hint, HasSubstr("--target cuda:sm_80"));
}

TEST_F(Cuda, RunsAProgramForAnEarlierDevice) {
  Adder a;
  test::toCuda(a.b.program, "sm_80");
  EXPECT_TRUE(load(a.b.program));
  EXPECT_THAT(device->describe(), HasSubstr("; kernels of cuda:sm_80, assembled by the driver"));
  ::setenv("DS_FAKE_ARCH", "80", 1);
  EXPECT_TRUE(load(a.b.program));
  EXPECT_THAT(device->describe(), testing::Not(HasSubstr("assembled")));
}

/// Blackwell's capabilities have three digits.
TEST_F(Cuda, RunsAProgramOnDevicesWithoutCodeOfTheirOwn) {
  for (const char *arch : {"89", "103", "120"}) {
    ::setenv("DS_FAKE_ARCH", arch, 1);
    Adder a;
    test::toCuda(a.b.program, std::string_view(arch) == "89" ? "sm_80" : "sm_90");
    ASSERT_TRUE(load(a.b.program)) << arch;
    EXPECT_THAT(device->describe(), HasSubstr("(sm_" + std::string(arch) + ","));
    EXPECT_THAT(device->describe(), HasSubstr(", assembled by the driver"));
  }
}

TEST_F(Cuda, SaysWhoHoldsTheMemory) {
  ::setenv("DS_FAKE_MEMORY", "1048576", 1);
  ::setenv("DS_FAKE_HOLDER", "999999 1048000", 1);
  Status status = load(Adder().b.program);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::DoesNotFit);
  EXPECT_THAT(status.error().message, HasSubstr("device arena takes"));
  EXPECT_THAT(status.error().message, HasSubstr("but 576 of 1048576 bytes are free on Fake GPU"));
  EXPECT_THAT(status.error().message, HasSubstr("process 999999 holds 0.00 GiB"));
}

TEST_F(Cuda, NamesAKernelThatTheImageLacks) {
  Adder a;
  a.b.program.kernels[0].name = "ds_missing";
  Status status = load(a.b.program);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Corrupt);
  EXPECT_THAT(status.error().message, HasSubstr("no entry 'ds_missing'"));
}

TEST_F(Cuda, RefusesAnImageThatTheDriverCannotRead) {
  Adder a;
  a.b.program.image = {'x', 0};
  Status status = load(a.b.program);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Device);
  EXPECT_THAT(status.error().message, HasSubstr("the driver refuses the program's kernels: no .target"));
}

} // namespace
} // namespace ds::rt
