//===- CudaBiasGradientTest.cpp - Gradients of biases within products and by kernels ------===//
#include "CudaFixture.h"

#include <random>

namespace ds::rt {
namespace {

using test::ProgramBuilder;
using testing::HasSubstr;
using testing::Not;

/// The gradient of a weight, [6, 10] of x [8, 6] and dy [8, 10], with that of the bias: dy's columns added up
/// by two kernels before it, or by one in two stages. `flips`: the other way about, dy^T x.
struct WeightGradient {
  ProgramBuilder b;
  uint32_t x, dy, dw, db, parts;

  explicit WeightGradient(bool flips = false, bool inOne = false) {
    x = b.keep({8, 6}), dy = b.keep({8, 10}),
    dw = b.keep(flips ? std::vector<int64_t>{10, 6} : std::vector<int64_t>{6, 10});
    db = b.keep({10}), parts = b.keep({2, 10});
    if (inOne) {
      b.launch("ds_add_parts", 0, {dy, parts, db}, {10, 4, 2});
    } else {
      b.launch("ds_add_rows", 0, {dy, parts}, {20, 4});
      b.launch("ds_add_rows", 0, {parts, db}, {10, 2});
    }
    b.library(LibraryFn::Matmul, {flips ? dy : x, flips ? x : dy, dw, db}, {1, 0, 0, 0, flips ? 1 : 2});
    b.program.commands.back().workspace = test::keepWorkspace(b, 8192);
    b.segment();
    test::toCuda(b.program);
  }
};

class CudaBiasGradient : public test::CudaFixture {
protected:
  static std::vector<float> numbers(size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<float> values(count);
    for (float &value : values)
      value = static_cast<float>(static_cast<int>(random() % 9) - 4); // sums are exact
    return values;
  }
  ~CudaBiasGradient() override {
    ::unsetenv("DS_FAKE_BGRAD");
    ::unsetenv("DS_CUDA_BGRAD");
  }
  /// The calls of loading `p`.
  std::string loaded(const WeightGradient &p) {
    dsFakeCalls();
    Status status = load(p.b.program);
    EXPECT_TRUE(status) << status.error().message;
    return dsFakeCalls();
  }
  /// Runs what is loaded, and checks both gradients; its calls.
  std::string run(const WeightGradient &p, bool flips = false) {
    const auto x = numbers(48, 1), dy = numbers(80, 2);
    put(p.x, x), put(p.dy, dy), put(p.db, std::vector<float>(10, 77)),
        put(p.parts, std::vector<float>(20, 77));
    dsFakeCalls();
    EXPECT_TRUE(executor->run(0));
    const std::string calls = dsFakeCalls();
    const auto dw = get<float>(p.dw, 60), db = get<float>(p.db, 10);
    for (int64_t j = 0; j < 10; ++j) {
      float bias = 0;
      for (int64_t k = 0; k < 8; ++k)
        bias += dy[k * 10 + j];
      EXPECT_EQ(db[j], bias) << j;
      for (int64_t i = 0; i < 6; ++i) {
        float weight = 0;
        for (int64_t k = 0; k < 8; ++k)
          weight += x[k * 6 + i] * dy[k * 10 + j];
        EXPECT_EQ(dw[flips ? j * 6 + i : i * 10 + j], weight) << i << ", " << j;
      }
    }
    return calls;
  }
};

TEST_F(CudaBiasGradient, ProductsAndKernelsAgree) {
  for (bool flips : {false, true}) {
    const WeightGradient p(flips);
    // The library's first factor is the second one here: its rows go where b's columns do.
    const char *epilogue = flips ? "epilogue 512" : "epilogue 256";
    const std::string calls = loaded(p);
    EXPECT_THAT(calls, HasSubstr(epilogue));
    EXPECT_THAT(calls, HasSubstr("cuLaunchKernel ds_add_rows")); // the other way was timed as well
    EXPECT_THAT(device->describe(), HasSubstr("; gradients of biases within 1 of 1 products"));
    const std::string within = run(p, flips);
    EXPECT_THAT(within, HasSubstr(epilogue));
    EXPECT_THAT(within, Not(HasSubstr("ds_add_rows"))) << "what the product does is left out";
    ::setenv("DS_CUDA_BGRAD", "0", 1);
    EXPECT_THAT(loaded(p), Not(HasSubstr("epilogue")));
    EXPECT_THAT(device->describe(), HasSubstr("; gradients of biases within 0 of 1 products"));
    EXPECT_THAT(run(p, flips), HasSubstr("cuLaunchKernel ds_add_rows"));
    ::unsetenv("DS_CUDA_BGRAD");
  }
}

TEST_F(CudaBiasGradient, ReplacesOneLaunchOfTwoStages) {
  const WeightGradient p(false, /*inOne=*/true);
  const std::string calls = loaded(p);
  EXPECT_THAT(calls, HasSubstr("epilogue 256"));
  EXPECT_THAT(calls, HasSubstr("cuLaunchKernel ds_add_parts")); // the other way was timed as well
  EXPECT_THAT(device->describe(), HasSubstr("; gradients of biases within 1 of 1 products"));
  EXPECT_THAT(run(p), Not(HasSubstr("ds_add_parts"))) << "what the product does is left out";
  ::setenv("DS_CUDA_BGRAD", "0", 1);
  EXPECT_THAT(loaded(p), Not(HasSubstr("epilogue")));
  EXPECT_THAT(run(p), HasSubstr("cuLaunchKernel ds_add_parts"));
}

TEST_F(CudaBiasGradient, LeavesPartsThatAreNamed) {
  // What the product names is what the kernel reads again, not its sums.
  WeightGradient p(false, /*inOne=*/true);
  std::swap(p.b.program.operands[p.b.program.commands[0].firstOperand + 1],
            p.b.program.operands[p.b.program.commands[0].firstOperand + 2]);
  EXPECT_THAT(loaded(p), Not(HasSubstr("epilogue")));
}

TEST_F(CudaBiasGradient, TakesTheFasterWayAgain) {
  const WeightGradient p;
  ::setenv("DS_FAKE_BGRAD", "5", 1);
  EXPECT_THAT(loaded(p), HasSubstr("epilogue 256"));
  EXPECT_THAT(device->describe(), HasSubstr("gradients of biases within 0 of 1 products"));
  const std::string calls = run(p);
  EXPECT_THAT(calls, Not(HasSubstr("epilogue")));
  EXPECT_EQ(calls.find("ds_add_rows", calls.find("ds_add_rows", calls.find("ds_add_rows") + 1) + 1),
            std::string::npos)
      << "each kernel runs once";
  ::unsetenv("DS_FAKE_BGRAD");
  EXPECT_THAT(loaded(p), Not(HasSubstr("cublasLtMatmul "))); // nothing is timed again
  EXPECT_THAT(device->describe(), HasSubstr("gradients of biases within 0 of 1 products"));
  run(p);
}

TEST_F(CudaBiasGradient, SplitsNoSums) {
  // The second algorithm splits them, which is seen with the plain product.
  const std::string calls = loaded(WeightGradient());
  EXPECT_THAT(calls, HasSubstr("cublasLtMatmul 2\n"));
  EXPECT_THAT(calls, HasSubstr("cublasLtMatmul 1 epilogue 256"));
  EXPECT_THAT(calls, Not(HasSubstr("cublasLtMatmul 2 epilogue")));
}

TEST_F(CudaBiasGradient, SaysOnceWhyProductsCannot) {
  ::setenv("DS_FAKE_BGRAD", "0", 1);
  loaded(WeightGradient());
  EXPECT_THAT(device->describe(),
              HasSubstr("gradients of biases within 0 of 1 products (cuBLASLt, choosing an "
                        "algorithm: not supported)"));
  run(WeightGradient());
}

TEST_F(CudaBiasGradient, LeavesWhatOthersMake) {
  // A command that is no such kernel stands between, or makes them.
  for (int which = 0; which < 2; ++which) {
    WeightGradient p;
    Command &maker = p.b.program.commands[which];
    maker.kind = CommandKind::Library;
    maker.callee = static_cast<uint32_t>(LibraryFn::Fill);
    maker.firstOperand += 1, maker.numOperands = 1, maker.numParams = 1;
    EXPECT_THAT(loaded(p), Not(HasSubstr("epilogue"))) << which;
    EXPECT_THAT(device->describe(), Not(HasSubstr("gradients of biases"))) << which;
  }
}

TEST_F(CudaBiasGradient, LeavesSumsOfOtherBuffers) {
  WeightGradient p;
  const uint32_t other = p.b.keep({8, 10});
  p.b.program.operands[p.b.program.commands[0].firstOperand] = other;
  EXPECT_THAT(loaded(p), Not(HasSubstr("epilogue")));
  EXPECT_THAT(device->describe(), Not(HasSubstr("gradients of biases")));
}

TEST_F(CudaBiasGradient, AddsUpInTheTypeOfTheResultOnly) {
  WeightGradient p;
  for (uint32_t buffer : {p.x, p.dy, p.dw})
    p.b.program.buffers[buffer].dtype = DType::BF16;
  EXPECT_THAT(loaded(p), Not(HasSubstr("epilogue")));
  EXPECT_THAT(device->describe(), HasSubstr("(cuBLASLt adds up a factor in the type of the result only)"));
}

/// What reaches a bias before GELU, dy [8, 16] = (d w) GELU'(h) in bf16, and its columns added up by kernels
/// behind the product, then the weight's gradient x^T dy, which names them too.
struct GeluBiasGradient {
  ProgramBuilder b;
  uint32_t d, w, h, dy, x, dw, db, parts;

