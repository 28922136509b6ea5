//===- MatmulTest.cpp - Matrix products through the oneDNN plugin --------------===//
//
// One-command programs against a loop in double: transposes, strides, batches, bias, accumulation,
// activation. The numbers are small integers, so every order of summation gives the same result and the
// comparison is exact.
//
//===---------------------------------------------------------------------------===//
#include "ProgramBuilder.h"

#include "Cpu/BlockedProduct.h"
#include "Program/Elements.h"
#include "ds/Runtime/Engine/Executor.h"
#include "ds/Runtime/Onednn/ProductBlocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace ds::rt {
namespace {

using test::ProgramBuilder;
using testing::HasSubstr;

/// One operand: its shape, the order of its dimensions in memory (outermost first) and a gap after each row.
struct Layout {
  std::vector<int64_t> shape;
  std::vector<size_t> order = {};
  int64_t gap = 0;
};

/// Places a buffer with the layout's strides.
uint32_t place(ProgramBuilder &b, const Layout &layout, DType dtype) {
  std::vector<size_t> order = layout.order;
  for (size_t d = 0; order.size() < layout.shape.size(); ++d)
    order.push_back(d);
  std::vector<int64_t> strides(layout.shape.size());
  int64_t size = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = size;
    size = size * layout.shape[order[i]] + (i == order.size() - 1 ? layout.gap : 0);
  }
  const uint32_t base = b.keep({size}, dtype);
  return b.view(base, 0, layout.shape, strides);
}

std::byte *locate(const Executor &executor, uint32_t buffer, const std::vector<int64_t> &index) {
  const Buffer &b = executor.program().buffers[buffer];
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d)
    offset += index[d] * b.strides[d];
  return static_cast<std::byte *>(executor.data(buffer)) + offset * byteSize(b.dtype);
}

double get(const Executor &executor, uint32_t buffer, const std::vector<int64_t> &index) {
  return loadElement(locate(executor, buffer, index), executor.program().buffers[buffer].dtype);
}

/// `value` as an element of `dtype` holds it.
double rounded(double value, DType dtype) {
  std::byte bytes[8];
  storeElement(bytes, dtype, value);
  return loadElement(bytes, dtype);
}

/// Calls f(index) for every index of `shape`.
template <class F>
void forEach(const std::vector<int64_t> &shape, F f) {
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t left = std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>()); left > 0;
       --left) {
    f(index);
    for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];)
      index[d] = 0;
  }
}

struct Case {
  const char *name;
  Layout a, b, result;
  bool transposeA = false, transposeB = false, accumulate = false, relu = false, bias = false;
  bool lacks = false; ///< a number of a and one of b are NaN
  size_t every = 1;   ///< of how many elements of the result one is compared
};

double expected(const Case &c, const Executor &e, uint32_t a, uint32_t b, const std::vector<int64_t> &index,
                double before, double bias) {
  const size_t rank = index.size();
  std::vector<int64_t> atA = index, atB = index;
  if (c.b.shape.size() == 2)
    atB = {index[rank - 2], index[rank - 1]};
  const int64_t depth = c.a.shape[c.transposeA ? rank - 2 : rank - 1];
  double sum = bias + (c.accumulate ? before : 0);
  for (int64_t k = 0; k < depth; ++k) {
    atA[rank - 2] = c.transposeA ? k : index[rank - 2];
    atA[rank - 1] = c.transposeA ? index[rank - 2] : k;
    atB[atB.size() - 2] = c.transposeB ? index[rank - 1] : k;
    atB[atB.size() - 1] = c.transposeB ? k : index[rank - 1];
    sum += get(e, a, atA) * get(e, b, atB);
  }
  return c.relu && sum <= 0 ? 0.0 : sum;
}

