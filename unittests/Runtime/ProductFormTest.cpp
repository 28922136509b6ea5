//===- ProductFormTest.cpp - Products made in every form ------------------------===//
//
// Numbers are small integers: sums are exact in any order, so every form must give the bits of the usual one.
//
//===---------------------------------------------------------------------------===//
#include "ProgramBuilder.h"

#include "Program/Elements.h"
#include "ds/Runtime/Engine/Executor.h"
#include "ds/Runtime/Onednn/ProductBlocks.h"
#include "ds/Runtime/Onednn/ProductTuning.h"
#include "ds/Runtime/Process/CpuFeatures.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>

namespace ds::rt {
namespace {

using test::ProgramBuilder;
using testing::HasSubstr;

constexpr int64_t kRows = 200, kColumns = 170, kDepth = 330;

struct Case {
  DType type, resultType;
  bool transposeA = false, transposeB = false, accumulate = false, relu = false, bias = false;
  int64_t rows = kRows, columns = kColumns, depth = kDepth;
};

MatmulDesc describe(const ProgramBuilder &b, const std::vector<uint32_t> &operands,
                    const std::vector<int64_t> &params) {
  const auto &buffers = b.program.buffers;
  return describeMatmul(buffers[operands[0]], buffers[operands[1]], buffers[operands[2]],
                        operands.size() > 3 ? &buffers[operands[3]] : nullptr, params.data());
}

/// Keeps the operands of the product, whose params are returned.
std::vector<int64_t> addOperands(ProgramBuilder &b, const Case &c, std::vector<uint32_t> &operands) {
  operands = {
      b.keep(c.transposeA ? std::vector{c.depth, c.rows} : std::vector{c.rows, c.depth}, c.type),
      b.keep(c.transposeB ? std::vector{c.columns, c.depth} : std::vector{c.depth, c.columns}, c.type),
      b.keep({c.rows, c.columns}, c.resultType)};
  if (c.bias)
    operands.push_back(b.keep({c.columns}, c.type));
  return {c.transposeA, c.transposeB, c.accumulate, c.relu};
}

/// A program of one product in `form`, with the workspace that the form asks for.
Result<std::unique_ptr<Executor>> load(const Case &c, const ProductForm &form,
                                       std::vector<uint32_t> &operands) {
  ProgramBuilder b;
  std::vector<int64_t> params = addOperands(b, c, operands);
  Result<uint64_t> bytes = productWorkspaceBytes(describe(b, operands, params), b.program.threads, form);
  if (!bytes)
    return bytes.error();
  const uint32_t workspace = b.keep({std::max<int64_t>(1, static_cast<int64_t>(*bytes))}, DType::U8);
  for (int64_t param : paramsOf(form))
    params.push_back(param);
  b.library(LibraryFn::Matmul, operands, params).workspace = workspace;
  b.segment();
  if (Status status = verifyProgram(b.program); !status)
    return status.error();
  return Executor::load(b.program);
}

/// The bytes of the result.
std::vector<std::byte> make(const Case &c, const ProductForm &form) {
  std::vector<uint32_t> operands;
  auto loaded = load(c, form, operands);
  if (!loaded) {
    ADD_FAILURE() << loaded.error().message;
    return {};
  }
  Executor &e = **loaded;
  uint32_t number = 0;
  for (uint32_t operand : operands) {
    const Buffer &buffer = e.program().buffers[operand];
    auto *data = static_cast<std::byte *>(e.data(operand));
    for (size_t i = 0; i < static_cast<size_t>(numElements(buffer)); ++i)
      storeElement(data + i * byteSize(buffer.dtype), buffer.dtype, int(number++ * 2654435761u >> 28) - 8);
  }
  EXPECT_TRUE(e.run(0));
  const auto *data = static_cast<const std::byte *>(e.data(operands[2]));
  return {data, data + extentBytes(e.program().buffers[operands[2]])};
}

/// Parts of every direction, alone and together, and blocks, the last ones smaller.
std::vector<ProductForm> allForms() {
  std::vector<ProductForm> forms;
  for (const ProductKind kind :
       {ProductKind::Native, ProductKind::Widened, ProductKind::Packed, ProductKind::Padded})
    forms.push_back({kind, 0, 0, 0});
  for (const ProductKind kind : {ProductKind::Plain, ProductKind::Native, ProductKind::Widened,
                                 ProductKind::Packed, ProductKind::Padded})
    for (const ProductForm &sizes : {ProductForm{kind, 64, 0, 0},
                                     {kind, 0, 64, 0},
                                     {kind, 0, 0, 128},
                                     {kind, 128, 128, 0},
                                     {kind, 128, 64, 128}})
      forms.push_back(sizes);
  return forms;
}

/// Makes the product in all of `forms` that it has, at least `least`.
void check(const Case &c, const std::vector<ProductForm> &forms, int least) {
  ProgramBuilder b;
  std::vector<uint32_t> operands;
  const std::vector<int64_t> params = addOperands(b, c, operands);
  const MatmulDesc desc = describe(b, operands, params);
  const std::vector<std::byte> usual = make(c, {});
  int made = 0;
  for (const ProductForm &form : forms) {
    if (!whyNot(desc, form).empty())
      continue;
    EXPECT_EQ(make(c, form), usual) << spell(form) << " of " << spell(c.type) << " to "
                                    << spell(c.resultType);
    ++made;
  }
  EXPECT_GE(made, least);
}

void check(const Case &c) { check(c, allForms(), c.type == DType::F32 ? 5 : 8); }

/// Whether oneDNN multiplies `type` here in forms of its own: numbers of 16 bits from AVX-512 on.
bool hasForms(DType type) { return type == DType::F32 || hasCpuFeature("avx512bw"); }

TEST(ProductForm, EveryFormGivesTheSameNumbers) {
  for (const auto &[type, resultType] : {std::pair(DType::F32, DType::F32),
                                         {DType::BF16, DType::BF16},
                                         {DType::BF16, DType::F32},
                                         {DType::F16, DType::F16}})
    for (const bool transpose : {false, true})
      if (hasForms(type))
        check({.type = type, .resultType = resultType, .transposeA = transpose, .transposeB = !transpose});
}

TEST(ProductForm, BiasSumsAndReluComeOnce) {
  for (const DType type : {DType::F32, DType::BF16}) {
    if (!hasForms(type))
      continue;
    check({.type = type, .resultType = DType::F32, .accumulate = true, .bias = true});
    check({.type = type, .resultType = type, .relu = true, .bias = true});
  }
}

TEST(ProductForm, CopiedOperandsGiveTheSameNumbers) {
  const std::vector<ProductForm> forms = {{ProductKind::Packed, 0, 0, 0},
                                          {ProductKind::Packed, 512, 0, 0},
                                          {ProductKind::Padded, 0, 0, 0},
                                          {ProductKind::Padded, 0, 0, 512}};
  // Rows of 1024 floats, or of 2048 elements of 16 bits, are a page.
  for (const bool transposeA : {false, true})
    for (const bool transposeB : {false, true})
      check({.type = DType::F32,
             .resultType = DType::F32,
             .transposeA = transposeA,
             .transposeB = transposeB,
             .accumulate = transposeA,
             .bias = !transposeB,
             .rows = 1024,
             .columns = 70,
             .depth = 1024},
            forms, 4);
  if (hasForms(DType::BF16))
    check({.type = DType::BF16, .resultType = DType::F32, .rows = 70, .columns = 2048, .depth = 90}, forms,
          4);
}

/// The workspace of a product in a form.
uint64_t workspaceOf(const Case &c, const ProductForm &form) {
  ProgramBuilder b;
  std::vector<uint32_t> operands;
  const std::vector<int64_t> params = addOperands(b, c, operands);
  return *productWorkspaceBytes(describe(b, operands, params), 2, form);
}

TEST(ProductForm, CopiesArePlanned) {
  if (!hasCpuFeature("avx512bw"))
    GTEST_SKIP() << "without AVX-512 oneDNN has another order of its own";
  const Case pages{.type = DType::F32, .resultType = DType::F32, .rows = 64, .columns = 1024, .depth = 330};
  // Of two operands the second has rows of a page: 330 of them, a cache line longer. The library reads them
  // as they lie or in its own order, where columns come in blocks.
  EXPECT_GE(workspaceOf(pages, {ProductKind::Padded, 0, 0, 0}), 330u * (1024 + 16) * 4 - 64);
  EXPECT_GE(workspaceOf(pages, {ProductKind::Packed, 0, 0, 0}), 330u * 1024 * 4);
  EXPECT_LT(workspaceOf(pages, {}), 330u * 1024 * 4);
}

TEST(ProductForm, PartsCoverTheProductOnce) {
  ProgramBuilder b;
  const std::vector<uint32_t> operands = {b.keep({kRows, kDepth}), b.keep({kDepth, kColumns}),
                                          b.keep({kRows, kColumns}), b.keep({kColumns})};
  const MatmulDesc desc = describe(b, operands, {0, 0, 0, 0});
  // 200 rows in at most 128: two of at most 128, the even part of 100 rounded up; 330 deep: three of 128.
  const std::vector<ProductPart> parts = partsOf(desc, {ProductKind::Plain, 128, 0, 128});
  ASSERT_EQ(parts.size(), 6u);
  EXPECT_EQ(parts[0].desc.a.shape[0], 128);
  EXPECT_EQ(parts[3].desc.a.shape[0], 72); // 200 - 128
  EXPECT_EQ(parts[2].desc.a.shape[1], 74); // 330 - 2 * 128
  EXPECT_EQ(parts[3].result, 128 * kColumns);
  EXPECT_EQ(parts[1].b, 128 * kColumns);
  EXPECT_EQ(parts[0].desc.bias, static_cast<int32_t>(DType::F32));
  EXPECT_EQ(parts[1].desc.bias, -1);
  EXPECT_EQ(parts[0].desc.accumulate, 0);
  EXPECT_EQ(parts[1].desc.accumulate, 1);
}

TEST(ProductForm, RefusesWhatWouldChangeTheNumbers) {
  std::vector<uint32_t> operands;
  auto rounding = load({DType::BF16, DType::BF16}, {ProductKind::Plain, 0, 0, 128}, operands);
  ASSERT_FALSE(rounding);
  EXPECT_EQ(rounding.error().code, ExitCode::Corrupt);
  EXPECT_THAT(rounding.error().message, HasSubstr("round a 16-bit result between them"));
  auto widened = load({DType::F32, DType::F32}, {ProductKind::Widened, 0, 0, 0}, operands);
  ASSERT_FALSE(widened);
  EXPECT_THAT(widened.error().message, HasSubstr("neither native nor widened"));
  auto padded = load({DType::F32, DType::F32}, {ProductKind::Padded, 0, 0, 0}, operands);
  ASSERT_FALSE(padded);
  EXPECT_THAT(padded.error().message, HasSubstr("no operand has rows of whole pages"));
  auto packed = load({DType::F16, DType::F16}, {ProductKind::Packed, 0, 0, 0}, operands);
  EXPECT_FALSE(packed);
  auto native = load({DType::F16, DType::F16}, {ProductKind::Native, 0, 0, 0}, operands);
  EXPECT_FALSE(native);
}

TEST(ProductForm, ARecomputedProductHasTheSameKey) {
  ProgramBuilder b;
  const uint32_t a = b.keep({kRows, kDepth}), w = b.keep({kColumns, kDepth}), y = b.keep({kRows, kColumns}),
                 wide = b.keep({kRows, 2 * kColumns});
  const uint32_t piece = b.view(wide, 0, {kRows, kColumns}, {2 * kColumns, 1});
  const std::string key = productKey(describe(b, {a, w, y}, {0, 1, 0, 0}));
  EXPECT_EQ(key, "f32 to f32: 1 x 200 x 170 x 330, by rows, columns");
  EXPECT_EQ(productKey(describe(b, {a, w, piece}, {0, 1, 0, 0})), key);
  EXPECT_EQ(productKey(describe(b, {a, w, y}, {0, 1, 1, 0})), key);
}

TEST(ProductForm, ATuningIsReadAsItWasWritten) {
  const std::string path = testing::TempDir() + "product-tuning.json";
  ProductTuning tuning{"a processor", "2026-01-02", 2, {}};
  tuning.products["f32 to f32: 1 x 2 x 3 x 4, by rows, rows"] = {{ProductKind::Plain, 0, 0, 3072}, 0.5, 0.75};
  std::ofstream(path) << printTuning(tuning);
  const Result<ProductTuning> read = readTuning(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(printTuning(*read), printTuning(tuning));
  for (const char *text : {"", "[]", "{\"product_tuning\": 2}", "{\"product_tuning\": 1, \"threads\": 2}",
                           "{\"product_tuning\": 1, \"threads\": 2, \"products\": {\"x\": {\"kind\": 9}}}"}) {
    std::ofstream(path) << text;
    const Result<ProductTuning> broken = readTuning(path);
    ASSERT_FALSE(broken) << text;
    EXPECT_EQ(broken.error().code, ExitCode::Usage);
  }
  std::remove(path.c_str());
}

} // namespace
} // namespace ds::rt
