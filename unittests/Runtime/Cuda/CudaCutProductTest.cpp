//===- CudaCutProductTest.cpp - Products of odd sizes, in one call and in two --------------===//
#include "CudaFixture.h"

#include <random>

namespace ds::rt {
namespace {

using test::ProgramBuilder;
using testing::HasSubstr;
using testing::Not;

/// x [m, k] times w [k, n] in 16 bits, rows of everything 144 elements apart; what is asked of it.
struct Case {
  int64_t m, n, k;
  bool transposeX = false, transposeW = false, accumulate = false, bias = false, relu = false;
  DType result = DType::BF16;
};

constexpr int64_t kPitch = 144;

class CudaCutProduct : public test::CudaFixture {
protected:
  ~CudaCutProduct() override {
    ::unsetenv("DS_FAKE_ODD");
    ::unsetenv("DS_CUDA_CUT");
  }

  /// A window of `columns` of rows that lie `pitch` apart.
  static uint32_t keep(ProgramBuilder &b, int64_t rows, int64_t columns, DType dtype, int64_t pitch) {
    return b.view(b.keep({rows, pitch}, dtype), 0, {rows, columns}, {pitch, 1});
  }

  void build(const Case &c, int64_t pitch = kPitch, DType factors = DType::BF16) {
    b = {};
    x = keep(b, c.transposeX ? c.k : c.m, c.transposeX ? c.m : c.k, factors, pitch);
    w = keep(b, c.transposeW ? c.n : c.k, c.transposeW ? c.k : c.n, factors, pitch);
    result = keep(b, c.m, c.n, c.result, pitch);
    std::vector<uint32_t> operands = {x, w, result};
    if (c.bias)
      operands.push_back(bias = b.keep({c.n}, factors));
    b.library(LibraryFn::Matmul, operands, {c.transposeX, c.transposeW, c.accumulate, c.relu});
    b.program.commands.back().workspace = test::keepWorkspace(b, 8192);
    b.segment();
    b.program.target = "cuda:sm_90";
    Status status = verifyProgram(b.program);
    ASSERT_TRUE(status) << status.error().message;
    status = load(b.program);
    ASSERT_TRUE(status) << status.error().message;
  }

  /// Small whole numbers, of which all sums are exact, in all memory of a buffer, and as floats.
  std::vector<float> fill(uint32_t id, unsigned seed) {
    const Buffer &buffer = b.program.buffers[id];
    const size_t count = extentBytes(buffer) / byteSize(buffer.dtype);
    std::mt19937 random(seed);
    std::vector<float> values(count);
    std::vector<uint16_t> bits(count);
    for (size_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>(static_cast<int>(random() % 3) - 1);
      bits[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(values[i]) >> 16);
    }
    buffer.dtype == DType::F32 ? put(id, values) : put(id, bits);
    return values;
  }

  std::vector<float> floats(uint32_t id) {
    const Buffer &buffer = b.program.buffers[id];
    const size_t count = extentBytes(buffer) / byteSize(buffer.dtype);
    if (buffer.dtype == DType::F32)
      return get<float>(id, count);
    std::vector<float> values;
    for (uint16_t bits : get<uint16_t>(id, count))
      values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
    return values;
  }

  /// Runs what is built, and checks every element and that nothing between rows was written; its calls.
  std::string run(const Case &c) {
    const auto xs = fill(x, 1), ws = fill(w, 2), before = fill(result, 3);
    const auto biases = c.bias ? fill(bias, 4) : std::vector<float>();
    dsFakeCalls();
    EXPECT_TRUE(executor->run(0));
    const std::string calls = dsFakeCalls();
    const auto got = floats(result);
    for (int64_t at = 0; at < static_cast<int64_t>(got.size()); ++at) {
      const int64_t row = at / kPitch, column = at % kPitch;
      float sum = c.accumulate || column >= c.n ? before[at] : 0;
      for (int64_t i = 0; column < c.n && i < c.k; ++i)
        sum += xs[c.transposeX ? i * kPitch + row : row * kPitch + i] *
               ws[c.transposeW ? column * kPitch + i : i * kPitch + column];
      sum += c.bias && column < c.n ? biases[column] : 0;
      if (c.relu && column < c.n)
        sum = std::max(sum, 0.0f);
      EXPECT_EQ(got[at], sum) << row << ", " << column;
    }
    return calls;
  }

  static size_t count(const std::string &calls) {
    size_t number = 0;
    for (size_t at = 0; (at = calls.find("cublasLtMatmul ", at)) != std::string::npos; ++at)
      ++number;
    return number;
  }

