//===- DataDocumentsTest.cpp - Targets, positions and documents of a window ----===//

#include "DataFixture.h"

#include "gmock/gmock.h"

using namespace ds;
using namespace ds::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

class DataDocumentsTest : public DataSourceTest {
protected:
  /// Three windows of 4, in which 9 ends a document: 1 2 9 3 | 4 5 6 9 | 9 7 8 1 and a last target.
  DataOptions documents() {
    DataOptions options =
        this->options(write("t.bin", bytesOf<uint16_t>({1, 2, 9, 3, 4, 5, 6, 9, 9, 7, 8, 1, 2})), 3);
    options.documentToken = 9;
    return options;
  }
  /// Inputs of three rows of 4, of which the loss leaves -100 out.
  static std::vector<InputSpec> inputs(std::vector<std::string> others = {}) {
    std::vector<InputSpec> all = {{"ids", DType::I64, {3, 4}, 64},
                                  {"targets", DType::I32, {3, 4}, 64, true, -100}};
    for (const std::string &name : others)
      all.push_back({name, DType::I64, {3, 4}});
    return all;
  }
  /// The named one of `specs`, an i64, in the first step.
  std::vector<int64_t> read(const DataOptions &options, const std::vector<InputSpec> &specs,
                            const std::string &name) {
    Result<DataSource> source = DataSource::open(options, specs);
    EXPECT_TRUE(source) << source.error().message;
    std::vector<std::vector<int64_t>> values(specs.size(), std::vector<int64_t>(12, -7));
    std::vector<void *> destinations;
    for (auto &value : values)
      destinations.push_back(value.data());
    Status status = source ? source->fill(0, 0, 0, destinations) : Status();
    EXPECT_TRUE(status) << status.error().message;
    for (size_t i = 0; i < specs.size(); ++i)
      if (specs[i].name == name)
        return values[i];
    return {};
  }
  static std::vector<int32_t> words(const std::vector<int64_t> &values) {
    std::vector<int32_t> out(12);
    memcpy(out.data(), values.data(), 48);
    return out;
  }
};

TEST_F(DataDocumentsTest, TargetsBehindAnEndDoNotCount) {
  EXPECT_THAT(words(read(documents(), inputs(), "targets")),
              ElementsAre(2, 9, -100, 4, 5, 6, 9, -100, -100, 8, 1, 2));
  EXPECT_THAT(read(documents(), inputs(), "ids"), ElementsAre(1, 2, 9, 3, 4, 5, 6, 9, 9, 7, 8, 1));
  DataOptions whole = documents();
  whole.documentToken.reset();
  EXPECT_THAT(words(read(whole, inputs(), "targets")), ElementsAre(2, 9, 3, 4, 5, 6, 9, 9, 7, 8, 1, 2));
}

TEST_F(DataDocumentsTest, Positions) {
  const auto specs = inputs({"position_ids"});
  DataOptions options = documents();
  EXPECT_THAT(read(options, specs, "position_ids"), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3));
  options.resetPositions = true;
  EXPECT_THAT(read(options, specs, "position_ids"), ElementsAre(0, 1, 2, 0, 0, 1, 2, 3, 0, 0, 1, 2));
  options.resetPositions = false;
  options.documentToken.reset(); // counted all the same
  EXPECT_THAT(read(options, specs, "position_ids"), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(words(read(options, specs, "targets")), ElementsAre(2, 9, 3, 4, 5, 6, 9, 9, 7, 8, 1, 2));
}

TEST_F(DataDocumentsTest, DocumentsAreCountedInTheWindow) {
  DataOptions options = documents();
  options.resetAttention = true;
  for (const char *name : {"document_ids", "segment_ids"})
    EXPECT_THAT(read(options, inputs({name}), name), ElementsAre(0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1));
}

TEST_F(DataDocumentsTest, NamedInputsMayComeFirst) {
  auto specs = inputs({"position_ids", "document_ids"});
  std::ranges::reverse(specs);
  std::swap(specs[2], specs[3]); // of the rest the first is the tokens
  DataOptions options = documents();
  options.resetPositions = true;
  EXPECT_THAT(read(options, specs, "ids"), ElementsAre(1, 2, 9, 3, 4, 5, 6, 9, 9, 7, 8, 1));
  EXPECT_THAT(read(options, specs, "document_ids"), ElementsAre(0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1));
  EXPECT_THAT(DataSource::open(options, specs)->describe(), HasSubstr("3 samples of 4"));
}

