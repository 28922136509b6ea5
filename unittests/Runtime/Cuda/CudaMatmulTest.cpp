//===- CudaMatmulTest.cpp - Products described to cuBLASLt as the program means them ----===//
#include "CudaFixture.h"

#include <cmath>
#include <fstream>
#include <random>

namespace ds::rt {
namespace {

using test::ProgramBuilder;
using testing::HasSubstr;
using testing::Not;

/// One product of batches of m x k and k x n, with what can be asked of it.
struct Case {
  std::vector<int64_t> batch;
  int64_t m, n, k;
  bool transposeA, transposeB, accumulate, relu, bias;
  bool byColumns = false; ///< the result's columns are contiguous
};

class CudaMatmul : public test::CudaFixture {
protected:
  static std::vector<int64_t> withBatch(std::vector<int64_t> batch, int64_t rows, int64_t columns) {
    batch.push_back(rows);
    batch.push_back(columns);
    return batch;
  }
  static std::vector<float> numbers(size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<float> values(count);
    for (float &value : values)
      value = static_cast<float>(static_cast<int>(random() % 9) - 4); // sums are exact
    return values;
  }
  static size_t count(const std::vector<int64_t> &shape) {
    size_t product = 1;
    for (int64_t size : shape)
      product *= static_cast<size_t>(size);
    return product;
  }