  ProgramBuilder b;
  uint32_t x = 0, w = 0, result = 0, bias = 0;
};

TEST_F(CudaCutProduct, TwoCallsGiveWhatOneGives) {
  const Case kCases[] = {
      {.m = 24, .n = 137, .k = 16},                                   // logits
      {.m = 24, .n = 137, .k = 16, .transposeW = true, .bias = true}, // each column has its bias
      {.m = 24, .n = 16, .k = 137},                                   // the gradient of their input
      {.m = 24, .n = 16, .k = 137, .accumulate = true, .bias = true, .relu = true},
      {.m = 137, .n = 16, .k = 24, .transposeX = true, .result = DType::F32}, // that of the weights
      {.m = 137, .n = 16, .k = 24, .transposeX = true, .accumulate = true, .relu = true}};
  for (const Case &c : kCases) {
    ::setenv("DS_FAKE_ODD", "9", 1);
    build(c);
    EXPECT_THAT(device->describe(), HasSubstr("; 1 of 1 products of odd sizes in two calls"));
    EXPECT_EQ(count(run(c)), 2u);
    ::unsetenv("DS_FAKE_ODD");
    std::filesystem::resize_file(cache + "/choices", 0);
    build(c);
    EXPECT_THAT(device->describe(), HasSubstr("; 0 of 1 products of odd sizes in two calls"));
    EXPECT_EQ(count(run(c)), 1u);
    std::filesystem::resize_file(cache + "/choices", 0);
  }
}

TEST_F(CudaCutProduct, TakesTheSameWayAgain) {
  const Case c{.m = 24, .n = 137, .k = 16};
  ::setenv("DS_FAKE_ODD", "9", 1);
  build(c);
  ::unsetenv("DS_FAKE_ODD");
  dsFakeCalls();
  build(c);
  EXPECT_EQ(count(dsFakeCalls()), 0u) << "nothing is timed again";
  EXPECT_EQ(count(run(c)), 2u);
}

TEST_F(CudaCutProduct, IsCutWhereNothingCanBeKept) {
  ::setenv("DS_CACHE_DIR", "/proc/nowhere", 1);
  const Case c{.m = 24, .n = 137, .k = 16};
  build(c);
  EXPECT_EQ(count(run(c)), 2u);
}

TEST_F(CudaCutProduct, IsNotCutWhereItWouldNotHelp) {
  const auto expectWhole = [&](const char *why, const Case &c, int64_t pitch = kPitch,
                               DType factors = DType::BF16) {
    ::setenv("DS_FAKE_ODD", "9", 1);
    build(c, pitch, factors);
    EXPECT_THAT(device->describe(), Not(HasSubstr("odd"))) << why;
  };
  const Case plain{.m = 24, .n = 137, .k = 16};
  expectWhole("sizes are whole", {.m = 24, .n = 136, .k = 16});
  expectWhole("two are odd", {.m = 24, .n = 137, .k = 15});
  expectWhole("the rest is much", {.m = 24, .n = 79, .k = 16});
  expectWhole("rows begin on 2 bytes", plain, 137);
  expectWhole("factors of 32 bits", {.m = 24, .n = 137, .k = 16, .result = DType::F32}, kPitch, DType::F32);
  ::setenv("DS_CUDA_CUT", "0", 1);
  expectWhole("it is switched off", plain);
}

/// A weight [16, 137] whose rows nothing lies between, as a program has its states: logits x w in rows that
/// lie apart, the gradient dy w^T of x, and that of w, x^T dy, which is added to.
struct OddWeight {
  ProgramBuilder b;
  uint32_t x, y, dx, w, dw;

