//===- LoopNestTest.cpp - Loops that kernels get -------------------------------===//

#include "../../lib/Codegen/LoopNest.h"
#include "mlir/Parser/Parser.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir::ds::codegen;

namespace {

/// The nest of a kernel with contiguous operands.
class ParsedNest {
public:
  ParsedNest(const std::string &arguments, const std::string &lines) {
    context.loadDialect<mlir::ds::DsDialect>();
    std::string text = "ds.kernel @k inputs 0 buffers [] {\n^bb0(" + arguments + "):\n" + lines + "\n}";
    mlir::ParserConfig config(&context, /*verifyAfterParse=*/false);
    module = mlir::parseSourceString<mlir::ModuleOp>(text, config);
    EXPECT_TRUE(module) << text;
    mlir::Block &block = (*module->getOps<mlir::ds::KernelOp>().begin()).getBody().front();
    for (mlir::Operation &op : block.without_terminator())
      body.ops.push_back(&op);
    llvm::append_range(body.outputs, block.getTerminator()->getOperands());
  }
  std::unique_ptr<LoopNest> nest(const IndexRange *window = nullptr) {
    std::string reason;
    auto result = buildLoopNest(body, nullptr, reason, window);
    EXPECT_TRUE(result) << reason;
    return result;
  }

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Body body;
};

/// True when every load takes consecutive lanes, or one element for all.
bool loadsAreConsecutive(const LoopNest &nest) {
  return llvm::all_of(nest.graph->allNodes(), [&](const Node &node) {
    return node.kind != Node::Kind::Load ||
           (isLinearIn(node.index, *nest.vectorDim) && linearCoefficient(node.index, *nest.vectorDim) <= 1);
  });
}

TEST(LoopNest, JoinsWhatAddressesWalkAsOne) {
  ParsedNest add("%a: tensor<4x5x6xf32>, %b: tensor<4x5x6xf32>", R"(
    %r = ds.add %a, %b : tensor<4x5x6xf32>
    ds.yield %r : tensor<4x5x6xf32>)");
  EXPECT_THAT(add.nest()->space.sizes, testing::ElementsAre(120));
  // A bias over the last dimension keeps it apart; 4 * 5 = 20 rows.
  ParsedNest bias("%a: tensor<4x5x6xf32>, %b: tensor<6xf32>", R"(
    %w = ds.broadcast %b dims [2] : tensor<6xf32> -> tensor<4x5x6xf32>
    %r = ds.add %a, %w : tensor<4x5x6xf32>
    ds.yield %r : tensor<4x5x6xf32>)");
  EXPECT_THAT(bias.nest()->space.sizes, testing::ElementsAre(20, 6));
}

TEST(LoopNest, ReshapesCostNothing) {
  ParsedNest parsed("%a: tensor<6x8xf32>, %b: tensor<2x24xf32>", R"(
    %f = ds.reshape %b : tensor<2x24xf32> -> tensor<6x8xf32>
    %s = ds.add %a, %f : tensor<6x8xf32>
    %r = ds.reshape %s : tensor<6x8xf32> -> tensor<4x3x4xf32>
    ds.yield %r : tensor<4x3x4xf32>)");
  auto nest = parsed.nest();
  EXPECT_THAT(nest->space.sizes, testing::ElementsAre(48));
  EXPECT_TRUE(loadsAreConsecutive(*nest));
}

TEST(LoopNest, CutsConcatenationsBetweenPieces) {
  ParsedNest parsed("%a: tensor<7x32xf32>, %b: tensor<7x16xf32>, %c: tensor<7x48xf32>", R"(
    %r = ds.concat %a, %b, %c dim 1 : tensor<7x32xf32>, tensor<7x16xf32>, tensor<7x48xf32> -> tensor<7x96xf32>
    %e = ds.exp %r : tensor<7x96xf32>
    ds.yield %e : tensor<7x96xf32>)");
  auto whole = parsed.nest();
  EXPECT_THAT(whole->cuts, testing::ElementsAre(32, 48));
  for (IndexRange window : {IndexRange{0, 31}, IndexRange{32, 47}, IndexRange{48, 95}}) {
    auto piece = parsed.nest(&window);
    EXPECT_TRUE(piece->cuts.empty());
    EXPECT_TRUE(loadsAreConsecutive(*piece));
    EXPECT_TRUE(
        llvm::none_of(piece->graph->allNodes(), [](const Node &n) { return n.kind == Node::Kind::Guard; }));
  }
}

TEST(LoopNest, CutsPadsAtTheWindow) {
  ParsedNest parsed("%a: tensor<7x32xf32>", R"(
    %r = ds.pad %a offsets [0, 10] strides [1, 1] : tensor<7x32xf32> -> tensor<7x64xf32>
    ds.yield %r : tensor<7x64xf32>)");
  EXPECT_THAT(parsed.nest()->cuts, testing::ElementsAre(10, 42)); // 10 + 32 = 42
}

TEST(LoopNest, SharedValuesAreOneNode) {
  ParsedNest parsed("%a: tensor<8xf32>", R"(
    %e = ds.exp %a : tensor<8xf32>
    %x = ds.add %e, %e : tensor<8xf32>
    %y = ds.mul %x, %e : tensor<8xf32>
    ds.yield %y : tensor<8xf32>)");
  auto nest = parsed.nest();
  EXPECT_EQ(nest->graph->allNodes().size(), 4u); // the load, exp, add, mul
}

TEST(LoopNest, RowsWithTwoReducedRunsKeepBoth) {
  // Channel statistics of an image batch: the kept channel lies between the reduced batch and the joined 5
  // * 6.
  ParsedNest parsed("%a: tensor<3x4x5x6xf32>", R"(
    %r = ds.reduce sum %a dims [0, 2, 3] : tensor<3x4x5x6xf32> -> tensor<4xf32>
    ds.yield %r : tensor<4xf32>)");
  auto nest = parsed.nest();
  EXPECT_THAT(nest->space.sizes, testing::ElementsAre(3, 4, 30));
  EXPECT_EQ(nest->kind, mlir::ds::KernelKind::Row);
  EXPECT_EQ(nest->countOuter(true), 3);
  EXPECT_EQ(nest->countOuter(false), 4);
}

/// The sum over a last dimension of 3 of a tensor whose memory runs along the dimension before.
TEST(LoopNest, VectorsRunWhereMemoryDoes) {
  ParsedNest parsed("%a: tensor<3x4x32xf32>", R"(
    %t = ds.transpose %a perm [1, 2, 0] : tensor<3x4x32xf32> -> tensor<4x32x3xf32>
    %r = ds.reduce sum %t dims [2] : tensor<4x32x3xf32> -> tensor<4x32xf32>
    ds.yield %r : tensor<4x32xf32>)");
  auto nest = parsed.nest();
  EXPECT_THAT(nest->space.sizes, testing::ElementsAre(128, 3));
  EXPECT_EQ(nest->kind, mlir::ds::KernelKind::Column);
  EXPECT_TRUE(loadsAreConsecutive(*nest));
}

} // namespace
