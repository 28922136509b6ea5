//===- LayerTest.cpp - Layers by the names that models give them -----------------------===//
#include "ds/Dialect/Work.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::ds;

namespace {
class Layer : public testing::Test {
protected:
  Layer() { context.loadDialect<DsDialect>(); }

  /// That `name` is the `part` of layer `number` of `stack`.
  void expect(StringRef name, StringRef stack, std::optional<int64_t> number, StringRef part) {
    LayerAttr layer = LayerAttr::named(&context, name);
    EXPECT_EQ(layer.getStack(), stack);
    EXPECT_EQ(layer.getNumber(), number) << name.str();
    EXPECT_EQ(layer.getPart(), part);
    EXPECT_EQ(layer.getName(), name);
  }

  MLIRContext context;
};
} // namespace

TEST_F(Layer, HasTheFirstNumberOfAName) {
  expect("h.0.attn.weight", "h", 0, "attn.weight");
  expect("transformer.h.12.mlp.3.bias", "transformer.h", 12, "mlp.3.bias");
  expect("h.3", "h", 3, "");
  expect("7", "", 7, "");
  expect("7.weight", "", 7, "weight");
}

TEST_F(Layer, HasNoNumberWhereNoPartIsOne) {
  for (StringRef name :
       {"wte.weight", "conv2d.weight", "h..w", "h.-1", "h.03.w", "h.3.", ".3", "h.99999999999999999999.w"})
    expect(name, name, std::nullopt, "");
}

/// Parts of one layer have one block, layers of two stacks have not.
TEST_F(Layer, HasABlockWithItsOtherParts) {
  auto blockOf = [&](StringRef name) { return LayerAttr::named(&context, name).getBlock(); };
  EXPECT_EQ(blockOf("h.3.attn"), blockOf("h.3.mlp.0"));
  EXPECT_NE(blockOf("h.3.attn"), blockOf("h.4.attn"));
  EXPECT_NE(blockOf("encoder.3.w"), blockOf("decoder.3.w"));
  EXPECT_FALSE(blockOf("wte"));
}

/// What an op says comes before what its location does; without either there is no layer.
TEST_F(Layer, OfAnOpIsWhatItSaysOrItsLocation) {
  OpBuilder builder(&context);
  Location unknown = builder.getUnknownLoc();
  auto make = [&](Location loc) { return OwningOpRef<ModuleOp>(ModuleOp::create(loc)); };
  OwningOpRef<ModuleOp> silent = make(unknown), located = make(NameLoc::get(builder.getStringAttr("h.3"))),
                        said = make(NameLoc::get(builder.getStringAttr("h.3")));
  said.get()->setAttr(DsDialect::kLayerAttr, LayerAttr::named(&context, "h.5.mlp"));
  EXPECT_FALSE(LayerAttr::of(*silent));
  EXPECT_EQ(LayerAttr::of(*located), LayerAttr::named(&context, "h.3"));
  EXPECT_EQ(LayerAttr::of(*said).getNumber(), 5);
  EXPECT_EQ(layerOf(*said), "h.5.mlp");
  EXPECT_EQ(layerOf(*located), "h.3");
}
