//===- KernelClassTest.cpp - Which bodies one kernel computes ------------------===//

#include "ds/Codegen/KernelClass.h"
#include "KernelHarness.h"
#include "mlir/Parser/Parser.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ds::test;
using mlir::ds::KernelKind;

namespace {

/// The body of a kernel given as arguments and lines; classification never looks at buffers.
class ParsedBody {
public:
  ParsedBody(const std::string &arguments, const std::string &lines) {
    context.loadDialect<mlir::ds::DsDialect>();
    std::string text = "ds.kernel @k inputs 0 buffers [] {\n^bb0(" + arguments + "):\n" + lines + "\n}";
    mlir::ParserConfig config(&context, /*verifyAfterParse=*/false);
    module = mlir::parseSourceString<mlir::ModuleOp>(text, config);
    EXPECT_TRUE(module) << text;
  }
  mlir::Block &block() { return (*module->getOps<mlir::ds::KernelOp>().begin()).getBody().front(); }
  mlir::ds::KernelClass accepted() {
    mlir::ds::KernelClass result;
    std::string reason;
    EXPECT_TRUE(succeeded(mlir::ds::classify(block(), result, &reason))) << reason;
    return result;
  }
  std::string refusal() {
    mlir::ds::KernelClass result;
    std::string reason;
    EXPECT_TRUE(failed(mlir::ds::classify(block(), result, &reason)));
    return reason;
  }

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

const char *kSoftmax = R"(
  %m = ds.reduce max %x dims [1] : tensor<64x128xf32> -> tensor<64xf32>
  %mb = ds.broadcast %m dims [0] : tensor<64xf32> -> tensor<64x128xf32>
  %d = ds.sub %x, %mb : tensor<64x128xf32>
  %e = ds.exp %d : tensor<64x128xf32>
  %s = ds.reduce sum %e dims [1] : tensor<64x128xf32> -> tensor<64xf32>
  %sb = ds.broadcast %s dims [0] : tensor<64xf32> -> tensor<64x128xf32>
  %r = ds.div %e, %sb : tensor<64x128xf32>
  ds.yield %r : tensor<64x128xf32>)";

TEST(KernelClass, SoftmaxIsRows) {
  mlir::ds::KernelClass result = ParsedBody("%x: tensor<64x128xf32>", kSoftmax).accepted();
  EXPECT_EQ(result.kind, KernelKind::Row);
  EXPECT_EQ(result.extent, 64); // one unit a row
}

TEST(KernelClass, PointwiseJoinsDimensions) {
  mlir::ds::KernelClass result = ParsedBody("%x: tensor<4x5x6xf32>", R"(
    %r = ds.exp %x : tensor<4x5x6xf32>
    ds.yield %r : tensor<4x5x6xf32>)")
                                     .accepted();
  EXPECT_EQ(result.kind, KernelKind::Pointwise);
  EXPECT_EQ(result.extent, 120); // 4 * 5 * 6 elements in a row
}

TEST(KernelClass, BiasGradientIsColumns) {
  mlir::ds::KernelClass result = ParsedBody("%x: tensor<4x256x1536xf32>", R"(
    %r = ds.reduce sum %x dims [0, 1] : tensor<4x256x1536xf32> -> tensor<1536xf32>
    ds.yield %r : tensor<1536xf32>)")
                                     .accepted();
  EXPECT_EQ(result.kind, KernelKind::Column);
  EXPECT_EQ(result.extent, 24); // blocks of 4 vectors of 16 columns
}

TEST(KernelClass, UnknownSizesAreElements) {
  mlir::ds::KernelClass result = ParsedBody("%x: tensor<?xf32>", R"(
    %r = ds.exp %x : tensor<?xf32>
    ds.yield %r : tensor<?xf32>)")
                                     .accepted();
  EXPECT_EQ(result.extent, 0);
}

TEST(KernelClass, RefusesRowsWithColumns) {
  EXPECT_THAT(ParsedBody("%x: tensor<64x128xf32>", R"(
    %a = ds.reduce sum %x dims [1] : tensor<64x128xf32> -> tensor<64xf32>
    %b = ds.reduce sum %x dims [0] : tensor<64x128xf32> -> tensor<128xf32>
    ds.yield %a, %b : tensor<64xf32>, tensor<128xf32>)")
                  .refusal(),
              testing::HasSubstr("as many elements as neither the anchor nor its kept dimensions"));
}

TEST(KernelClass, RefusesReductionsOfDifferentLengths) {
  EXPECT_THAT(ParsedBody("%x: tensor<64x128xf32>, %y: tensor<64x32xf32>", R"(
    %a = ds.reduce sum %x dims [1] : tensor<64x128xf32> -> tensor<64xf32>
    %b = ds.reduce sum %y dims [1] : tensor<64x32xf32> -> tensor<64xf32>
    ds.yield %a, %b : tensor<64xf32>, tensor<64xf32>)")
                  .refusal(),
              testing::HasSubstr("different numbers of elements"));
}

TEST(KernelClass, RefusesReductionPerElement) {
  EXPECT_THAT(ParsedBody("%x: tensor<8x8xf32>", R"(
    %a = ds.reduce sum %x dims [0] : tensor<8x8xf32> -> tensor<8xf32>
    %b = ds.broadcast %a dims [1] : tensor<8xf32> -> tensor<8x8xf32>
    %c = ds.reduce sum %b dims [1] : tensor<8x8xf32> -> tensor<8xf32>
    %d = ds.reduce sum %x dims [1] : tensor<8x8xf32> -> tensor<8xf32>
    %e = ds.add %c, %d : tensor<8xf32>
    ds.yield %e : tensor<8xf32>)")
                  .refusal(),
              testing::HasSubstr("a reduction for every element of another reduction"));
}

TEST(KernelClass, RefusesRankTwoOfUnknownSize) {
  EXPECT_THAT(ParsedBody("%x: tensor<?x4xf32>", R"(
    %r = ds.exp %x : tensor<?x4xf32>
    ds.yield %r : tensor<?x4xf32>)")
                  .refusal(),
              testing::HasSubstr("rank > 1 with unknown sizes"));
}

//===----------------------------------------------------------------------===//
// Sharing memory
//===----------------------------------------------------------------------===//

TEST(MayShareMemory, SoftmaxMayOverwriteItsInput) {
  EXPECT_TRUE(mlir::ds::mayShareMemory(ParsedBody("%x: tensor<64x128xf32>", kSoftmax).block(), 0, 0));
}

TEST(MayShareMemory, TransposeBehindElementwiseMayNot) {
  ParsedBody body("%x: tensor<8x8xf32>", R"(
    %e = ds.exp %x : tensor<8x8xf32>
    %r = ds.transpose %e perm [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
    ds.yield %r : tensor<8x8xf32>)");
  EXPECT_FALSE(mlir::ds::mayShareMemory(body.block(), 0, 0));
}

TEST(MayShareMemory, RepeatedRowMayNot) {
  ParsedBody body("%x: tensor<8x8xf32>, %y: tensor<8x8xf32>", R"(
    %s = ds.slice %x offsets [0, 0] strides [1, 1] : tensor<8x8xf32> -> tensor<1x8xf32>
    %b = ds.broadcast %s dims [0, 1] : tensor<1x8xf32> -> tensor<8x8xf32>
    %r = ds.add %b, %y : tensor<8x8xf32>
    ds.yield %r : tensor<8x8xf32>)");
  EXPECT_FALSE(mlir::ds::mayShareMemory(body.block(), 0, 0));
  EXPECT_TRUE(mlir::ds::mayShareMemory(body.block(), 1, 0));
}

TEST(MayShareMemory, ReshapeThereAndBackMay) {
  ParsedBody body("%x: tensor<6x8xf32>", R"(
    %f = ds.reshape %x : tensor<6x8xf32> -> tensor<48xf32>
    %e = ds.exp %f : tensor<48xf32>
    %r = ds.reshape %e : tensor<48xf32> -> tensor<6x8xf32>
    ds.yield %r : tensor<6x8xf32>)");
  EXPECT_TRUE(mlir::ds::mayShareMemory(body.block(), 0, 0));
}

} // namespace
