//===- PlainWordsTest.cpp - Messages without stacks, limits with numbers --------===//

#include "Guard/PlainWords.h"
#include "Guard/Limits.h"

#include <gtest/gtest.h>

using namespace ds;

namespace {

TEST(PlainWordsTest, DropsStacks) {
  EXPECT_EQ(
      plainWords("PytorchStreamReader failed locating file constants.pkl: file not found\n"
                 "Exception raised from valid at ../caffe2/serialize/inline_container.cc:177 (most recent "
                 "call first):\nframe #0: c10::Error::Error(c10::SourceLocation) + 0x69 (0x7f1e in x.so)\n"),
      "PytorchStreamReader failed locating file constants.pkl: file not found");
  EXPECT_EQ(plainWords("frame #3: foo + 0x12 (0x3 in a.so)\nframe #4: bar\nout of luck"), "out of luck");
}

TEST(PlainWordsTest, DropsAssertionsAndPlaces) {
  EXPECT_EQ(plainWords(
                "[enforce fail at inline_container.cc:110] . PytorchStreamReader failed reading zip archive: "
                "failed finding central directory"),
            "PytorchStreamReader failed reading zip archive: failed finding central directory");
  EXPECT_EQ(
      plainWords("isTuple() INTERNAL ASSERT FAILED at \"../aten/src/ATen/core/ivalue_inl.h\":927, please "
                 "report a bug to PyTorch. Expected Tuple but got Int\nException raised from toTuple at x"),
      "Expected Tuple but got Int");
  EXPECT_EQ(plainWords("false INTERNAL ASSERT FAILED at \"a.cpp\":1, please report a bug to PyTorch. "),
            "a check in LibTorch failed: false");
  EXPECT_EQ(
      plainWords("Expected index >= 0 to be true, but got false.  (Could this error message be improved?  If "
                 "so, please report an enhancement request to PyTorch.)"),
      "Expected index >= 0 to be true, but got false");
}

TEST(PlainWordsTest, DropsAddresses) {
  EXPECT_EQ(plainWords("'Linear (of Python compilation unit at: 0x56456fcfc9b0)' object has no attribute"),
            "'Linear' object has no attribute");
  EXPECT_EQ(plainWords("Unknown opcode for unpickling at 0xfffffff7: 247"),
            "Unknown opcode for unpickling: 247");
}

TEST(PlainWordsTest, KeepsFileAndLineOfTheModel) {
  EXPECT_EQ(
      plainWords("\nUnknown builtin op: aten::foo.\nHere are some suggestions: \n\taten::floor\n\n"
                 "The original call is:\n:\n  File \"m.py\", line 12\n    return torch.foo(x)\n"
                 "           ~~~~~~~~~ <--- HERE\n"),
      "Unknown builtin op: aten::foo. Here are some suggestions: aten::floor The original call is (m.py:12)");
  EXPECT_EQ(
      plainWords(
          "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript, "
          "serialized code (most recent call last):\n  File \"code/__torch__.py\", line 7, in f\n    x\n"
          "RuntimeError: no such luck\n"),
      "no such luck (code/__torch__.py:7)");
}

TEST(PlainWordsTest, IsShortAndNeverEmpty) {
  EXPECT_EQ(plainWords(""), "it gives no reason");
  EXPECT_EQ(plainWords("Exception raised from f at x:1"), "it gives no reason");
  EXPECT_EQ(plainWords(std::string(500, 'a'), 10), "aaaaaaaaaa ...");
}

TEST(PlainWordsTest, KnowsWhatSpeaksOfMemory) {
  EXPECT_TRUE(
      tellsOfMemory("[enforce fail at alloc_cpu.cpp:66] . DefaultCPUAllocator: can't allocate memory: you"));
  EXPECT_TRUE(tellsOfMemory("terminate called after throwing an instance of 'std::bad_alloc'"));
  EXPECT_FALSE(tellsOfMemory("shape '[3]' is invalid"));
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

constexpr uint64_t mebibyte = 1 << 20;

TEST(ImportLimitsTest, FollowFromArchiveAndInputs) {
  ImportLimits limits = deriveLimits({36'000, {}, 0, 0});
  EXPECT_LE(limits.memoryBytes, 1025 * mebibyte); // A small archive takes no more, whatever it says.
  EXPECT_EQ(limits.processorSeconds, 60u);
  limits = deriveLimits({64 * mebibyte, {"x=2x1024xi64", "y=2x7xi64"}, 0, 0});
  EXPECT_LE(limits.memoryBytes, (1024 + 4 * 64 + 64) * mebibyte); // 64 B * 1024^2 = 64 MiB
  EXPECT_EQ(limits.processorSeconds, 64u);
  EXPECT_EQ(limits.fileBytes, (1024 + 2 * 64 + 64) * mebibyte);
}

TEST(ImportLimitsTest, StayWithinTheMachine) {
  ImportLimits limits = deriveLimits({uint64_t(1) << 60, {"x=99999999999999999999999xi64"}, 0, 0});
  EXPECT_LE(limits.memoryBytes, uint64_t(1) << 50);
  EXPECT_NE(limits.memorySource.find("seven eighths of the "), std::string::npos) << limits.memorySource;
}

TEST(ImportLimitsTest, AreWhatTheCommandLineSays) {
  ImportLimits limits = deriveLimits({100, {}, 2048 * mebibyte, 7});
  EXPECT_EQ(limits.memoryBytes, 2048 * mebibyte);
  EXPECT_EQ(limits.processorSeconds, 7u);
  EXPECT_EQ(limits.waitSeconds, 190u);
  EXPECT_EQ(memoryError(limits).message,
            "the import needs more memory than its limit of 2048 MiB (given by --import-memory)");
  EXPECT_EQ(timeError(limits).message,
            "the import takes longer than its limit of 7 seconds of processor time "
            "(given by --import-seconds)");
  for (const Error &error :
       {memoryError(limits), timeError(limits), waitError(limits), fileSizeError(limits)}) {
    EXPECT_EQ(error.code, ExitCode::Invalid);
    EXPECT_FALSE(error.hint.empty());
  }
}

TEST(ImportLimitsTest, IgnoreWhatIsNoShape) {
  for (const char *spelled : {"x", "x=", "=", "x=x", "x=4", "12x", "x=4xi64x", ""})
    EXPECT_GT(deriveLimits({0, {spelled}, 0, 0}).memoryBytes, 0u) << spelled;
}

} // namespace
