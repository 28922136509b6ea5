//===- CudaAttentionTest.cpp - Attention by cuDNN and by the runtime's kernels -----------===//
#include "CudaFixture.h"

#include "ds/Runtime/Program/AttentionPieces.h"
#include "ds/Runtime/Program/Library.h"

#include <cmath>
#include <random>

namespace ds::rt {
namespace {

using test::bits;
using test::ProgramBuilder;
using testing::HasSubstr;
using testing::Not;

struct Form {
  int64_t batch = 2, rows = 16, heads = 4, groups = 4, size = 8;
  bool causal = true;
  DType dtype = DType::BF16;
  uint64_t workspace = kUsualPieceBytes; ///< bytes that a piece may take
  bool joined = false;                   ///< q, k and v are columns of one matrix
  int64_t moreKeys = 0;                  ///< than rows
  std::vector<int64_t> mask = {};        ///< its sizes; empty: there is none
  int64_t block = 0;                     ///< of the gradient; 0: it is not cut into blocks
};

float widen(uint16_t bits, DType dtype) {
  return dtype == DType::BF16 ? std::bit_cast<float>(static_cast<uint32_t>(bits) << 16)
                              : static_cast<float>(std::bit_cast<_Float16>(bits));
}
uint16_t narrow(float value, DType dtype) { // of numbers that both types have
  return dtype == DType::BF16 ? static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16)
                              : std::bit_cast<uint16_t>(static_cast<_Float16>(value));
}

/// Attention and its gradient: what is read, and out, lse, dq, dk and dv.
struct Attention {
  ProgramBuilder b;
  bool cpu;
  std::vector<uint32_t> inputs; ///< whole buffers
  uint32_t q, k, v, dout, out, lse, dq, dk, dv;
  std::optional<uint32_t> mask;

  explicit Attention(const Form &f, bool cpu = false) : cpu(cpu) {
    const std::vector<int64_t> query = {f.batch, f.rows, f.heads, f.size},
                               key = {f.batch, f.rows + f.moreKeys, f.groups, f.size};
    if (f.joined)
      split(f);
    else
      for (auto [id, shape] : {std::pair(&q, query), {&k, key}, {&v, key}})
        inputs.push_back(*id = b.keep(shape, f.dtype));
    inputs.push_back(dout = b.keep(query, f.dtype));
    out = b.keep(query, f.dtype);
    lse = b.keep({f.batch, f.heads, f.rows});
    dq = b.keep(query, f.dtype);
    dk = b.keep(key, f.dtype);
    dv = b.keep(key, f.dtype);
    std::vector<uint32_t> forward = {q, k, v, out, lse}, backward = {q, k, v, out, lse, dout, dq, dk, dv};
    if (!f.mask.empty()) {
      mask = b.keep(f.mask);
      forward.push_back(*mask);
      backward.push_back(*mask);
    }
    add(LibraryFn::AttentionForward, forward, f);
    add(LibraryFn::AttentionBackward, backward, f);
    b.segment();
    b.program.target = cpu ? "cpu" : "cuda:sm_90";
  }

  /// q, k and v side by side in each row.
  void split(const Form &f) {
    const int64_t width = (f.heads + 2 * f.groups) * f.size;
    inputs.push_back(b.keep({f.batch, f.rows, width}, f.dtype));
    int64_t column = 0;
    for (auto [id, heads] : {std::pair(&q, f.heads), {&k, f.groups}, {&v, f.groups}}) {
      *id = b.view(inputs[0], column, {f.batch, f.rows, heads, f.size}, {f.rows * width, width, f.size, 1});
      column += heads * f.size;
    }
  }

  void add(LibraryFn function, const std::vector<uint32_t> &operands, const Form &f) {
    std::vector<const Buffer *> buffers;
    for (uint32_t id : operands)
      buffers.push_back(&b.program.buffers[id]);
    std::vector<int64_t> params = {f.causal, bits(0.25)};
    if (f.block > 0 && function == LibraryFn::AttentionBackward)
      params.push_back(f.block);
    const auto pieces = attentionPieces(function, buffers, attentionParams(params), f.workspace);
    const uint64_t onCpu = libraryWorkspaceBytes(function, buffers, b.program.threads);
    const uint64_t bytes = cpu ? onCpu : pieces ? pieces->workspaceBytes : 0;
    b.library(function, operands, params);
    if (bytes > 0)
      b.program.commands.back().workspace = test::keepWorkspace(b, static_cast<int64_t>(bytes));
  }
};

class CudaAttention : public test::CudaFixture {
protected:
  ~CudaAttention() override { ::setenv("DS_CUDNN", DS_FAKE_CUDA, 1); }