  void check(const Case &c) {
    ProgramBuilder b;
    const auto shapeA = withBatch(c.batch, c.transposeA ? c.k : c.m, c.transposeA ? c.m : c.k);
    const auto shapeB = withBatch(c.batch, c.transposeB ? c.n : c.k, c.transposeB ? c.k : c.n);
    const uint32_t a = b.keep(shapeA), w = b.keep(shapeB), r = b.keep(withBatch(c.batch, c.m, c.n));
    std::vector<uint32_t> operands = {a, w, r};
    if (c.byColumns)
      operands[2] = b.view(r, 0, {c.m, c.n}, {1, c.m});
    if (c.bias)
      operands.push_back(b.keep({c.n}));
    b.library(LibraryFn::Matmul, operands, {c.transposeA, c.transposeB, c.accumulate, c.relu});
    b.program.commands.back().workspace = test::keepWorkspace(b, 8192);
    b.segment();
    b.program.target = "cuda:sm_90";
    ASSERT_TRUE(verifyProgram(b.program));
    Status status = load(b.program);
    ASSERT_TRUE(status) << status.error().message;
    const auto x = numbers(count(shapeA), 1), y = numbers(count(shapeB), 2),
               before = numbers(count(c.batch) * c.m * c.n, 3), bias = numbers(c.n, 4);
    put(a, x);
    put(w, y);
    put(r, before);
    if (c.bias)
      put(operands[3], bias);
    ASSERT_TRUE(executor->run(0));
    const auto got = get<float>(r, before.size());
    for (int64_t i = 0; i < static_cast<int64_t>(count(c.batch)); ++i)
      for (int64_t row = 0; row < c.m; ++row)
        for (int64_t column = 0; column < c.n; ++column) {
          float sum = c.bias ? bias[column] : 0;
          for (int64_t k = 0; k < c.k; ++k)
            sum += x[i * c.m * c.k + (c.transposeA ? k * c.m + row : row * c.k + k)] *
                   y[i * c.k * c.n + (c.transposeB ? column * c.k + k : k * c.n + column)];
          const int64_t at = i * c.m * c.n + (c.byColumns ? column * c.m + row : row * c.n + column);
          sum += c.accumulate ? before[at] : 0;
          ASSERT_EQ(got[at], c.relu ? std::max(sum, 0.0f) : sum) << row << ", " << column;
        }
  }
};

TEST_F(CudaMatmul, EveryForm) {
  for (int flags = 0; flags < 32; ++flags)
    check({{},
           5,
           7,
           3,
           (flags & 1) != 0,
           (flags & 2) != 0,
           (flags & 4) != 0,
           (flags & 8) != 0,
           (flags & 16) != 0});
}

TEST_F(CudaMatmul, Batches) {
  for (int flags = 0; flags < 8; ++flags)
    check({{2, 3}, 4, 6, 5, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, false, false});
}

TEST_F(CudaMatmul, ResultByColumns) {
  for (int flags = 0; flags < 4; ++flags)
    check({{}, 4, 6, 5, (flags & 1) != 0, (flags & 2) != 0, false, false, false, true});
}

TEST_F(CudaMatmul, SingleRowsAndColumns) {
  for (auto [m, n, k] : {std::tuple(1, 7, 3), {5, 1, 3}, {5, 7, 1}, {1, 1, 1}})
    check({{}, m, n, k, false, true, false, false, true});
}

/// x [4, 6] times w, with `workspace` bytes.
ProgramBuilder product(int64_t workspace) {
  ProgramBuilder b;
  const uint32_t x = b.keep({4, 6}), w = b.keep({5, 6}), r = b.keep({4, 5});
  b.library(LibraryFn::Matmul, {x, w, r}, {0, 1, 0, 0});
  if (workspace > 0)
    b.program.commands.back().workspace = test::keepWorkspace(b, workspace);
  b.segment();
  b.program.target = "cuda:sm_90";
  return b;
}

TEST_F(CudaMatmul, KeepsTheChoiceForLaterRuns) {
  dsFakeCalls();
  ASSERT_TRUE(load(product(8192).program));
  const std::string first = dsFakeCalls();
  EXPECT_THAT(first, HasSubstr("cublasLtMatmul 2")); // both were timed
  EXPECT_LT(first.find("cuStreamSynchronize"), first.find("cublasLtMatmul ")) << "on memory that is clear";
  ASSERT_TRUE(load(product(8192).program));
  const std::string second = dsFakeCalls();
  EXPECT_THAT(second, HasSubstr("cublasLtMatmulAlgoCheck"));
  EXPECT_THAT(second, Not(HasSubstr("GetHeuristic")));
  EXPECT_THAT(second, Not(HasSubstr("cublasLtMatmul ")));
}

TEST_F(CudaMatmul, ChoosesAnewForAnotherVersion) {
  ASSERT_TRUE(load(product(8192).program));
  ::setenv("DS_FAKE_CUBLASLT", "130200", 1);
  dsFakeCalls();
  ASSERT_TRUE(load(product(8192).program));
  EXPECT_THAT(std::string(dsFakeCalls()), HasSubstr("GetHeuristic"));
}

TEST_F(CudaMatmul, ChoosesAnewForAnotherDriver) {
  ASSERT_TRUE(load(product(8192).program));
  dsFakeCalls();
  ::setenv("DS_FAKE_DRIVER_BUILD", "590.10", 1);
  ASSERT_TRUE(load(product(8192).program));
  EXPECT_THAT(std::string(dsFakeCalls()), HasSubstr("GetHeuristic"));
}

TEST_F(CudaMatmul, PassesOverAnAlgorithmThatDoesNotRun) {
  ::setenv("DS_FAKE_REFUSES", "* 1", 1);
  ASSERT_TRUE(load(product(8192).program));
  dsFakeCalls();
  ASSERT_TRUE(executor->run(0));
  EXPECT_THAT(std::string(dsFakeCalls()), HasSubstr("cublasLtMatmul 2"));
}

TEST_F(CudaMatmul, SaysWhyNoAlgorithmRuns) {
  // Also where there is only one, which need not be timed.
  for (auto [workspace, tried] :
       {std::pair(8192, "none of 2 candidates runs"), {0, "none of 1 candidate runs"}}) {
    ::setenv("DS_FAKE_REFUSES", "* 1 2", 1);
    Status status = load(product(workspace).program);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ExitCode::Device);
    EXPECT_THAT(status.error().message, HasSubstr("commands[0]: product of 4x6 and 6x5: "));
    EXPECT_THAT(status.error().message, HasSubstr(tried));
    EXPECT_THAT(status.error().message,
                HasSubstr("; algorithm 1.0.0.0.0.0.0.0: cuBLASLt, multiplying: not supported"));
    EXPECT_EQ(std::filesystem::file_size(cache + "/choices"), 0u) << "nothing is kept";
    ::unsetenv("DS_FAKE_REFUSES");
    EXPECT_TRUE(load(product(workspace).program));
    std::filesystem::resize_file(cache + "/choices", 0);
  }
}

TEST_F(CudaMatmul, DecidesOnceForEqualProducts) {
  ProgramBuilder b = product(8192);
  b.program.commands.push_back(b.program.commands[0]);
  ++b.program.segments[0].numCommands;
  dsFakeCalls();
  ASSERT_TRUE(load(b.program));
  const std::string calls = dsFakeCalls();
  EXPECT_EQ(calls.find("GetHeuristic"), calls.rfind("GetHeuristic"));
}

TEST_F(CudaMatmul, SaysThatKeptChoicesAreDamaged) {
  ASSERT_TRUE(load(product(8192).program));
  EXPECT_THAT(device->describe(), Not(HasSubstr("damaged")));
  std::fstream file(cache + "/choices", std::ios::in | std::ios::out);
  file.seekp(-20, std::ios::end) << '~';
  file.close();
  dsFakeCalls();
  ASSERT_TRUE(load(product(8192).program));
  EXPECT_THAT(std::string(dsFakeCalls()), HasSubstr("GetHeuristic")) << "it is chosen anew";
  EXPECT_THAT(device->describe(),
              HasSubstr("1 damaged line of '" + cache + "/choices' passed over, the first is line 1"));
}

TEST_F(CudaMatmul, StaysWithinThePlannedWorkspace) {
  dsFakeCalls();
  ASSERT_TRUE(load(product(0).program));
  EXPECT_THAT(std::string(dsFakeCalls()), Not(HasSubstr("cublasLtMatmul 2")));
}

TEST_F(CudaMatmul, SaysHowItsOperandsLie) {
  // x lies on 4 bytes: the second algorithm, which wants 16, may not be chosen, nor kept from another run.
  ASSERT_TRUE(load(product(8192).program));
  ProgramBuilder b = product(8192);
  b.program.buffers[0].offset += 4;
  dsFakeCalls();
  ASSERT_TRUE(load(b.program));
  ASSERT_TRUE(executor->run(0));
  const std::string calls = dsFakeCalls();
  EXPECT_THAT(calls, HasSubstr("cublasLtMatmul 1"));
  EXPECT_THAT(calls, Not(HasSubstr("cublasLtMatmul 2")));
}

TEST_F(CudaMatmul, RoundsFactorsAsTheProgramSays) {
  const auto described = [&](bool tf32, const char *wish) {
    ProgramBuilder b = product(0);
    b.program.tf32 = tf32;
    wish ? ::setenv("DS_CUDA_TF32", wish, 1) : ::unsetenv("DS_CUDA_TF32");
    dsFakeCalls();
    EXPECT_TRUE(load(b.program));
    ::unsetenv("DS_CUDA_TF32");
    return std::string(dsFakeCalls());
  };
  EXPECT_THAT(described(false, nullptr), HasSubstr("cublasLt describes f32"));
  EXPECT_THAT(described(true, nullptr), HasSubstr("cublasLt describes tf32"));
  EXPECT_THAT(described(true, "0"), HasSubstr("cublasLt describes f32"));
  EXPECT_THAT(described(false, "1"), HasSubstr("cublasLt describes tf32"));
}

/// A product of bf16 whose sums meet GELU (activation 2) or its gradient (3): [16, 8] times [8, columns].
struct GeluProduct {
  ProgramBuilder b;
  uint32_t x, w, result, bias, input;

