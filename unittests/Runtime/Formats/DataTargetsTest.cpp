//===- DataTargetsTest.cpp - How many targets of a micro-step count ----------------===//

#include "DataFixture.h"

#include "gmock/gmock.h"

using namespace ds;
using namespace ds::rt;
using testing::HasSubstr;

namespace {

class DataTargetsTest : public DataSourceTest {
protected:
  /// Samples of four labels each, as they stand in the file.
  std::string labels(const std::vector<int64_t> &values, const std::vector<uint8_t> &mask = {}) {
    const auto samples = static_cast<int64_t>(values.size() / 4);
    std::vector<float> x(values.size() / 4);
    std::vector<TensorSource> tensors = {{"x", FileDType::F32, {samples, 1}, x.data()},
                                         {"y", FileDType::I64, {samples, 4}, values.data()}};
    if (!mask.empty())
      tensors.push_back({"loss_mask", FileDType::U8, {samples, 4}, mask.data()});
    EXPECT_TRUE(writeSafeTensors(path("d.safetensors"), tensors));
    return path("d.safetensors");
  }
  /// Inputs that fit it; `targets` says of each element of a sample whether it is one.
  static std::vector<InputSpec> inputs(int64_t m, std::vector<uint8_t> targets = {1, 1, 1, 1},
                                       DType dtype = DType::I64) {
    return {{"x", DType::F32, {m, 1}}, {"y", dtype, {m, 4}, 10, true, -100, std::move(targets)}};
  }
  /// The targets of one micro-step.
  static uint64_t count(Result<DataSource> &source, uint64_t step = 0, uint32_t microStep = 0,
                        uint32_t rank = 0) {
    EXPECT_TRUE(source) << source.error().message;
    const Result<uint64_t> found = source->countTargets(step, microStep, rank);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : UINT64_MAX;
  }
};

TEST_F(DataTargetsTest, LabelsThatAreTheIgnoreIndex) {
  const std::string file = labels({1, 2, -100, 4, -100, -100, -100, -100, 5, -100, -100, 8, 9, 1, 2, 3});
  for (const DType dtype : {DType::I64, DType::I32}) {
    auto source = DataSource::open(options(file, 1, 2, 2), inputs(1, {1, 1, 1, 1}, dtype));
    EXPECT_TRUE(source->mayLeaveOutTargets());
    EXPECT_EQ(count(source, 0, 0, 0), 3u);
    EXPECT_EQ(count(source, 0, 0, 1), 0u);
    EXPECT_EQ(count(source, 0, 1, 0), 2u);
    EXPECT_EQ(count(source, 0, 1, 1), 4u);
  }
  auto both = DataSource::open(options(file, 2), inputs(2));
  EXPECT_EQ(count(both, 1), 6u) << "samples 2 and 3";
}

/// Where forward shifts the labels the first of each sample is none.
TEST_F(DataTargetsTest, ElementsThatAreNoTargetsAreNotCounted) {
  auto source = DataSource::open(options(labels({1, 2, -100, 4, -100, 6, 7, 8}), 2), inputs(2, {0, 1, 1, 1}));
  EXPECT_EQ(count(source), 5u);
}

TEST_F(DataTargetsTest, AMaskLeavesOutWhatItSays) {
  auto source =
      DataSource::open(options(labels({1, 2, 3, 4, 5, 6, 7, 8}, {1, 0, 0, 1, 0, 0, 0, 0}), 1), inputs(1));
  EXPECT_EQ(count(source, 0), 2u);
  EXPECT_EQ(count(source, 1), 0u);
}

TEST_F(DataTargetsTest, EndsOfDocumentsLeaveOneOut) {
  DataOptions windows = options(write("t.bin", bytesOf<uint16_t>({1, 2, 9, 3, 4, 5, 6, 9, 9})), 2);
  std::vector<InputSpec> specs = {{"ids", DType::I64, {2, 4}, 64},
                                  {"targets", DType::I64, {2, 4}, 64, true, -100, {1, 1, 1, 1}}};
  auto whole = DataSource::open(windows, specs);
  EXPECT_FALSE(whole->mayLeaveOutTargets()) << "16 bits without a sign are never -100";
  EXPECT_EQ(count(whole), 8u);
  windows.documentToken = 9;
  auto documents = DataSource::open(windows, specs);
  EXPECT_TRUE(documents->mayLeaveOutTargets());
  EXPECT_EQ(count(documents), 6u) << "1 2 9 | 3 4 5 6 9 | 9";
  specs[1].ignoreIndex = 9;
  windows.documentToken.reset();
  auto padded = DataSource::open(windows, specs);
  EXPECT_TRUE(padded->mayLeaveOutTargets()) << "9 is a token";
  EXPECT_EQ(count(padded), 5u) << "2 3 4 5 6 of 2 9 3 4 5 6 9 9";
}

TEST_F(DataTargetsTest, NothingIsCountedWhereTheProgramDoesNotSayWhatTargetsAre) {
  auto source = DataSource::open(options(labels({1, -100, 3, 4}), 1), inputs(1, {}));
  EXPECT_FALSE(source->mayLeaveOutTargets());
  EXPECT_EQ(count(source), 0u);
}

TEST_F(DataTargetsTest, ABadLabelIsRefusedAsWhenItIsRead) {
  auto source = DataSource::open(options(labels({1, 2, 11, 4}), 1), inputs(1));
  const Result<uint64_t> found = source->countTargets(0, 0, 0);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ExitCode::Invalid);
  EXPECT_THAT(found.error().message, HasSubstr("argument 'y', sample 0, element 2: value 11 is outside"));
}

} // namespace
