//===- CudaStatesTest.cpp - How a device's states get their values ---------------------===//
#include "CudaFixture.h"

#include "Engine/StateWriter.h"

#include "ds/Runtime/State/Weights.h"

#include <sstream>

namespace ds::rt {
namespace {

using test::ProgramBuilder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// States of every kind of value in every type of the device, and of two more: in the host's memory, and of
/// columns, whose runs are short.
struct States {
  ProgramBuilder b;
  std::vector<Init> inits = {{Init::Kind::Zero, 0, 0},
                             {Init::Kind::Constant, 1.1, 0},
                             {Init::Kind::Normal, 0.5, 0.02},
                             {Init::Kind::Uniform, -1, 3},
                             {Init::Kind::Sinusoid, 10000, 0}};
  std::vector<uint32_t> buffers;

  explicit States(int64_t rows = 50) {
    for (DType dtype : {DType::F32, DType::BF16, DType::F16})
      for (const Init &init : inits)
        add(b.keep({rows, 102}, dtype), init);
    add(b.keepUnits(Space::Host, {rows, 102}), inits[2]);
    b.segment();
  }
  void add(uint32_t buffer, const Init &init) {
    const std::string name = "state" + std::to_string(buffers.size());
    b.program.states.push_back(
        {name, {}, Role::Parameter, "", b.program.buffers[buffer].shape, buffer, init, true, {}, {}, 0, ""});
    buffers.push_back(buffer);
  }
  /// A state of width 102 of which this rank of two holds every other `columns` columns.
  void addColumns(int64_t columns) {
    b.ranks(Mesh{{"tp", 2}});
    const uint32_t buffer = b.keep({50, columns});
    add(buffer, inits[2]);
    b.program.states.back().logicalShape = {50, 2 * columns};
    b.program.states.back().layout.cuts = {AxisSet(), {0}};
  }
};

class CudaStates : public test::CudaFixture {
protected:
  /// The bytes of all states after initialisation on this processor.
  static std::vector<std::vector<std::byte>> onCpu(const Program &program) {
    Result<std::unique_ptr<Executor>> loaded = Executor::load(program);
    EXPECT_TRUE(loaded);
    EXPECT_TRUE(initializeStates(**loaded, 7, false));
    std::vector<std::vector<std::byte>> all;
    for (const State &state : program.states) {
      const auto *data = static_cast<const std::byte *>((*loaded)->data(state.buffer));
      all.emplace_back(data, data + extentBytes(program.buffers[state.buffer]));
    }
    return all;
  }
  void expectTheCpus(const Program &program, const std::vector<std::vector<std::byte>> &expected) {
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(get<std::byte>(program.states[i].buffer, expected[i].size()), expected[i])
          << program.states[i].name;
  }
};

TEST_F(CudaStates, AreTheCpusToTheBit) {
  States s;
  s.addColumns(51);
  ASSERT_TRUE(verifyProgram(s.b.program));
  const auto expected = onCpu(s.b.program);
  test::toCuda(s.b.program);
  ASSERT_TRUE(load(s.b.program));
  ASSERT_TRUE(initializeStates(*executor, 1, false)); // what is there before does not matter
  dsFakeCalls();
  ASSERT_TRUE(initializeStates(*executor, 7, false));
  const std::string calls = dsFakeCalls();
  expectTheCpus(s.b.program, expected);
  // The device draws the normal and the uniform one of each type, and clears its zeros; the host makes the
  // rest: what is its own, and runs of 51.
  size_t draws = 0, copies = 0;
  std::istringstream lines(calls);
  for (std::string line; std::getline(lines, line);) {
    draws += line.starts_with("cuLaunchKernel ds_fill_random_");
    copies += line.starts_with("cuMemcpyAsync ");
  }
  EXPECT_EQ(draws, 6u);
  EXPECT_EQ(copies, 7u) << "constants and sinusoids of three types, and the columns";
  EXPECT_THAT(calls, HasSubstr("cuMemset 1\n"));
}

/// More than two pieces of page-locked memory hold, which take turns: the fake device copies late.
TEST_F(CudaStates, PassThroughTwoPieces) {
  ProgramBuilder b;
  constexpr int64_t kElements = 20'000'001;
  const uint32_t big = b.state("big", {kElements}), small = b.state("small", {3});
  b.segment();
  test::toCuda(b.program);
  ASSERT_TRUE(load(b.program));
  const auto address = [&](uint32_t buffer) { return static_cast<std::byte *>(executor->data(buffer)); };
  const auto count = [](uint64_t first, uint64_t count, std::byte *to) -> Status {
    for (uint64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(first + i);
      std::memcpy(to + i * sizeof value, &value, sizeof value);
    }
    return {};
  };
  dsFakeCalls();
  {
    StateWriter writer(*executor);
    ASSERT_TRUE(writer.write(address(small), 3, sizeof(float), count));
    ASSERT_TRUE(writer.write(address(big), kElements, sizeof(float), count));
    ASSERT_TRUE(writer.finish());
  }
  const std::vector<float> got = get<float>(big, kElements);
  for (int64_t i = 0; i < kElements; ++i)
    ASSERT_EQ(got[static_cast<size_t>(i)], static_cast<float>(i));
  EXPECT_THAT(get<float>(small, 3), ElementsAre(0, 1, 2));
}

TEST_F(CudaStates, TheFirstFailureCounts) {
  ProgramBuilder b;
  const uint32_t big = b.state("big", {5'000'000});
  b.segment();
  test::toCuda(b.program);
  ASSERT_TRUE(load(b.program));
  StateWriter writer(*executor);
  const Status status =
      writer.write(static_cast<std::byte *>(executor->data(big)), 5'000'000, sizeof(float),
                   [](uint64_t first, uint64_t, std::byte *) -> Status {
                     if (first < 1'000'000)
                       return {};
                     return Error{ExitCode::Invalid, "element " + std::to_string(first), ""};
                   });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "element 1048576");
}

/// What f16 does not hold is refused as on the CPU.
TEST_F(CudaStates, RefusesWhatF16DoesNotHold) {
  ProgramBuilder b;
  const uint32_t buffer = b.keep({64}, DType::F16);
  b.program.states.push_back({"wide",
                              {},
                              Role::Parameter,
                              "",
                              {64},
                              buffer,
                              {Init::Kind::Uniform, 70000, 80000},
                              true,
                              {},
                              {},
                              0,
                              ""});
  b.segment();
  test::toCuda(b.program);
  ASSERT_TRUE(load(b.program));
  const Status status = initializeStates(*executor, 1, false);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("is outside the largest F16, 65504"));
}