  explicit GeluProduct(int64_t activation, int64_t columns = 24, bool keepsInput = true) {
    x = b.keep({16, 8}, DType::BF16), w = b.keep({8, columns}, DType::BF16);
    result = b.keep({16, columns}, DType::BF16), input = b.keep({17, columns}, DType::BF16); // a row to spare
    b.program.buffers[input].shape[0] = 16;
    bias = b.keep({columns}, DType::BF16);
    std::vector<uint32_t> operands = {x, w, result};
    if (activation == 2)
      operands.push_back(bias);
    if (keepsInput)
      operands.push_back(input);
    b.library(LibraryFn::Matmul, operands, {0, 0, 0, activation});
    b.program.commands.back().workspace = test::keepWorkspace(b, 8192);
    b.segment();
    b.program.target = "cuda:sm_90";
  }
};

class CudaGelu : public CudaMatmul {
protected:
  ~CudaGelu() override {
    ::unsetenv("DS_FAKE_GELU");
    ::unsetenv("DS_CUDA_GELU");
  }
  static std::vector<uint16_t> narrow(size_t count, unsigned seed) {
    std::vector<uint16_t> bits;
    for (float value : numbers(count, seed))
      bits.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value / 4) >> 16));
    return bits;
  }
  /// Loads and runs the product; the elements of its result, and of GELU's input, and the calls.
  std::tuple<std::vector<float>, std::vector<float>, std::string> run(GeluProduct &p) {
    dsFakeCalls();
    Status status = load(p.b.program);
    EXPECT_TRUE(status) << status.error().message;
    const std::string calls = dsFakeCalls();
    unsigned seed = 0;
    for (uint32_t id : {p.x, p.w, p.bias, p.input})
      put(id, narrow(static_cast<size_t>(numElements(p.b.program.buffers[id])), ++seed));
    EXPECT_TRUE(executor->run(0));
    const auto floats = [&](uint32_t id) {
      std::vector<float> values;
      for (uint16_t bits : get<uint16_t>(id, static_cast<size_t>(numElements(p.b.program.buffers[id]))))
        values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
      return values;
    };
    return {floats(p.result), floats(p.input), calls};
  }
  void expectNear(const std::vector<float> &got, const std::vector<float> &expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], std::abs(expected[i]) * 0x1p-6 + 1e-6) << i;
  }
};