  explicit GeluBiasGradient(DType sums = DType::BF16) {
    constexpr DType B = DType::BF16;
    d = b.keep({8, 16}, B), w = b.keep({16, 16}, B), h = b.keep({8, 16}, B), dy = b.keep({8, 16}, B);
    x = b.keep({8, 8}, B), dw = b.keep({8, 16}, B), db = b.keep({16}, sums), parts = b.keep({2, 16});
    b.library(LibraryFn::Matmul, {d, w, dy, h, db}, {0, 0, 0, 3, 3});
    b.program.commands.back().workspace = test::keepWorkspace(b, 8192);
    b.launch("ds_add_narrow_rows", 0, {dy, parts}, {32, 4});
    b.launch(sums == B ? "ds_add_rows_narrowly" : "ds_add_rows", 0, {parts, db}, {16, 2});
    b.library(LibraryFn::Matmul, {x, dy, dw, db}, {1, 0, 0, 0, 2});
    b.program.commands.back().workspace = test::keepWorkspace(b, 8192);
    b.segment();
    test::toCuda(b.program);
  }
};

class CudaGeluBiasGradient : public CudaBiasGradient {
protected:
  ~CudaGeluBiasGradient() override {
    ::unsetenv("DS_CUDA_GELU");
    ::unsetenv("DS_FAKE_GELU");
  }
  std::string loaded(const GeluBiasGradient &p) {
    dsFakeCalls();
    Status status = load(p.b.program);
    EXPECT_TRUE(status) << status.error().message;
    return dsFakeCalls();
  }
  /// Runs what is loaded: the bias's gradient is that of dy, which GELU's slope at 0 makes half a product.
  std::string run(const GeluBiasGradient &p) {
    std::vector<uint16_t> d, w;
    for (float value : numbers(128, 1))
      d.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
    for (size_t i = 0; i < 256; ++i) // twice the unit matrix
      w.push_back(i / 16 == i % 16 ? 0x4000 : 0);
    put(p.d, d), put(p.w, w), put(p.h, std::vector<uint16_t>(128)),
        put(p.x, std::vector<uint16_t>(64, 0x3f80));
    put(p.db, std::vector<uint16_t>(16, 0x7fc0)), put(p.parts, std::vector<float>(32, 77));
    dsFakeCalls();
    EXPECT_TRUE(executor->run(0));
    const std::string calls = dsFakeCalls();
    EXPECT_EQ(get<uint16_t>(p.dy, 128), d);
    const auto db = get<uint16_t>(p.db, 16), dw = get<uint16_t>(p.dw, 128);
    const auto given = numbers(128, 1);
    for (size_t j = 0; j < 16; ++j) {
      float sum = 0;
      for (size_t i = 0; i < 8; ++i)
        sum += given[i * 16 + j];
      EXPECT_EQ(db[j], std::bit_cast<uint32_t>(sum) >> 16) << j;
      EXPECT_EQ(dw[j], db[j]) << j; // each row of x is 1
    }
    return calls;
  }
};

TEST_F(CudaGeluBiasGradient, ProductsAndKernelsAgree) {
  const GeluBiasGradient p;
  const std::string calls = loaded(p);
  EXPECT_THAT(calls, HasSubstr("epilogue 208"));
  EXPECT_THAT(calls, HasSubstr("epilogue 192")); // GELU's gradient alone, with the kernels
  EXPECT_THAT(calls, HasSubstr("cuLaunchKernel ds_add_narrow_rows"));
  EXPECT_THAT(calls, Not(HasSubstr("epilogue 256"))) << "the other product is not asked for what is there";
  EXPECT_THAT(
      device->describe(),
      HasSubstr("; GELU within 1 of 1 products; gradients of biases with GELU's within 1 of 1 products"));
  EXPECT_THAT(device->describe(), Not(HasSubstr("biases within")));
  const std::string within = run(p);
  EXPECT_THAT(within, HasSubstr("epilogue 208"));
  EXPECT_THAT(within, Not(HasSubstr("ds_add")));
  loaded(p); // from what is kept
  EXPECT_THAT(run(p), HasSubstr("epilogue 208"));
}

TEST_F(CudaGeluBiasGradient, LeavesThemToTheOtherProduct) {
  // GELU's gradient takes so long within a product that the sums come from the factor of the next one.
  ::setenv("DS_FAKE_GELU", "5", 1);
  const GeluBiasGradient p;
  EXPECT_THAT(loaded(p), HasSubstr("epilogue 256"));
  EXPECT_THAT(device->describe(),
              HasSubstr("; GELU within 0 of 1 products; gradients of biases within 1 of 1 "
                        "products; gradients of biases with GELU's within 0 of 1 products"));
  const std::string calls = run(p);
  EXPECT_THAT(calls, HasSubstr("epilogue 256"));
  EXPECT_THAT(calls, Not(HasSubstr("ds_add")));
}

TEST_F(CudaGeluBiasGradient, IsOfBothSwitches) {
  for (const char *name : {"DS_CUDA_BGRAD", "DS_CUDA_GELU"}) {
    ::setenv(name, "0", 1);
    const GeluBiasGradient p;
    EXPECT_THAT(loaded(p), Not(HasSubstr("epilogue 208"))) << name;
    EXPECT_THAT(run(p), Not(HasSubstr("epilogue 208"))) << name;
    ::unsetenv(name);
  }
}

TEST_F(CudaGeluBiasGradient, AddsUpInTheTypeOfTheResultOnly) {
  EXPECT_THAT(loaded(GeluBiasGradient(DType::F32)), Not(HasSubstr("epilogue 208")));
  EXPECT_THAT(device->describe(), HasSubstr("(cuBLASLt adds up a result in the type of the result only)"));
}

TEST_F(CudaGeluBiasGradient, LeavesSumsOfOtherRows) {
  GeluBiasGradient p;
  p.b.program.operands[p.b.program.commands[1].firstOperand] = p.h;
  EXPECT_THAT(loaded(p), Not(HasSubstr("epilogue 208")));
  EXPECT_THAT(device->describe(), Not(HasSubstr("biases")));
}

} // namespace
} // namespace ds::rt