  /// Loads the program, and writes its inputs.
  void prepare(const Attention &a, DType dtype) {
    ASSERT_TRUE(verifyProgram(a.b.program));
    if (a.cpu) {
      Result<std::unique_ptr<Executor>> loaded = Executor::load(a.b.program);
      ASSERT_TRUE(loaded) << loaded.error().message;
      executor = std::move(*loaded);
    } else {
      Status status = load(a.b.program);
      ASSERT_TRUE(status) << status.error().message;
    }
    std::mt19937 random(7);
    for (uint32_t id : a.inputs) {
      std::vector<uint16_t> values(static_cast<size_t>(numElements(a.b.program.buffers[id])));
      for (uint16_t &value : values)
        value = narrow(static_cast<float>(static_cast<int>(random() % 17) - 8) / 8, dtype);
      put(id, values);
    }
    if (a.mask)
      put(*a.mask, makeMask(numElements(a.b.program.buffers[*a.mask]), random));
  }

  /// Numbers, of which one in eight hides its key.
  static std::vector<float> makeMask(int64_t count, std::mt19937 &random) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float &value : values)
      value =
          random() % 8 == 0 ? -std::numeric_limits<float>::infinity() : static_cast<float>(random() % 9) / 4;
    return values;
  }

  /// out, dq, dk, dv and lse as floats, one after another.
  std::vector<float> compute(const Form &f, bool cpu) {
    const Attention a(f, cpu);
    prepare(a, f.dtype);
    if (HasFatalFailure())
      return {};
    dsFakeCalls(); // engines were timed
    EXPECT_TRUE(executor->run(0));
    std::vector<float> all;
    for (uint32_t id : {a.out, a.dq, a.dk, a.dv})
      for (uint16_t value : get<uint16_t>(id, static_cast<size_t>(numElements(a.b.program.buffers[id]))))
        all.push_back(widen(value, f.dtype));
    const std::vector<float> lse = get<float>(a.lse, static_cast<size_t>(f.batch * f.heads * f.rows));
    all.insert(all.end(), lse.begin(), lse.end());
    return all;
  }

  /// The numbers are the CPU's, but for the rounding of probabilities to 16 bits.
  void check(const Form &f, const std::string &calls = "cudnnBackendExecute engine 2\n") {
    const std::vector<float> got = compute(f, /*cpu=*/false);
    EXPECT_THAT(std::string(dsFakeCalls()), HasSubstr(calls));
    const std::vector<float> expected = compute(f, /*cpu=*/true);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], 0.02 * (1 + std::abs(expected[i]))) << i;
  }
};

const std::string kTwice = "cudnnBackendExecute engine 2\ncudnnBackendExecute engine 2\n";

TEST_F(CudaAttention, EveryForm) {
  check({});
  check({.causal = false});
  check({.groups = 2});
  check({.groups = 1, .dtype = DType::F16});
  check({.rows = 13, .size = 24});
  check({.groups = 2, .joined = true});
}

TEST_F(CudaAttention, MoreKeysThanQueries) {
  check({.moreKeys = 8});
  check({.rows = 5, .groups = 2, .moreKeys = 1});
}

/// Each block is a run of an engine and a launch that adds up its parts.
TEST_F(CudaAttention, LongGradientsInBlocks) {
  const std::string step = "cudnnBackendExecute engine 2\ncuLaunchKernel ds_attention_parts_bf16";
  const auto in = [](int64_t rows, int64_t block) {
    return Form{.batch = 1, .rows = rows, .heads = 2, .groups = 2, .block = block};
  };
  check(in(32, 8), step);
  check(in(20, 8), step); // the last row of blocks is shorter
  Form form = in(20, 8);
  form.causal = false;
  check(form, step);
  form = {.batch = 2, .rows = 24, .groups = 2, .dtype = DType::F16, .joined = true, .block = 16};
  check(form, "cudnnBackendExecute engine 2\ncuLaunchKernel ds_attention_parts_f16");
  form = {.batch = 1,
          .rows = 16,
          .groups = 1,
          .moreKeys = 13,
          .block = 8}; // the keys before all queries are 8 and 5
  check(form, step);
  form = {.batch = 2, .rows = 20, .causal = false, .moreKeys = 4, .mask = {2, 4, 20, 24}, .block = 16};
  check(form, step);
  form.causal = true;
  form.mask = {1, 1, 20, 24};
  check(form, step);
}

