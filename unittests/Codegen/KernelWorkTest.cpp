//===- KernelWorkTest.cpp - The arithmetic of a fused body ------------------------===//

#include "ds/Codegen/KernelWork.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

namespace {

using Work = mlir::ds::KernelWork;

/// The work of a body over arguments.
Work workOf(const std::string &arguments, const std::string &lines, int64_t extent = 1) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::ds::DsDialect>();
  std::string text = "ds.kernel @k inputs 0 buffers [] {\n^bb0(" + arguments + "):\n" + lines + "\n}";
  mlir::ParserConfig config(&context, /*verifyAfterParse=*/false);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, config);
  EXPECT_TRUE(module) << text;
  return mlir::ds::kernelWork(*module->getOps<mlir::ds::KernelOp>().begin(), extent);
}

TEST(KernelWork, CountsAdditionsAndWhatFunctionsTake) {
  const char *argument = "%x: tensor<8x4xf32>";
  EXPECT_EQ(workOf(argument, "%r = ds.add %x, %x : tensor<8x4xf32>\n ds.yield %r : tensor<8x4xf32>"),
            Work{32});
  EXPECT_EQ(workOf(argument, "%r = ds.exp %x : tensor<8x4xf32>\n ds.yield %r : tensor<8x4xf32>"),
            Work{32 * 40});
  EXPECT_EQ(workOf(argument, "%r = ds.tanh %x : tensor<8x4xf32>\n ds.yield %r : tensor<8x4xf32>"),
            (Work{32 * 36, 32}));
  EXPECT_EQ(workOf(argument, "%r = ds.sqrt %x : tensor<8x4xf32>\n ds.yield %r : tensor<8x4xf32>"),
            (Work{0, 0, 32}));
  // 1 / (1 + exp(-x)): a sign, an exponential, an addition, a division; constants cost nothing.
  EXPECT_EQ(workOf(argument, "%r = ds.sigmoid %x : tensor<8x4xf32>\n ds.yield %r : tensor<8x4xf32>"),
            (Work{32 * (1 + 40 + 1), 32}));
  // 0.5 x (1 + tanh(k (x + c x^3))): eight simple operations around the function, as they would be spelled.
  EXPECT_EQ(workOf(argument, "%r = ds.gelu tanh %x : tensor<8x4xf32>\n ds.yield %r : tensor<8x4xf32>"),
            (Work{32 * (8 + 36), 32}));
  // A reshape moves nothing.
  EXPECT_EQ(workOf(argument,
                   "%r = ds.reshape %x : tensor<8x4xf32> -> tensor<32xf32>\n ds.yield %r : tensor<32xf32>"),
            Work());
}

TEST(KernelWork, UnknownSizesAreTheLaunchs) {
  EXPECT_EQ(
      workOf("%x: tensor<?xf32>", "%r = ds.mul %x, %x : tensor<?xf32>\n ds.yield %r : tensor<?xf32>", 1000),
      Work{1000});
}

TEST(KernelWork, EachPassOverARowComputesItsOwn) {
  // exp(x) / sum(exp(x)): the sum's pass and the output's pass both need the exponential.
  Work work = workOf("%x: tensor<4x16xf32>", R"(
    %e = ds.exp %x : tensor<4x16xf32>
    %s = ds.reduce sum %e dims [1] : tensor<4x16xf32> -> tensor<4xf32>
    %b = ds.broadcast %s dims [0] : tensor<4xf32> -> tensor<4x16xf32>
    %r = ds.div %e, %b : tensor<4x16xf32>
    ds.yield %r : tensor<4x16xf32>)");
  EXPECT_EQ(work, (Work{64 * (40 + 1) + 64 * 40, 64, 0, 4}));
}

TEST(KernelWork, RowsOfALevelAreAddedUpSideBySide) {
  // Two sums of a row at once, a third that waits for them: each row is waited for twice.
  Work work = workOf("%x: tensor<4x16xf32>", R"(
    %s = ds.reduce sum %x dims [1] : tensor<4x16xf32> -> tensor<4xf32>
    %m = ds.reduce max %x dims [1] : tensor<4x16xf32> -> tensor<4xf32>
    %t = ds.add %s, %m : tensor<4xf32>
    %b = ds.broadcast %t dims [0] : tensor<4xf32> -> tensor<4x16xf32>
    %d = ds.sub %x, %b : tensor<4x16xf32>
    %r = ds.reduce sum %d dims [1] : tensor<4x16xf32> -> tensor<4xf32>
    ds.yield %r : tensor<4xf32>)");
  EXPECT_EQ(work.rows, 2 * 4);
  // Columns need no sum across lanes.
  EXPECT_EQ(workOf("%x: tensor<4x16xf32>", R"(
    %s = ds.reduce sum %x dims [0] : tensor<4x16xf32> -> tensor<16xf32>
    ds.yield %s : tensor<16xf32>)")
                .rows,
            0);
}

} // namespace
