//===- DataBlendTest.cpp - Several files as one, and blends of them ------------===//

#include "Data/Blend.h"
#include "DataFixture.h"
#include "IndexedFiles.h"
#include "ds/Runtime/Data/Permutation.h"

#include "gmock/gmock.h"

#include <unistd.h>

using namespace ds;
using namespace ds::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

class DataBlendTest : public DataSourceTest {
protected:
  /// `count` samples, of which y counts from `first`.
  void labelsFrom(const std::string &name, int64_t first, int64_t count) {
    std::vector<int64_t> y(static_cast<size_t>(count));
    std::iota(y.begin(), y.end(), first);
    ASSERT_TRUE(
        writeSafeTensors(path(name), std::vector<TensorSource>{{"y", FileDType::I64, {count}, y.data()}}));
  }
  static std::vector<InputSpec> y(int64_t m) { return {{"y", DType::I64, {m}}}; }

  /// The first `count` samples of a run of one at a time.
  std::vector<int64_t> read(const DataOptions &options, uint64_t count) {
    Result<DataSource> source = DataSource::open(options, y(1));
    EXPECT_TRUE(source) << source.error().message;
    std::vector<int64_t> all(count);
    for (uint64_t step = 0; source && step < count; ++step) {
      void *destinations[] = {&all[step]};
      EXPECT_TRUE(source->fill(step, 0, 0, destinations));
    }
    return all;
  }
};

TEST_F(DataBlendTest, FilesFollowOneAnother) {
  labelsFrom("s-0.safetensors", 0, 3);
  labelsFrom("s-1.safetensors", 100, 1);
  labelsFrom("s-2.safetensors", 200, 2);
  const DataOptions all = options(path("s-*.safetensors"));
  EXPECT_THAT(read(all, 8), ElementsAre(0, 1, 2, 100, 200, 201, 0, 1));
  ASSERT_EQ(notices.size(), 1u); // once for all of them
  EXPECT_THAT(notices[0], HasSubstr("s-*.safetensors': all 6 samples were read; starting over in step 7"));
  EXPECT_THAT(DataSource::open(all, y(1))->describe(),
              HasSubstr("3 files, 6 samples, 6 global batches of 1"));
}

TEST_F(DataBlendTest, ShuffleIsOverAllFiles) {
  labelsFrom("s-0.safetensors", 0, 3);
  labelsFrom("s-1.safetensors", 3, 4);
  DataOptions shuffled = options(path("s-*.safetensors"));
  shuffled.shuffle = true;
  shuffled.seed = 9;
  const std::vector<int64_t> labels = read(shuffled, 14);
  for (uint64_t i = 0; i < 14; ++i)
    EXPECT_EQ(uint64_t(labels[i]), Permutation(7, 9, i / 7)(i % 7));
}

// Windows do not run from one file into the next: 7 tokens are 3 windows of 2 + 1, 4 of another width are 1.
TEST_F(DataBlendTest, TokenFilesOfSeveralKinds) {
  write("t-0.bin", bytesOf<uint16_t>({0, 1, 2, 3, 4, 5, 6}));
  write("t-1.bin", bytesOf<int32_t>({100, 101, 102, 103}));
  write("t-1.idx", IndexText::of({4}, 4, 4).bytes());
  auto source = DataSource::open(options(path("t-*.bin"), 4), ids(4, 2));
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_THAT(source->describe(), HasSubstr("2 files, 11 tokens, 4 samples of 2"));
  std::vector<int64_t> inputs(8), targets(8);
  void *destinations[] = {inputs.data(), targets.data()};
  ASSERT_TRUE(source->fill(0, 0, 0, destinations));
  EXPECT_THAT(inputs, ElementsAre(0, 1, 2, 3, 4, 5, 100, 101));
  EXPECT_THAT(targets, ElementsAre(1, 2, 3, 4, 5, 6, 101, 102));
}