  explicit OddWeight(int64_t workspace) {
    const auto narrow = [&](int64_t rows, int64_t columns, int64_t pitch) {
      return b.view(b.keep({rows, pitch}, DType::BF16), 0, {rows, columns}, {pitch, 1});
    };
    x = narrow(24, 16, 16), y = narrow(24, 137, kPitch), dx = narrow(24, 16, 16);
    w = b.keep({16, 137}, DType::BF16), dw = b.keep({16, 137}, DType::BF16);
    add({x, w, y}, {0, 0, 0, 0}, workspace);
    add({y, w, dx}, {0, 1, 0, 0}, workspace);
    add({x, y, dw}, {1, 0, 1, 0}, workspace);
    b.segment();
    b.program.target = "cuda:sm_90";
  }
  void add(const std::vector<uint32_t> &operands, const std::vector<int64_t> &params, int64_t workspace) {
    b.library(LibraryFn::Matmul, operands, params);
    b.program.commands.back().workspace = test::keepWorkspace(b, workspace);
  }
};

class CudaPackedProduct : public CudaCutProduct {
protected:
  /// Loads and runs `p`, and checks all three products; the calls of running.
  std::string run(OddWeight &p) {
    b = p.b;
    Status status = verifyProgram(b.program);
    EXPECT_TRUE(status) << status.error().message;
    status = load(b.program);
    EXPECT_TRUE(status) << status.error().message;
    const auto xs = fill(p.x, 1), ws = fill(p.w, 2), before = fill(p.dw, 3);
    fill(p.y, 4);
    dsFakeCalls();
    EXPECT_TRUE(executor->run(0));
    const std::string calls = dsFakeCalls();
    const auto y = floats(p.y), dx = floats(p.dx), dw = floats(p.dw);
    for (int64_t i = 0; i < 24; ++i)
      for (int64_t j = 0; j < 137; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < 16; ++k)
          sum += xs[i * 16 + k] * ws[k * 137 + j];
        EXPECT_EQ(y[i * kPitch + j], sum) << i << ", " << j;
      }
    for (int64_t k = 0; k < 16; ++k) {
      for (int64_t i = 0; i < 24; ++i) {
        float sum = 0;
        for (int64_t j = 0; j < 137; ++j)
          sum += y[i * kPitch + j] * ws[k * 137 + j];
        EXPECT_NEAR(dx[i * 16 + k], sum, std::abs(sum) * 0x1p-7 + 1) << i << ", " << k;
      }
      for (int64_t j = 0; j < 137; ++j) {
        float sum = before[k * 137 + j];
        for (int64_t i = 0; i < 24; ++i)
          sum += xs[i * 16 + k] * y[i * kPitch + j];
        EXPECT_EQ(dw[k * 137 + j], sum) << k << ", " << j;
      }
    }
    return calls;
  }
  static size_t countCopies(const std::string &calls) {
    size_t number = 0;
    for (size_t at = 0; (at = calls.find("cuLaunchKernel ds_walk_2", at)) != std::string::npos; ++at)
      ++number;
    return number;
  }
};

constexpr int64_t kCopyBytes = 16 * 192 * 2; // of the weight, or of its gradient

TEST_F(CudaPackedProduct, TwoCallsOnCopiesGiveWhatOneGives) {
  ::setenv("DS_FAKE_ODD", "9", 1);
  OddWeight p(kCopyBytes + 8192);
  std::string calls = run(p);
  EXPECT_THAT(device->describe(), HasSubstr("; 3 of 3 products of odd sizes in two calls"));
  EXPECT_EQ(count(calls), 6u);
  EXPECT_EQ(countCopies(calls), 4u) << "the weight's gradient there and back";
  ::unsetenv("DS_FAKE_ODD");
  calls = run(p);
  EXPECT_EQ(count(calls), 6u) << "what was chosen is taken again";
  std::filesystem::resize_file(cache + "/choices", 0);
  calls = run(p);
  EXPECT_THAT(device->describe(), HasSubstr("; 0 of 3 products of odd sizes in two calls"));
  EXPECT_EQ(count(calls), 3u);
  EXPECT_EQ(countCopies(calls), 0u);
}

TEST_F(CudaPackedProduct, TakesWhatThePlanHasRoomFor) {
  ::setenv("DS_FAKE_ODD", "9", 1);
  OddWeight p(kCopyBytes - 1);
  EXPECT_EQ(countCopies(run(p)), 0u);
  EXPECT_THAT(device->describe(), Not(HasSubstr("odd")));
  OddWeight tight(kCopyBytes); // the library gets nothing
  EXPECT_EQ(countCopies(run(tight)), 4u);
}

TEST_F(CudaPackedProduct, CopiesNothingUnlessThatIsKnownToBeFaster) {
  ::setenv("DS_FAKE_ODD", "9", 1);
  ::setenv("DS_CACHE_DIR", "/proc/nowhere", 1);
  OddWeight p(kCopyBytes + 8192);
  EXPECT_EQ(countCopies(run(p)), 0u);
  ::setenv("DS_CUDA_CUT", "0", 1);
  EXPECT_EQ(countCopies(run(p)), 0u);
  EXPECT_THAT(device->describe(), Not(HasSubstr("odd")));
}

} // namespace
} // namespace ds::rt