void check(const Case &c, DType type, DType resultType) {
  SCOPED_TRACE(testing::Message() << c.name << " of " << spell(type) << " to " << spell(resultType));
  ProgramBuilder b;
  const uint32_t left = place(b, c.a, type), right = place(b, c.b, type),
                 result = place(b, c.result, resultType);
  std::vector<uint32_t> operands{left, right, result};
  if (c.bias)
    operands.push_back(b.keep({c.result.shape.back()}, type));
  const std::vector<int64_t> params{c.transposeA, c.transposeB, c.accumulate, c.relu};
  const auto &buffers = b.program.buffers;
  const Result<uint64_t> bytes =
      productWorkspaceBytes(describeMatmul(buffers[left], buffers[right], buffers[result],
                                           c.bias ? &buffers[operands[3]] : nullptr, params.data()),
                            b.program.threads);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const uint32_t workspace = b.keep({std::max<int64_t>(1, static_cast<int64_t>(*bytes))}, DType::U8);
  b.library(LibraryFn::Matmul, operands, params).workspace = workspace;
  b.segment();
  ASSERT_TRUE(verifyProgram(b.program)) << verifyProgram(b.program).error().message;
  auto loaded = Executor::load(b.program);
  ASSERT_TRUE(loaded) << loaded.error().message;
  Executor &e = **loaded;
  std::mt19937 random(1);
  for (uint32_t operand : operands)
    forEach(b.program.buffers[operand].shape, [&](const std::vector<int64_t> &i) {
      storeElement(locate(e, operand, i), b.program.buffers[operand].dtype, int(random() % 9) - 4);
    });
  for (uint32_t operand : {left, right}) {
    const Buffer &buffer = b.program.buffers[operand];
    if (c.lacks)
      storeElement(locate(e, operand, std::vector<int64_t>(buffer.shape.size(), 1)), buffer.dtype,
                   std::nan(""));
  }
  std::vector<double> want;
  size_t number = 0;
  forEach(c.result.shape, [&](const std::vector<int64_t> &i) {
    if (number++ % c.every == 0)
      want.push_back(rounded(
          expected(c, e, left, right, i, get(e, result, i), c.bias ? get(e, operands[3], {i.back()}) : 0),
          resultType));
  });
  ASSERT_TRUE(e.run(0));
  if (!c.accumulate)
    ASSERT_TRUE(e.run(0)); // what the workspace holds from before means nothing
  size_t wrong = 0;
  number = 0;
  forEach(c.result.shape, [&](const std::vector<int64_t> &i) {
    const size_t at = number++;
    if (at % c.every != 0)
      return;
    const double found = get(e, result, i), wanted = want[at / c.every];
    wrong += std::isnan(wanted) ? !std::isnan(found) : found != wanted;
  });
  EXPECT_EQ(wrong, 0u) << "of " << want.size();
}

void check(const Case &c) {
  check(c, DType::F32, DType::F32);
  for (DType type : {DType::BF16, DType::F16})
    for (DType resultType : {type, DType::F32})
      check(c, type, resultType);
}

TEST(Matmul, Forms) {
  check({"plain", {{33, 20}}, {{20, 47}}, {{33, 47}}});
  check({.name = "x w^T", .a = {{33, 20}}, .b = {{47, 20}}, .result = {{33, 47}}, .transposeB = true});
  check({.name = "dy^T x", .a = {{33, 20}}, .b = {{33, 47}}, .result = {{20, 47}}, .transposeA = true});
  check({.name = "both transposed",
         .a = {{20, 33}},
         .b = {{47, 20}},
         .result = {{33, 47}},
         .transposeA = true,
         .transposeB = true});
  check({.name = "large", .a = {{256, 300}}, .b = {{300, 384}}, .result = {{256, 384}}, .every = 13});
}

TEST(Matmul, PostOperations) {
  const Layout a{{33, 20}}, w{{47, 20}}, y{{33, 47}};
  check({.name = "bias", .a = a, .b = w, .result = y, .transposeB = true, .bias = true});
  check({.name = "relu", .a = a, .b = w, .result = y, .transposeB = true, .relu = true});
  check({.name = "bias, relu", .a = a, .b = w, .result = y, .transposeB = true, .relu = true, .bias = true});
  check({.name = "accumulate", .a = a, .b = w, .result = y, .transposeB = true, .accumulate = true});
  check({.name = "all",
         .a = a,
         .b = w,
         .result = y,
         .transposeB = true,
         .accumulate = true,
         .relu = true,
         .bias = true});
}