TEST_F(DataBlendTest, BadValuesNameTheirFile) {
  write("t-0.bin", bytesOf<uint16_t>({0, 1, 2, 3, 4}));
  write("t-1.bin", bytesOf<uint16_t>({0, 1, 2, 99, 4}));
  auto inputs = ids(1, 2);
  inputs[0].indexLimit = 64;
  auto source = DataSource::open(options(path("t-*.bin")), inputs);
  ASSERT_TRUE(source);
  std::vector<int64_t> a(2), b(2);
  void *destinations[] = {a.data(), b.data()};
  Status status = source->fill(3, 0, 0, destinations);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("t-1.bin': argument 'ids', token 3: value 99"));
}

TEST_F(DataBlendTest, EmptyFilesAreNamed) {
  write("t-0.bin", bytesOf<uint16_t>({0, 1, 2, 3, 4}));
  write("t-1.bin", "");
  EXPECT_THAT(refusal(DataSource::open(options(path("t-*.bin")), ids(1, 2))),
              HasSubstr("t-1.bin': is empty"));
  write("t-1.bin", bytesOf<uint16_t>({0, 1}));
  EXPECT_THAT(refusal(DataSource::open(options(path("t-*.bin")), ids(1, 2))),
              HasSubstr("t-1.bin': has 2 tokens, but one sample takes 3"));
  EXPECT_THAT(refusal(DataSource::open(options("1:" + path("t-1.bin")), ids(1, 2))), HasSubstr("t-1.bin'"));
  labelsFrom("s-0.safetensors", 0, 3);
  labelsFrom("s-1.safetensors", 0, 0);
  EXPECT_THAT(refusal(DataSource::open(options(path("s-*")), y(1))), HasSubstr("has no samples"));
}

TEST_F(DataBlendTest, FilesThatChangeAreNamed) {
  labelsFrom("s-0.safetensors", 0, 3);
  labelsFrom("s-1.safetensors", 3, 3);
  auto source = DataSource::open(options(path("s-*")), y(1));
  ASSERT_TRUE(source);
  ASSERT_EQ(truncate(path("s-1.safetensors").c_str(), 8), 0);
  int64_t label = 0;
  void *destinations[] = {&label};
  EXPECT_TRUE(source->fill(2, 0, 0, destinations)); // nothing of it is read
  Status status = source->fill(3, 0, 0, destinations);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Io);
  EXPECT_THAT(status.error().message, HasSubstr("s-1.safetensors': was changed while"));
}

// 3 : 1 with sources of 2 and 5 samples. The first is read one and a half times in a period of 4.
TEST_F(DataBlendTest, EachSourceStartsOverOnItsOwn) {
  labelsFrom("a.safetensors", 0, 2);
  labelsFrom("b.safetensors", 100, 5);
  const DataOptions both = options("0.75:" + path("a.safetensors") + ",0.25:" + path("b.safetensors"));
  const Blend blend({3, 1});
  const std::vector<int64_t> labels = read(both, 24);
  int64_t given[2] = {0, 0};
  for (uint64_t p = 0; p < 24; ++p) {
    const size_t source = blend(p).source;
    EXPECT_EQ(labels[p], source == 0 ? given[0] % 2 : 100 + given[1] % 5) << p;
    ++given[source];
  }
  EXPECT_EQ(given[0], 18);
  // 18 samples of 2 are passed 8 times by the next one, 6 of 5 once.
  EXPECT_EQ(std::ranges::count_if(notices, [](auto &n) { return n.find("a.safetensors") != n.npos; }), 8);
  EXPECT_EQ(std::ranges::count_if(notices, [](auto &n) { return n.find("b.safetensors") != n.npos; }), 1);
}

