//===- ImportTest.cpp - Weights of others as a checkpoint ------------------------------===//

#include "Formats/LostValues.h"
#include "ToolFixture.h"

#include "ds/Runtime/CheckpointTool/Import.h"
#include "ds/Runtime/Formats/SafeTensors.h"

#include <cmath>
#include <limits>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = INFINITY;

class Import : public ToolFixture {
protected:
  Import() { fs::create_directory(root + "/hf"); }

  void add(const std::string &name, std::vector<int64_t> shape, std::vector<float> values) {
    kept.push_back(std::move(values));
    sources.push_back({name, FileDType::F32, std::move(shape), nullptr});
  }
  ImportReport import() {
    for (size_t i = 0; i < sources.size(); ++i)
      sources[i].data = kept[i].data();
    EXPECT_TRUE(writeSafeTensors(root + "/hf/model.safetensors", sources));
    const Result<ImportReport> report = importCheckpoint({.from = root + "/hf", .to = root + "/to"});
    EXPECT_TRUE(report) << report.error().message;
    return report ? *report : ImportReport();
  }

  std::vector<TensorSource> sources;
  std::vector<std::vector<float>> kept;
};

TEST_F(Import, numbersNeedNoWord) {
  add("w", {2, 2}, {1, -2, 0, std::numeric_limits<float>::max()});
  EXPECT_THAT(import().notes, IsEmpty());
}

TEST_F(Import, whatIsNoNumberIsTold) {
  add("a", {2, 3}, {1, 2, 3, 4, kNan, -kNan});
  add("b", {1}, {-kInfinity});
  add("c", {4}, {1, kInfinity, kNan, kInfinity});
  add("d", {2}, {0, 1});
  EXPECT_THAT(import().notes, ElementsAre("'a': 2 of 6 elements are NaN, the first at [1, 1]",
                                          "'b': 1 of 1 element is infinite, the first at [0]",
                                          "'c': 1 of 4 elements is NaN, 2 are infinite, the first at [1]"));
}

TEST_F(Import, manyTensorsAreCounted) {
  for (int i = 0; i < 25; ++i)
    add("w" + std::to_string(10 + i), {1}, {kNan});
  const std::vector<std::string> notes = import().notes;
  ASSERT_EQ(notes.size(), 21u);
  EXPECT_EQ(notes.back(), "and 5 more tensors with NaN or infinity");
}

/// Each type has its own exponent; the largest finite value is one below infinity.
TEST(LostValues, everyFloatTypeIsKnown) {
  const auto count = [](FileDType dtype, auto bits) {
    LostValues lost;
    lost.look(dtype, std::as_bytes(std::span(&bits, 1)), 7);
    EXPECT_EQ(lost.any(), lost.first == 7);
    return std::pair(lost.nan, lost.infinite);
  };
  using Counts = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(count(FileDType::F16, uint16_t(0xfbff)), Counts(0, 0));
  EXPECT_EQ(count(FileDType::F16, uint16_t(0xfc00)), Counts(0, 1));
  EXPECT_EQ(count(FileDType::F16, uint16_t(0x7c01)), Counts(1, 0));
  EXPECT_EQ(count(FileDType::BF16, uint16_t(0x7c01)), Counts(0, 0));
  EXPECT_EQ(count(FileDType::BF16, uint16_t(0x7f80)), Counts(0, 1));
  EXPECT_EQ(count(FileDType::BF16, uint16_t(0xffc0)), Counts(1, 0));
  EXPECT_EQ(count(FileDType::F64, uint64_t(0x7fefffffffffffff)), Counts(0, 0));
  EXPECT_EQ(count(FileDType::F64, uint64_t(0xfff0000000000000)), Counts(0, 1));
  EXPECT_EQ(count(FileDType::F64, uint64_t(0x7ff0000000000001)), Counts(1, 0));
  EXPECT_EQ(count(FileDType::I32, uint32_t(0xffffffff)), Counts(0, 0));
}

TEST(LostValues, masksMayBeInfinite) {
  const float values[] = {-kInfinity, 0, kNan};
  LostValues lost{.mayBeInfinite = true};
  lost.look(FileDType::F32, std::as_bytes(std::span(values)), 0);
  EXPECT_EQ(lost.infinite, 0u);
  EXPECT_EQ(lost.first, 2u);
}

} // namespace