/// Every number that a lost one reaches is lost, whatever comes after the product.
TEST(Matmul, ReluKeepsNaN) {
  check(
      {.name = "relu", .a = {{33, 20}}, .b = {{20, 47}}, .result = {{33, 47}}, .relu = true, .lacks = true});
  check({.name = "bias",
         .a = {{9, 4}},
         .b = {{4, 7}},
         .result = {{9, 7}},
         .relu = true,
         .bias = true,
         .lacks = true});
  check({.name = "gaps",
         .a = {{33, 20}},
         .b = {{20, 47}},
         .result = {{33, 47}, {}, 9},
         .relu = true,
         .lacks = true});
  check({.name = "by columns",
         .a = {{33, 20}},
         .b = {{20, 47}},
         .result = {{33, 47}, {1, 0}, 2},
         .relu = true,
         .lacks = true});
  check({.name = "batch",
         .a = {{2, 3, 20, 33}},
         .b = {{2, 3, 17, 20}},
         .result = {{2, 3, 33, 17}},
         .transposeA = true,
         .transposeB = true,
         .relu = true,
         .lacks = true});
}

TEST(Matmul, Strides) {
  check({.name = "gaps", .a = {{33, 20}, {}, 5}, .b = {{20, 47}, {}, 3}, .result = {{33, 47}, {}, 9}});
  check({.name = "a by columns", .a = {{33, 20}, {1, 0}}, .b = {{20, 47}}, .result = {{33, 47}}});
  check({.name = "result by columns", .a = {{33, 20}}, .b = {{20, 47}}, .result = {{33, 47}, {1, 0}}});
  check({.name = "result by columns, accumulated",
         .a = {{33, 20}},
         .b = {{20, 47}},
         .result = {{33, 47}, {1, 0}, 2},
         .accumulate = true});
  check({.name = "result by columns, bias",
         .a = {{9, 4}},
         .b = {{4, 7}},
         .result = {{9, 7}, {1, 0}},
         .bias = true});
}

TEST(Matmul, Batches) {
  check({.name = "one batch", .a = {{3, 33, 20}}, .b = {{3, 20, 17}}, .result = {{3, 33, 17}}});
  check({.name = "two, transposed",
         .a = {{2, 3, 20, 33}},
         .b = {{2, 3, 17, 20}},
         .result = {{2, 3, 33, 17}},
         .transposeA = true,
         .transposeB = true});
  check({.name = "heads inside rows",
         .a = {{2, 3, 33, 20}, {0, 2, 1, 3}},
         .b = {{2, 3, 20, 17}, {0, 2, 1, 3}},
         .result = {{2, 3, 33, 17}, {0, 2, 1, 3}}});
  check({.name = "folded", .a = {{2, 3, 33, 20}}, .b = {{20, 17}}, .result = {{2, 3, 33, 17}}, .bias = true});
  check({.name = "folded with gaps", .a = {{2, 3, 20}, {}, 4}, .b = {{20, 17}}, .result = {{2, 3, 17}}});
  check({.name = "cannot be folded", .a = {{4, 3, 20}, {1, 0, 2}}, .b = {{20, 17}}, .result = {{4, 3, 17}}});
}

TEST(Matmul, SizesOfOne) {
  check({"one row", {{1, 20}}, {{20, 17}}, {{1, 17}}});
  check({"one column", {{33, 20}}, {{20, 1}}, {{33, 1}}});
  check({"outer product", {{33, 1}}, {{1, 17}}, {{33, 17}}});
  check({.name = "outer product, transposed",
         .a = {{1, 33}},
         .b = {{17, 1}},
         .result = {{33, 17}},
         .transposeA = true,
         .transposeB = true});
  check({"one number", {{1, 1}}, {{1, 1}}, {{1, 1}}});
  check({.name = "batch of one", .a = {{1, 33, 20}}, .b = {{1, 20, 17}}, .result = {{1, 33, 17}}});
  check({.name = "one column by columns", .a = {{33, 1}, {1, 0}}, .b = {{1, 9}}, .result = {{33, 9}}});
}