/// 1 + 2 + 3 + 4 blocks for each of two key heads; two engines, of which each chooses once.
TEST_F(CudaAttention, BlocksShareTwoEngines) {
  Attention a{{.batch = 1, .rows = 32, .heads = 2, .groups = 2, .block = 8}};
  dsFakeCalls();
  ASSERT_TRUE(load(a.b.program));
  const auto count = [](const std::string &text, const std::string &what) {
    size_t found = 0;
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size())
      ++found;
    return found;
  };
  EXPECT_EQ(count(dsFakeCalls(), "cudnn compiles"), 2u + 2 * 2)
      << "two candidates of forward, and of each block";
  EXPECT_THAT(device->describe(), Not(HasSubstr("of 2 commands")));
  ASSERT_TRUE(executor->run(0));
  EXPECT_EQ(count(dsFakeCalls(), "ds_attention_parts_bf16"), 20u);
}

/// Where one of the engines does not run, kernels compute all of it.
TEST_F(CudaAttention, BlocksWithoutAnEngineAreTheKernels) {
  Attention a{{.batch = 1, .rows = 32, .heads = 2, .groups = 2, .block = 8}};
  ::setenv("DS_FAKE_ENGINES", "0", 1);
  ASSERT_TRUE(load(a.b.program));
  ::unsetenv("DS_FAKE_ENGINES");
  EXPECT_THAT(device->describe(), HasSubstr("attention by the runtime's kernels (none of 2"));
  dsFakeCalls();
  ASSERT_TRUE(executor->run(0));
  const std::string calls = dsFakeCalls();
  EXPECT_THAT(calls, HasSubstr("ds_attention_dkdv_bf16"));
  EXPECT_THAT(calls, Not(HasSubstr("ds_attention_parts")));
}

TEST_F(CudaAttention, MasksInMemory) {
  check({.causal = false, .mask = {2, 4, 16, 16}});
  check({.causal = false, .mask = {1, 1, 16, 16}});
  check({.causal = false, .mask = {2, 1, 1, 16}});
  check({.groups = 2, .causal = false, .dtype = DType::F16, .moreKeys = 16, .mask = {1, 4, 16, 32}});
  // Two pieces of the batch, and two of the heads, each with its part of the mask.
  check({.causal = false, .workspace = 66304, .mask = {2, 4, 16, 16}}, kTwice);
  check({.batch = 1, .heads = 8, .groups = 4, .causal = false, .workspace = 82688, .mask = {1, 8, 1, 16}},
        kTwice);
}

TEST_F(CudaAttention, LeavesMasksThatNoPieceCanStartAt) {
  ASSERT_TRUE(load(Attention({.rows = 9, .mask = {2, 4, 9, 9}}).b.program));
  EXPECT_THAT(device->describe(),
              HasSubstr("kernels (cuDNN is not asked for a mask whose parts do not begin on 16 bytes)"));
}

TEST_F(CudaAttention, PiecesOfTheBatch) {
  // A sample's gradients: 4 heads * 16 rows * 4 + 4 * 64 * 128 * 2 + 512 = 66304 bytes, so two samples are
  // two pieces.
  check({.workspace = 66304}, kTwice);
}

TEST_F(CudaAttention, PiecesOfTheHeads) {
  // Of one sample two of four key heads, each with two query heads.
  // 4 * 16 * 4 + 4 * 64 * 128 * 2 + 4 * 4 * 128 * 8 + 512 = 82688.
  check({.batch = 1, .heads = 8, .groups = 4, .workspace = 82688}, kTwice);
}

TEST_F(CudaAttention, LeavesTheRestToTheKernels) {
  dsFakeCalls();
  ASSERT_TRUE(load(Attention({.size = 12}).b.program));
  EXPECT_THAT(
      device->describe(),
      HasSubstr(
          "; attention by the runtime's kernels (cuDNN is not asked for heads that are no multiple of 8"));
  ASSERT_TRUE(executor->run(0));
  const std::string calls = dsFakeCalls();
  EXPECT_THAT(calls, Not(HasSubstr("cudnnBackendExecute")));
  EXPECT_THAT(calls, HasSubstr("ds_attention_forward_bf16"));
}

TEST_F(CudaAttention, TakesNoMoreThanIsPlanned) {
  Attention a{Form{}};
  for (Command &command : a.b.program.commands)
    command.workspace = UINT32_MAX;
  ASSERT_TRUE(load(a.b.program));
  EXPECT_THAT(device->describe(), HasSubstr("kernels (no workspace is planned for it)"));
  // One head cannot be cut.
  Attention b{{.batch = 1, .heads = 1, .groups = 1}};
  b.b.program.buffers[b.b.program.commands[1].workspace].shape[0] -= 256;
  ASSERT_TRUE(load(b.b.program));
  EXPECT_THAT(device->describe(),
              HasSubstr("cuDNN 9.19.0 in 1 of 2 commands (no workspace is planned for it)"));
}