TEST_F(DataDocumentsTest, ValuesAreHeldToTheirLimits) {
  auto specs = inputs({"position_ids", "document_ids"});
  specs[2].indexLimit = 3;
  std::vector<std::vector<int64_t>> values(4, std::vector<int64_t>(12));
  void *destinations[] = {values[0].data(), values[1].data(), values[2].data(), values[3].data()};
  Status status = DataSource::open(documents(), specs)->fill(0, 0, 0, destinations);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message,
              HasSubstr("argument 'position_ids', token 3: value 3 is outside 0 <= value < 3"));
  // What is left out is not held to a limit, and what stands behind it is named at its place.
  DataOptions options = documents();
  write("t.bin", bytesOf<uint16_t>({1, 2, 9, 60, 50, 6, 9, 9, 7, 8, 1, 2, 3}));
  specs = inputs();
  specs[1].indexLimit = 10;
  status = DataSource::open(options, specs)->fill(0, 0, 0, std::span(destinations, 2));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("argument 'targets', token 4: value 50 is outside"));
}

TEST_F(DataDocumentsTest, IsPartOfTheSign) {
  DataOptions other = documents();
  other.documentToken = 8;
  EXPECT_NE(DataSource::open(other, inputs())->sign(), DataSource::open(documents(), inputs())->sign());
}

TEST_F(DataDocumentsTest, WhatCannotBeDoneIsRefused) {
  auto usage = [&](const DataOptions &options, std::vector<InputSpec> specs) {
    return refusal(DataSource::open(options, std::move(specs)), ExitCode::Usage);
  };
  DataOptions options = documents();
  auto noIgnore = inputs();
  noIgnore[1].hasIgnoreIndex = false;
  EXPECT_THAT(usage(options, noIgnore), HasSubstr("the loss of 'targets' has no ignore index"));
  options.documentToken = 64;
  EXPECT_THAT(usage(options, inputs()), HasSubstr("--document-token 64: the tokens of 'ids' are 0 to 63"));
  options = documents();
  options.resetPositions = true;
  EXPECT_THAT(usage(options, inputs()),
              HasSubstr("--reset-positions: the program has no input 'position_ids'"));
  options.documentToken.reset();
  EXPECT_THAT(usage(options, inputs({"position_ids"})),
              HasSubstr("--reset-positions needs --document-token"));
  options = documents();
  options.resetAttention = true;
  EXPECT_THAT(usage(options, inputs()),
              HasSubstr("--reset-attention: the program has no input 'document_ids'"));
  options.documentToken.reset();
  EXPECT_THAT(usage(options, inputs({"document_ids"})),
              HasSubstr("--reset-attention needs --document-token"));
  options.resetAttention = false;
  EXPECT_THAT(usage(options, inputs({"document_ids"})),
              HasSubstr("input 'document_ids' of the program counts"));
  DataOptions tensors = this->options(tenSamples());
  tensors.documentToken = 1;
  EXPECT_THAT(usage(tensors, xy(1)), HasSubstr("is no token stream"));
}

/// Data with a mask: y counts where it is 1.
class LossMaskTest : public DataSourceTest {
protected:
  template <class T>
  DataOptions masked(FileDType dtype, const std::vector<T> &mask, std::vector<int64_t> shape = {3, 2}) {
    const std::vector<int64_t> x = {1, 2, 3, 4, 5, 6}, y = {2, 999, 4, 5, 6, 7};
    EXPECT_TRUE(writeSafeTensors(path("m.safetensors"),
                                 std::vector<TensorSource>{{"x", FileDType::I64, {3, 2}, x.data()},
                                                           {"y", FileDType::I64, {3, 2}, y.data()},
                                                           {"loss_mask", dtype, shape, mask.data()}}));
    return options(path("m.safetensors"), 3);
  }
  static std::vector<InputSpec> xy() {
    return {{"x", DType::I64, {3, 2}, 64}, {"y", DType::I64, {3, 2}, 64, true, -1}};
  }
  std::vector<int64_t> targets(const DataOptions &options) {
    Result<DataSource> source = DataSource::open(options, xy());
    EXPECT_TRUE(source) << source.error().message;
    std::vector<int64_t> x(6), y(6);
    void *destinations[] = {x.data(), y.data()};
    Status status = source->fill(0, 0, 0, destinations);
    EXPECT_TRUE(status) << status.error().message;
    EXPECT_THAT(x, ElementsAre(1, 2, 3, 4, 5, 6));
    return y;
  }
};