/// Of much memory of the host the driver only locks the pages, which are there already; where it cannot, it
/// takes them itself.
TEST_F(CudaStates, LocksMuchMemoryOfTheHost) {
  constexpr uint64_t kMuch = uint64_t(64) << 20;
  test::Adder a;
  a.b.program.stages[0].arenas.host = kMuch + 64;
  dsFakeCalls();
  ASSERT_TRUE(load(a.b.program));
  std::string calls = dsFakeCalls();
  EXPECT_THAT(calls, HasSubstr("cuMemHostRegister " + std::to_string(kMuch + 4096)));
  EXPECT_THAT(calls, Not(HasSubstr("cuMemHostAlloc 67")));
  executor.reset();
  device.reset();
  EXPECT_THAT(std::string(dsFakeCalls()), HasSubstr("cuMemHostUnregister"));
  ::setenv("DS_FAKE_UNLOCKABLE", "1", 1);
  ASSERT_TRUE(load(a.b.program));
  EXPECT_THAT(std::string(dsFakeCalls()), HasSubstr("cuMemHostAlloc " + std::to_string(kMuch + 64)));
  ASSERT_TRUE(executor->runStep([&](uint32_t m) { return test::fillWith(*executor, m, 2); }));
  EXPECT_EQ(get<float>(a.s, 1)[0], 2.0f);
}

} // namespace
} // namespace ds::rt