// Any mesh goes on at any position: the blend is a function of the position alone.
TEST_F(DataBlendTest, GoesOnAnywhere) {
  labelsFrom("a.safetensors", 0, 7);
  labelsFrom("b.safetensors", 100, 5);
  labelsFrom("c.safetensors", 200, 30);
  DataOptions all =
      options("5:" + path("a.safetensors") + ",3:" + path("b.safetensors") + ",2:" + path("c.safetensors"));
  all.shuffle = true;
  const std::vector<int64_t> labels = read(all, 60);
  for (uint64_t begin : {0, 1, 13, 37}) {
    DataOptions later = all;
    later.firstStep = 1000;
    later.firstSample = begin;
    later.microBatch = 2;
    later.world = 3;
    Result<DataSource> source = DataSource::open(later, y(2));
    ASSERT_TRUE(source);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      int64_t pair[2];
      void *destinations[] = {pair};
      ASSERT_TRUE(source->fill(1001, 0, rank, destinations));
      EXPECT_EQ(pair[0], labels[begin + 6 + 2 * rank]);
      EXPECT_EQ(pair[1], labels[begin + 7 + 2 * rank]);
    }
  }
  EXPECT_NE(DataSource::open(options("1:" + path("a.safetensors")), y(1))->sign(),
            DataSource::open(options(path("a.safetensors")), y(1))->sign());
}

// Two sources of the same length are not drawn in the same order.
TEST_F(DataBlendTest, SourcesAreShuffledApart) {
  labelsFrom("a.safetensors", 0, 20);
  labelsFrom("b.safetensors", 0, 20);
  DataOptions both = options("1:" + path("a.safetensors") + ",1:" + path("b.safetensors"));
  both.shuffle = true;
  std::vector<int64_t> drawn[2];
  const std::vector<int64_t> labels = read(both, 40);
  for (size_t p = 0; p < 40; ++p)
    drawn[Blend({1, 1})(p).source].push_back(labels[p]);
  EXPECT_NE(drawn[0], drawn[1]);
  for (auto &order : drawn) {
    std::ranges::sort(order);
    EXPECT_EQ(std::unique(order.begin(), order.end()) - order.begin(), 20);
  }
}

TEST_F(DataBlendTest, DescribesTheSources) {
  labelsFrom("a.safetensors", 0, 7);
  labelsFrom("b.safetensors", 100, 5);
  const std::string json =
      R"({"sources": [{"path": "a.safetensors", "weight": 0.9}, {"path": "b.safetensors", "weight": 0.1}]})";
  auto source = DataSource::open(options(write("blend.json", json)), y(1));
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_THAT(source->describe(), HasSubstr("blend.json': blend of 9 of 10 from '"));
  EXPECT_THAT(source->describe(), HasSubstr("a.safetensors' (7 samples) + 1 of 10 from '"));
  EXPECT_THAT(source->sign(), testing::StartsWith("9 of 10 (7 samples) + 1 of 10 (5 samples), digest "));
}

TEST_F(DataBlendTest, WeightsAreRefusedByName) {
  labelsFrom("a.safetensors", 0, 7);
  for (const char *weight : {"0", "-0.5"})
    EXPECT_THAT(
        refusal(DataSource::open(options(weight + (":" + path("a.safetensors"))), y(1)), ExitCode::Usage),
        HasSubstr("a.safetensors': weight '" + std::string(weight) + "': expects a decimal number greater"));
  const std::string json = R"({"sources": [{"path": "a.safetensors", "weight": 1, "token_dtype": "u8"}]})";
  EXPECT_THAT(refusal(DataSource::open(options(write("blend.json", json)), y(1)), ExitCode::Usage),
              HasSubstr("token_dtype 'u8' of"));
}

TEST_F(DataBlendTest, TokenTypesOfTheirOwn) {
  write("narrow.bin", bytesOf<uint16_t>({1, 2, 3}));
  write("wide.bin", bytesOf<uint32_t>({4, 5, 6}));
  const std::string json =
      R"({"sources": [{"path": "narrow.bin", "weight": 1}, {"path": "wide.bin", "weight": 1, "token_dtype": "u32"}]})";
  auto source = DataSource::open(options(write("blend.json", json), 2), ids(2, 2));
  ASSERT_TRUE(source) << source.error().message;
  std::vector<int64_t> inputs(4), targets(4);
  void *destinations[] = {inputs.data(), targets.data()};
  ASSERT_TRUE(source->fill(0, 0, 0, destinations));
  EXPECT_THAT(inputs, ElementsAre(1, 2, 4, 5));
}
} // namespace
