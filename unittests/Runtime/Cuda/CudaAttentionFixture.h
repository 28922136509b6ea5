//===- CudaAttentionFixture.h - Attention on the fake device and on the CPU ----------------===//
#ifndef DS_UNITTESTS_RUNTIME_CUDA_CUDAATTENTIONFIXTURE_H
#define DS_UNITTESTS_RUNTIME_CUDA_CUDAATTENTIONFIXTURE_H

#include "CudaFixture.h"

#include "ds/Runtime/Program/AttentionPieces.h"
#include "ds/Runtime/Program/Library.h"

#include <cmath>
#include <random>

namespace ds::rt {

struct Form {
  int64_t batch = 2, rows = 16, heads = 4, groups = 4, size = 8;
  bool causal = true;
  DType dtype = DType::BF16;
  uint64_t workspace = kUsualPieceBytes; ///< bytes that a piece may take
  bool joined = false;                   ///< q, k and v are columns of one matrix
  int64_t moreKeys = 0;                  ///< than rows
  std::vector<int64_t> mask = {};        ///< its sizes; empty: there is none
  int64_t block = 0;                     ///< of the gradient, and of dropout; 0: nothing is cut into blocks
  bool fast = false;                     ///< the gradient may be added up in any order
  int64_t window = 0;                    ///< 0: none
  double cap = 0;                        ///< of scores; 0: none
  bool slopes = false;                   ///< one of each head
  double dropout = 0;                    ///< of probabilities; 0: none
};

inline float widen(uint16_t bits, DType dtype) {
  return dtype == DType::BF16 ? std::bit_cast<float>(static_cast<uint32_t>(bits) << 16)
                              : static_cast<float>(std::bit_cast<_Float16>(bits));
}
inline uint16_t narrow(float value, DType dtype) { // of numbers that both types have
  return dtype == DType::BF16 ? static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16)
                              : std::bit_cast<uint16_t>(static_cast<_Float16>(value));
}

/// Attention and its gradient: what is read, and out, lse, dq, dk and dv.
struct Attention {
  test::ProgramBuilder b;
  bool cpu;
  std::vector<uint32_t> inputs; ///< whole buffers
  uint32_t q, k, v, dout, out, lse, dq, dk, dv;
  std::optional<uint32_t> mask, slopes, generator;

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
    if (f.slopes) {
      slopes = b.keep({f.heads});
      forward.push_back(*slopes);
      backward.push_back(*slopes);
    }
    if (f.dropout != 0) {
      generator = b.keep({2}, DType::I64);
      forward.push_back(*generator);
      backward.push_back(*generator);
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
    std::vector<int64_t> params = {f.causal, test::bits(0.25)};
    if (f.window != 0 || f.cap != 0 || f.dropout != 0)
      params.insert(params.end(), {f.window, test::bits(f.cap)});
    if (f.dropout != 0)
      params.insert(params.end(), {test::bits(f.dropout), 6, f.heads});
    if (f.block > 0 && (f.dropout != 0 || function == LibraryFn::AttentionBackward))
      params.push_back(f.block);
    if (f.fast && function == LibraryFn::AttentionBackward)
      params.push_back(kFastGradient);
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
    if (a.slopes)
      put(*a.slopes, makeSlopes(numElements(a.b.program.buffers[*a.slopes])));
    if (a.generator)
      put(*a.generator, std::vector<int64_t>{-123456789012, 77});
  }

  /// Numbers, of which one in eight hides its key.
  static std::vector<float> makeMask(int64_t count, std::mt19937 &random) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float &value : values)
      value =
          random() % 8 == 0 ? -std::numeric_limits<float>::infinity() : static_cast<float>(random() % 9) / 4;
    return values;
  }

  /// As ALiBi's.
  static std::vector<float> makeSlopes(int64_t heads) {
    std::vector<float> values;
    for (int64_t h = 1; h <= heads; ++h)
      values.push_back(std::exp2(-static_cast<float>(h)));
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
    EXPECT_THAT(std::string(dsFakeCalls()), testing::HasSubstr(calls));
    const std::vector<float> expected = compute(f, /*cpu=*/true);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], 0.02 * (1 + std::abs(expected[i]))) << i;
  }
};

inline const std::string kTwice = "cudnnBackendExecute engine 2\ncudnnBackendExecute engine 2\n";

} // namespace ds::rt

#endif // DS_UNITTESTS_RUNTIME_CUDA_CUDAATTENTIONFIXTURE_H