TEST(Matmul, EmptyResultIsNothingToDo) { check({"no rows", {{0, 20}}, {{20, 17}}, {{0, 17}}}); }

/// More than one block in every direction, and last blocks that are smaller.
TEST(Matmul, Blocks) {
  const Layout a{{1030, 1040}}, w{{520, 1040}}, y{{1030, 520}};
  for (DType type : {DType::BF16, DType::F16})
    check({.name = "rows, columns and depth",
           .a = a,
           .b = w,
           .result = y,
           .transposeB = true,
           .bias = true,
           .every = 331},
          type, type);
}

/// The plan holds what the blocks need, or the program is refused: there is no other memory.
TEST(Matmul, NeedsThePlannedBlocks) {
  ProgramBuilder b;
  const uint32_t x = b.keep({32, 32}, DType::F16), w = b.keep({32, 32}, DType::F16),
                 y = b.keep({32, 32}, DType::F16), workspace = b.keep({4096}, DType::U8);
  b.library(LibraryFn::Matmul, {x, w, y}, {0, 0, 0, 0}).workspace = workspace;
  b.segment();
  EXPECT_THAT(describeNarrowProducts(b.program), testing::StartsWith("f16 as f32, block by block"));
  EXPECT_EQ(describeNarrowProducts(ProgramBuilder().program), "");
  auto loaded = Executor::load(b.program);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ExitCode::Device);
  EXPECT_THAT(loaded.error().message, HasSubstr("is a f16 product without instructions for it: it needs"));
}

TEST(Matmul, AsksForTheWorkspaceThatItUses) {
  ProgramBuilder b;
  const uint32_t x = b.keep({512, 512}), w = b.keep({512, 512}), y = b.keep({512, 512});
  const int64_t params[] = {1, 0, 0, 0};
  const auto &buffers = b.program.buffers;
  Result<uint64_t> bytes = matmulScratchpadBytes(
      describeMatmul(buffers[x], buffers[w], buffers[y], nullptr, params), b.program.threads);
  ASSERT_TRUE(bytes) << bytes.error().message;
  if (*bytes == 0)
    GTEST_SKIP() << "oneDNN takes no workspace for this product on this processor";
  auto load = [&](uint64_t planned) {
    ProgramBuilder copy = b;
    const uint32_t workspace = copy.keep({static_cast<int64_t>(planned)}, DType::U8);
    copy.library(LibraryFn::Matmul, {x, w, y}, {1, 0, 0, 0}).workspace = workspace;
    copy.segment();
    return Executor::load(copy.program);
  };
  auto enough = load(*bytes);
  ASSERT_TRUE(enough) << enough.error().message;
  EXPECT_TRUE((*enough)->run(0));
  // Another implementation may do with less; the first choice may not be taken.
  const MatmulDesc desc = describeMatmul(buffers[x], buffers[w], buffers[y], nullptr, params);
  const MatmulMemory none{};
  char message[256] = "";
  const OnednnApi &api = **openOnednn();
  MatmulPrimitive *first = api.create(&desc, b.program.threads, *bytes, &none, message, sizeof message);
  ASSERT_TRUE(first) << message;
  if (MatmulPrimitive *lean = api.create(&desc, b.program.threads, 0, &none, message, sizeof message)) {
    EXPECT_STRNE(api.implementation(lean), api.implementation(first));
    api.destroy(lean);
  } else {
    EXPECT_THAT(message, HasSubstr("bytes of workspace, but 0 are planned"));
  }
  api.destroy(first);
}

TEST(Matmul, NamesATypeThatItDoesNotMultiply) {
  MatmulDesc desc{};
  desc.rank = 2;
  desc.a.dtype = static_cast<int32_t>(DType::I64);
  desc.bias = -1;
  Result<uint64_t> bytes = matmulScratchpadBytes(desc, 2);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ExitCode::Device);
  EXPECT_THAT(bytes.error().message, HasSubstr("in i64 are not supported"));
}

} // namespace
} // namespace ds::rt