TEST_F(CudaAttention, TimesNothingThatItCannotKeep) {
  ::setenv("DS_CACHE_DIR", "/proc/nowhere", 1);
  dsFakeCalls();
  ASSERT_TRUE(load(Attention{Form{}}.b.program));
  EXPECT_THAT(std::string(dsFakeCalls()), Not(HasSubstr("cudnnBackendExecute")));
  ASSERT_TRUE(executor->run(0));
  EXPECT_THAT(std::string(dsFakeCalls()), HasSubstr("cudnnBackendExecute engine 3\n")); // the first
}

TEST_F(CudaAttention, KeepsTheChoiceForLaterRuns) {
  dsFakeCalls();
  ASSERT_TRUE(load(Attention{Form{}}.b.program));
  const std::string first = dsFakeCalls();
  EXPECT_THAT(first, HasSubstr("cudnn heuristics"));
  EXPECT_THAT(first, HasSubstr("cudnnBackendExecute engine 3\n")); // both are timed
  EXPECT_THAT(first, HasSubstr("cudnnBackendExecute engine 2\n"));
  EXPECT_THAT(device->describe(), HasSubstr("; attention by cuDNN 9.19.0"));
  ASSERT_TRUE(load(Attention{Form{}}.b.program));
  const std::string second = dsFakeCalls();
  EXPECT_THAT(second, HasSubstr("cudnn compiles"));
  EXPECT_THAT(second, Not(HasSubstr("cudnn heuristics")));
  EXPECT_THAT(second, Not(HasSubstr("cudnnBackendExecute")));
}

TEST_F(CudaAttention, LeavesItToTheKernelsWhereNoEngineRuns) {
  ::setenv("DS_FAKE_ENGINES", "0", 1);
  ASSERT_TRUE(load(Attention(Form()).b.program));
  ::unsetenv("DS_FAKE_ENGINES");
  EXPECT_THAT(device->describe(),
              HasSubstr("attention by the runtime's kernels (none of 2 candidates runs; engine 3."));
  EXPECT_EQ(std::filesystem::file_size(cache + "/choices"), 0u) << "nothing is kept";
  ASSERT_TRUE(executor->run(0));
}

TEST_F(CudaAttention, CompilesOncePerForm) {
  // The scale is no part of an engine: forward and backward are two forms.
  Attention a{Form{}};
  const uint32_t workspace = a.b.program.commands[1].workspace;
  a.b.library(LibraryFn::AttentionBackward, {a.q, a.k, a.v, a.out, a.lse, a.dout, a.dq, a.dk, a.dv},
              {1, bits(0.5)});
  a.b.program.commands.back().workspace = workspace;
  a.b.program.segments[0].numCommands = 3;
  dsFakeCalls();
  ASSERT_TRUE(load(a.b.program));
  const std::string calls = dsFakeCalls(), compiles = "cudnn compiles";
  size_t compiled = 0;
  for (size_t at = 0; (at = calls.find(compiles, at)) != std::string::npos; at += compiles.size())
    ++compiled;
  EXPECT_EQ(compiled, 4u); // two engines each
}

TEST_F(CudaAttention, DoesWithoutALibraryThatIsMissingOrOld) {
  ::setenv("DS_CUDNN", "/nowhere/libcudnn.so.9", 1);
  ASSERT_TRUE(load(Attention{Form{}}.b.program));
  EXPECT_THAT(device->describe(), HasSubstr("kernels (fast attention needs cuDNN 9.16 or later: /nowhere"));
  ::setenv("DS_CUDNN", DS_FAKE_CUDA, 1);
  ::setenv("DS_FAKE_CUDNN", "91500", 1);
  ASSERT_TRUE(load(Attention{Form{}}.b.program));
  EXPECT_THAT(device->describe(), HasSubstr("kernels (cuDNN has version 9.15.0, but 9.16.0 is needed)"));
  ::setenv("DS_CUDNN", "0", 1);
  ASSERT_TRUE(load(Attention{Form{}}.b.program));
  EXPECT_THAT(device->describe(), HasSubstr("kernels (DS_CUDNN is 0)"));
}

TEST_F(CudaAttention, CanBeRecorded) {
  const Form form;
  Attention a(form);
  prepare(a, form.dtype);
  std::vector<std::vector<uint16_t>> gradients;
  for (int step = 0; step < 3; ++step) {
    dsFakeCalls();
    ASSERT_TRUE(executor->runStep([](uint32_t) { return Status(); }));
    gradients.push_back(get<uint16_t>(a.dq, 2 * 16 * 4 * 8));
  }
  EXPECT_THAT(std::string(dsFakeCalls()), HasSubstr("cuGraphLaunch"));
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_EQ(gradients[0], gradients[2]);
}

} // namespace
} // namespace ds::rt