TEST_F(CudaGelu, ProductsAndKernelsAgree) {
  const struct {
    int64_t activation;
    bool keepsInput;
    const char *epilogue;
  } kCases[] = {{2, true, "epilogue 164"}, {2, false, "epilogue 36"}, {3, true, "epilogue 192"}};
  for (const auto &c : kCases) {
    GeluProduct p(c.activation, 24, c.keepsInput);
    const auto [within, keptWithin, calls] = run(p);
    EXPECT_THAT(calls, HasSubstr(c.epilogue));
    EXPECT_THAT(calls, HasSubstr("cuLaunchKernel ds_gelu")); // the other way was timed as well
    EXPECT_THAT(device->describe(), HasSubstr("; GELU within 1 of 1 products"));
    ::setenv("DS_CUDA_GELU", "0", 1);
    const auto [after, keptAfter, plainCalls] = run(p);
    ::unsetenv("DS_CUDA_GELU");
    EXPECT_THAT(plainCalls, Not(HasSubstr("epilogue")));
    EXPECT_THAT(device->describe(), HasSubstr("; GELU within 0 of 1 products"));
    expectNear(within, after);
    EXPECT_EQ(keptWithin, keptAfter);
  }
}

TEST_F(CudaGelu, TakesTheFasterWayAgain) {
  GeluProduct p(2);
  ::setenv("DS_FAKE_GELU", "2", 1);
  EXPECT_THAT(std::get<2>(run(p)), HasSubstr("epilogue 164"));
  EXPECT_THAT(device->describe(), HasSubstr("GELU within 0 of 1 products"));
  ::unsetenv("DS_FAKE_GELU");
  EXPECT_THAT(std::get<2>(run(p)), Not(HasSubstr("cublasLtMatmul "))); // nothing is timed again
  EXPECT_THAT(device->describe(), HasSubstr("GELU within 0 of 1 products"));
}

TEST_F(CudaGelu, SaysWhyNoWayRuns) {
  ::setenv("DS_FAKE_REFUSES", "* 1 2", 1);
  GeluProduct p(2);
  Status status = load(p.b.program);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("none of 4 candidates runs; algorithm 1"));
  EXPECT_THAT(status.error().message, HasSubstr("; with GELU, algorithm 1"));
}

TEST_F(CudaGelu, TakesKernelsWhereNothingCanBeKept) {
  ::setenv("DS_CACHE_DIR", "/proc/nowhere", 1);
  GeluProduct p(3);
  run(p);
  EXPECT_THAT(device->describe(), HasSubstr("GELU within 0 of 1 products"));
}

TEST_F(CudaGelu, TakesKernelsWhereTheLibraryCannot) {
  const auto expectAfter = [&](GeluProduct &p, const char *what) {
    EXPECT_THAT(std::get<2>(run(p)), Not(HasSubstr("epilogue"))) << what;
    EXPECT_THAT(device->describe(), HasSubstr("GELU within 0 of 1 products")) << what;
  };
  GeluProduct narrow(2, 20);
  expectAfter(narrow, "rows of 40 bytes");
  GeluProduct misplaced(3);
  misplaced.b.program.buffers[misplaced.input].offset += 2;
  expectAfter(misplaced, "an input on 2 bytes");
  ::setenv("DS_FAKE_GELU", "0", 1);
  GeluProduct refused(2);
  expectAfter(refused, "no algorithm");
}

TEST_F(CudaMatmul, TimesNothingThatItCannotKeep) {
  ::setenv("DS_CACHE_DIR", "/proc/nowhere", 1);
  dsFakeCalls();
  ASSERT_TRUE(load(product(8192).program));
  EXPECT_THAT(std::string(dsFakeCalls()), Not(HasSubstr("cublasLtMatmul ")));
}

TEST_F(CudaMatmul, NamesALibraryThatIsTooOld) {
  ::setenv("DS_FAKE_CUBLASLT", "120500", 1);
  Status status = load(product(0).program);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Device);
  EXPECT_THAT(status.error().message, HasSubstr("cuBLASLt has version 120500, but 130000 is needed"));
}

} // namespace
} // namespace ds::rt