// 999 is no class, and nobody asks for it.
TEST_F(LossMaskTest, TargetsOutsideDoNotCount) {
  EXPECT_THAT(targets(masked<uint8_t>(FileDType::U8, {1, 0, 1, 1, 0, 1})), ElementsAre(2, -1, 4, 5, -1, 7));
  EXPECT_THAT(targets(masked<uint8_t>(FileDType::Bool, {0, 0, 1, 1, 1, 0})),
              ElementsAre(-1, -1, 4, 5, 6, -1));
  EXPECT_THAT(targets(masked<int64_t>(FileDType::I64, {1, 0, 0, 0, 0, 1})),
              ElementsAre(2, -1, -1, -1, -1, 7));
}

TEST_F(LossMaskTest, OnlyZeroAndOne) {
  for (FileDType dtype : {FileDType::U8, FileDType::Bool}) {
    Result<DataSource> source = DataSource::open(masked<uint8_t>(dtype, {1, 0, 1, 2, 0, 1}), xy());
    ASSERT_TRUE(source);
    int64_t x[6], y[6];
    void *destinations[] = {x, y};
    Status status = source->fill(0, 0, 0, destinations);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message,
                HasSubstr("argument 'loss_mask', sample 1, element 1: value 2 is outside 0"));
  }
}

TEST_F(LossMaskTest, MasksThatDoNotFit) {
  const std::vector<uint8_t> ones(8, 1);
  EXPECT_THAT(refusal(DataSource::open(masked(FileDType::U8, ones, {3}), xy())),
              HasSubstr("'loss_mask' expects shape [samples, 2], but got [3]"));
  EXPECT_THAT(refusal(DataSource::open(masked(FileDType::U8, ones, {4, 2}), xy())),
              HasSubstr("'loss_mask' has 4 samples, but the arguments have 3"));
  EXPECT_THAT(refusal(DataSource::open(masked(FileDType::F32, std::vector<float>(6, 1)), xy())),
              HasSubstr("'loss_mask' expects BOOL or integers, but got F32"));
  auto specs = xy();
  specs[1].hasIgnoreIndex = false;
  EXPECT_THAT(
      refusal(DataSource::open(masked(FileDType::U8, ones), specs)),
      HasSubstr("has a 'loss_mask', but the arguments of which the loss can leave values out are none"));
  specs = xy();
  specs[0].hasIgnoreIndex = true;
  EXPECT_THAT(refusal(DataSource::open(masked(FileDType::U8, ones), specs)), HasSubstr("are 'x', 'y'"));
}

TEST_F(LossMaskTest, AnArgumentOfThatNameIsOne) {
  auto specs = xy();
  specs.push_back({"loss_mask", DType::I64, {3, 2}});
  Result<DataSource> source = DataSource::open(masked<uint8_t>(FileDType::U8, {5, 0, 1, 1, 0, 1}), specs);
  ASSERT_TRUE(source) << source.error().message;
  std::vector<int64_t> x(6), y(6), mask(6);
  void *destinations[] = {x.data(), y.data(), mask.data()};
  Status status = source->fill(0, 0, 0, destinations);
  ASSERT_FALSE(status); // so that y is held to its classes
  EXPECT_THAT(status.error().message, HasSubstr("argument 'y', sample 0, element 1: value 999"));
}

TEST_F(LossMaskTest, TypeThatCannotHoldTheIgnoreIndex) {
  auto specs = xy();
  specs[1].dtype = DType::U8;
  Result<DataSource> source = DataSource::open(masked<uint8_t>(FileDType::U8, {1, 0, 1, 1, 0, 1}), specs);
  ASSERT_TRUE(source);
  int64_t x[6], y[6];
  void *destinations[] = {x, y};
  EXPECT_THAT(source->fill(0, 0, 0, destinations).error().message,
              HasSubstr("cannot hold the ignore index -1"));
}
} // namespace
