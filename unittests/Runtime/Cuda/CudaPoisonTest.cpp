//===- CudaPoisonTest.cpp - Device memory outside planned lifetimes is full of NaNs ------===//
#include "CudaFixture.h"

#include <cmath>

namespace ds::rt {
namespace {

using test::Adder;
using test::bits;
using test::fillWith;
using test::ProgramBuilder;
using testing::HasSubstr;
using testing::Not;

using CudaPoison = test::CudaFixture;

TEST_F(CudaPoison, DoesNotChangeARightPlan) {
  Adder a;
  ASSERT_TRUE(load(a.b.program, /*poison=*/true));
  dsFakeCalls();
  for (float step = 1; step <= 3; ++step) {
    ASSERT_TRUE(executor->runStep([&](uint32_t m) { return fillWith(*executor, m, 1); }));
    EXPECT_EQ(get<float>(a.s, 256), std::vector<float>(256, step));
  }
  EXPECT_THAT(std::string(dsFakeCalls()), Not(HasSubstr("cuGraphLaunch")));
}

/// A value of 16 numbers that command 0 makes and command 1 reads, with a lifetime of [begin, end).
ProgramBuilder passOn(uint32_t begin, uint32_t end) {
  ProgramBuilder b;
  const uint32_t value = b.place({16}), kept = b.keep({16});
  b.live(value, 0, begin, end);
  b.library(LibraryFn::Fill, {value}, {bits(2)});
  b.library(LibraryFn::Copy, {value, kept});
  b.segment();
  b.program.target = "cuda:sm_90";
  return b;
}

TEST_F(CudaPoison, ShowsAReadOfADeadRange) {
  // Right; dead before it is read; born after it is written.
  for (auto [begin, end, dies] : {std::tuple(0u, 2u, false), {0u, 1u, true}, {1u, 2u, true}}) {
    for (bool poison : {false, true}) {
      ASSERT_TRUE(load(passOn(begin, end).program, poison));
      for (int run = 0; run < 3; ++run) {
        ASSERT_TRUE(executor->run(0));
        EXPECT_EQ(std::isnan(get<float>(1, 16)[3]), poison && dies) << begin << ", " << end;
      }
    }
  }
}

TEST_F(CudaPoison, StartsWithEverythingThatIsNotKept) {
  ProgramBuilder b = passOn(1, 2);
  std::swap(b.program.commands[0], b.program.commands[1]); // reads what has never lived
  ASSERT_TRUE(load(b.program, /*poison=*/true));
  EXPECT_EQ(get<float>(1, 16), std::vector<float>(16, 0));
  ASSERT_TRUE(executor->run(0));
  EXPECT_TRUE(std::isnan(get<float>(1, 16)[3]));
}

TEST_F(CudaPoison, IsAskedForByTheEnvironment) {
  ::setenv("DS_POISON", "1", 1);
  Result<std::unique_ptr<Device>> opened = openCudaDevice({});
  ASSERT_TRUE(opened);
  ExecutorOptions options;
  options.device = opened->get();
  Result<std::unique_ptr<Executor>> loaded = Executor::load(passOn(0, 1).program, options);
  ::unsetenv("DS_POISON");
  ASSERT_TRUE(loaded);
  device = std::move(*opened);
  executor = std::move(*loaded);
  ASSERT_TRUE(executor->run(0));
  EXPECT_TRUE(std::isnan(get<float>(1, 16)[3]));
}

} // namespace
} // namespace ds::rt
