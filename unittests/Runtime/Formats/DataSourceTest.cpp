//===- DataSourceTest.cpp - Which samples go where, and what is refused --------===//

#include "DataFixture.h"
#include "ds/Runtime/Data/Permutation.h"

#include "gmock/gmock.h"

#include <unistd.h>

using namespace ds;
using namespace ds::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

// The contract: micro-step g on rank r reads base + (g * W + r) * M onward.
TEST_F(DataSourceTest, MicroStepsAndRanks) {
  auto source = DataSource::open(options(tenSamples(), 2, 2, 2), xy(2)); // 2 * 2 * 2 = 8 a step
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_THAT(labels(*source, 2, 0, 0, 0), ElementsAre(0, 1));
  EXPECT_THAT(labels(*source, 2, 0, 0, 1), ElementsAre(2, 3));
  EXPECT_THAT(labels(*source, 2, 0, 1, 0), ElementsAre(4, 5));
  EXPECT_THAT(labels(*source, 2, 0, 1, 1), ElementsAre(6, 7));
}

TEST_F(DataSourceTest, WrapsInsideABatch) {
  auto source = DataSource::open(options(tenSamples(), 3), xy(3));
  ASSERT_TRUE(source);
  EXPECT_EQ(source->numSamples(), 10u);
  EXPECT_EQ(source->numBatches(), 3u);
  EXPECT_THAT(labels(*source, 3, 2, 0, 0), ElementsAre(6, 7, 8));
  EXPECT_TRUE(notices.empty());
  EXPECT_THAT(labels(*source, 3, 3, 0, 0), ElementsAre(9, 0, 1));
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_THAT(notices[0], HasSubstr("all 10 samples were read; starting over in step 4 (epoch 2)"));
  EXPECT_THAT(labels(*source, 3, 4, 0, 0), ElementsAre(2, 3, 4));
  EXPECT_EQ(notices.size(), 1u); // once for each epoch
}

TEST_F(DataSourceTest, WrapExactlyBetweenBatches) {
  auto source = DataSource::open(options(tenSamples(), 5), xy(5));
  ASSERT_TRUE(source);
  labels(*source, 5, 0, 0, 0);
  labels(*source, 5, 1, 0, 0);
  EXPECT_TRUE(notices.empty());
  EXPECT_THAT(labels(*source, 5, 2, 0, 0), ElementsAre(0, 1, 2, 3, 4));
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_THAT(notices[0], HasSubstr("step 3 (epoch 2)"));
}

TEST_F(DataSourceTest, ResumedRunReportsOnlyItsOwnWraps) {
  auto source = DataSource::open(options(tenSamples(), 5), xy(5));
  ASSERT_TRUE(source);
  labels(*source, 5, 101, 0, 0); // in epoch 51
  EXPECT_TRUE(notices.empty());
  labels(*source, 5, 102, 0, 0);
  EXPECT_EQ(notices.size(), 1u);
}

TEST_F(DataSourceTest, EveryRankSeesTheSameWrap) {
  auto source = DataSource::open(options(tenSamples(), 4, 1, 2), xy(4));
  ASSERT_TRUE(source);
  EXPECT_THAT(labels(*source, 4, 1, 0, 0), ElementsAre(8, 9, 0, 1));
  EXPECT_EQ(notices.size(), 1u);
  EXPECT_THAT(labels(*source, 4, 2, 0, 0), ElementsAre(6, 7, 8, 9)); // the other rank passes the end
  EXPECT_EQ(notices.size(), 2u);
}

TEST_F(DataSourceTest, HugeStepsDoNotOverflow) {
  auto source = DataSource::open(options(tenSamples(), 3, 1, 3), xy(3));
  ASSERT_TRUE(source);
  // (2^64 - 1) * 9 mod 10 = 5 * 9 mod 10 = 5
  EXPECT_THAT(labels(*source, 3, UINT64_MAX, 0, 0), ElementsAre(5, 6, 7));
}

TEST_F(DataSourceTest, ShuffleDrawsEverySampleOnceAnEpoch) {
  DataOptions shuffled = options(tenSamples(), 5);
  shuffled.shuffle = true;
  shuffled.seed = 3;
  auto source = DataSource::open(shuffled, xy(5));
  ASSERT_TRUE(source);
  std::vector<std::vector<int64_t>> epochs(2);
  for (uint64_t step = 0; step < 4; ++step)
    for (int64_t label : labels(*source, 5, step, 0, 0))
      epochs[step / 2].push_back(label);
  for (uint64_t epoch = 0; epoch < 2; ++epoch)
    for (uint64_t i = 0; i < 10; ++i)
      EXPECT_EQ(uint64_t(epochs[epoch][i]), Permutation(10, 3, epoch)(i));
  EXPECT_NE(epochs[0], epochs[1]);
  std::sort(epochs[0].begin(), epochs[0].end());
  EXPECT_THAT(epochs[0], ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_F(DataSourceTest, ShuffleDoesNotDependOnTheRanks) {
  DataOptions one = options(tenSamples(), 4), two = options(tenSamples(), 2, 1, 2);
  one.shuffle = two.shuffle = true;
  auto alone = DataSource::open(one, xy(4));
  auto pair = DataSource::open(two, xy(2));
  ASSERT_TRUE(alone && pair);
  for (uint64_t step = 0; step < 5; ++step) {
    auto left = labels(*pair, 2, step, 0, 0), right = labels(*pair, 2, step, 0, 1);
    left.insert(left.end(), right.begin(), right.end());
    EXPECT_EQ(labels(*alone, 4, step, 0, 0), left);
  }
}

// Windows of T + 1 tokens, stride T.
TEST_F(DataSourceTest, TokenWindows) {
  auto source = DataSource::open(tokens(13, 2), ids(2, 4)); // (13 - 1) / 4 = 3 windows
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->numSamples(), 3u);
  EXPECT_THAT(source->describe(), HasSubstr("13 tokens (U16), 3 samples of 4, 1 global batches of 2"));
  std::vector<int64_t> inputs(8), targets(8);
  void *destinations[] = {inputs.data(), targets.data()};
  ASSERT_TRUE(source->fill(0, 0, 0, destinations));
  EXPECT_THAT(inputs, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(targets, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  ASSERT_TRUE(source->fill(1, 0, 0, destinations)); // the last window, and the first again
  EXPECT_THAT(inputs, ElementsAre(8, 9, 10, 11, 0, 1, 2, 3));
  EXPECT_THAT(targets, ElementsAre(9, 10, 11, 12, 1, 2, 3, 4));
}

TEST_F(DataSourceTest, TokenWindowNeedsTheTokenAfterIt) {
  EXPECT_EQ(DataSource::open(tokens(12), ids(1, 4))->numSamples(), 2u); // 11 / 4
  EXPECT_THAT(refusal(DataSource::open(tokens(4), ids(1, 4))),
              HasSubstr("4 tokens (U16), 0 samples, but one global batch needs 1"));
  EXPECT_THAT(refusal(DataSource::open(tokens(0), ids(1, 4))), HasSubstr("0 samples"));
}

TEST_F(DataSourceTest, TokensOutsideTheVocabulary) {
  auto inputs = ids(1, 4);
  inputs[0].indexLimit = 8;
  auto source = DataSource::open(tokens(13), inputs);
  ASSERT_TRUE(source);
  std::vector<int64_t> a(4), b(4);
  void *destinations[] = {a.data(), b.data()};
  EXPECT_TRUE(source->fill(1, 0, 0, destinations)); // 4..7 and targets 5..8, which have no limit
  Status status = source->fill(2, 0, 0, destinations);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Invalid);
  EXPECT_THAT(status.error().message,
              HasSubstr("t.bin': argument 'ids', token 8: value 8 is outside 0 <= value < 8"));
  inputs[1].indexLimit = 8;
  source = DataSource::open(tokens(13), inputs);
  ASSERT_TRUE(source);
  status = source->fill(1, 0, 0, destinations);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("argument 'targets', token 8: value 8"));
}

TEST_F(DataSourceTest, TokenStreamNeedsTwoEqualIntegerInputs) {
  std::vector<InputSpec> one = {{"ids", DType::I64, {1, 4}}};
  std::vector<InputSpec> floats = {{"ids", DType::F32, {1, 4}}, {"targets", DType::I64, {1, 4}}};
  std::vector<InputSpec> unequal = {{"ids", DType::I64, {1, 4}}, {"targets", DType::I64, {1, 5}}};
  std::vector<InputSpec> flat = {{"ids", DType::I64, {1}}, {"targets", DType::I64, {1}}};
  for (const auto &inputs : {one, floats, unequal, flat})
    EXPECT_THAT(refusal(DataSource::open(tokens(13), inputs)),
                HasSubstr("two integer arguments of the same shape"));
}

TEST_F(DataSourceTest, IgnoreIndexIsAllowed) {
  std::vector<int64_t> y = {1, -100, 2, 3};
  ASSERT_TRUE(writeSafeTensors(path("d.safetensors"),
                               std::vector<TensorSource>{{"y", FileDType::I64, {4}, y.data()}}));
  InputSpec input{"y", DType::I64, {4}, 3, true, -100};
  auto source = DataSource::open(options(path("d.safetensors"), 4), {input});
  ASSERT_TRUE(source);
  std::vector<int64_t> out(4);
  void *destinations[] = {out.data()};
  Status status = source->fill(0, 0, 0, destinations);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message,
              HasSubstr("sample 3, element 0: value 3 is outside 0 <= value < 3 or -100"));
}

TEST_F(DataSourceTest, NpyFillsOneArgument) {
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2)}";
  header.append(118 - header.size() - 1, ' ');
  std::string bytes =
      std::string("\x93NUMPY\x01\0\x76\0", 10) + header + "\n" + bytesOf<int32_t>({1, 2, 3, 4, 5, 6});
  auto source = DataSource::open(options(write("d.npy", bytes), 2), {{"x", DType::I64, {2, 2}}});
  ASSERT_TRUE(source) << source.error().message;
  std::vector<int64_t> out(4);
  void *destinations[] = {out.data()};
  ASSERT_TRUE(source->fill(1, 0, 0, destinations));
  EXPECT_THAT(out, ElementsAre(5, 6, 1, 2));
  EXPECT_THAT(refusal(DataSource::open(options(path("d.npy"), 2), xy(2))),
              HasSubstr("holds one argument, but the forward has 'x', 'y'"));
}

TEST_F(DataSourceTest, ArgumentsAreMatchedByName) {
  tenSamples();
  std::vector<InputSpec> inputs = {{"x", DType::F32, {1, 2}}, {"labels", DType::I64, {1}}};
  EXPECT_THAT(refusal(DataSource::open(options(path("d.safetensors")), inputs)),
              HasSubstr("('x', 'labels'), but got 'x', 'y'; missing: 'labels'; unknown: 'y'"));
  inputs = {{"x", DType::F32, {1, 2}}};
  EXPECT_THAT(refusal(DataSource::open(options(path("d.safetensors")), inputs)),
              HasSubstr("missing: none; unknown: 'y'"));
}

TEST_F(DataSourceTest, OrderIsTheProgramsNotTheFiles) {
  tenSamples();
  std::vector<InputSpec> inputs = {{"y", DType::I64, {1}}, {"x", DType::F32, {1, 2}}};
  auto source = DataSource::open(options(path("d.safetensors")), inputs);
  ASSERT_TRUE(source);
  std::vector<int64_t> y(1);
  std::vector<float> x(2);
  void *destinations[] = {y.data(), x.data()};
  ASSERT_TRUE(source->fill(4, 0, 0, destinations));
  EXPECT_THAT(y, ElementsAre(4));
  EXPECT_THAT(x, ElementsAre(4, 4.5));
}

TEST_F(DataSourceTest, ShapesAndTypes) {
  tenSamples();
  auto withX = [&](DType dtype, std::vector<int64_t> shape) {
    return refusal(
        DataSource::open(options(path("d.safetensors")), {{"x", dtype, shape}, {"y", DType::I64, {1}}}));
  };
  EXPECT_THAT(withX(DType::F32, {1, 3}),
              HasSubstr("argument 'x' expects shape [samples, 3], but got [10, 2]"));
  EXPECT_THAT(withX(DType::F32, {1}), HasSubstr("expects shape [samples], but got [10, 2]"));
  EXPECT_THAT(withX(DType::F32, {1, 2, 1}), HasSubstr("expects shape [samples, 2, 1]"));
  EXPECT_THAT(withX(DType::I64, {1, 2}), HasSubstr("argument 'x' expects I64, but got F32"));
}

TEST_F(DataSourceTest, DimensionZeroIsTheMicroBatch) {
  tenSamples();
  for (std::vector<int64_t> shape : {std::vector<int64_t>{}, {2, 2}, {1, -1}})
    EXPECT_THAT(refusal(DataSource::open(options(path("d.safetensors")), {{"x", DType::F32, shape}})),
                HasSubstr("does not have the micro-batch of 1 as dimension 0"));
  EXPECT_THAT(refusal(DataSource::open(options(path("d.safetensors"), 0), xy(0))),
              HasSubstr("not between 1 and"));
  EXPECT_THAT(refusal(DataSource::open(options(path("d.safetensors")), {})), HasSubstr("no arguments"));
}

TEST_F(DataSourceTest, UnequalNumbersOfSamples) {
  char zeros[16] = {};
  ASSERT_TRUE(
      writeSafeTensors(path("d.safetensors"), std::vector<TensorSource>{{"a", FileDType::U8, {3}, zeros},
                                                                        {"b", FileDType::U8, {4}, zeros}}));
  EXPECT_THAT(refusal(DataSource::open(options(path("d.safetensors")),
                                       {{"a", DType::U8, {1}}, {"b", DType::U8, {1}}})),
              HasSubstr("argument 'b' has 4 samples, but the one before has 3"));
}

TEST_F(DataSourceTest, ShorterThanOneGlobalBatch) {
  tenSamples();
  EXPECT_TRUE(DataSource::open(options(path("d.safetensors"), 5, 1, 2), xy(5)));
  EXPECT_THAT(
      refusal(DataSource::open(options(path("d.safetensors"), 1, 3, 4), xy(1))),
      HasSubstr("has 10 samples, but one global batch needs 12 (1 samples * 3 micro-steps * 4 ranks)"));
}

TEST_F(DataSourceTest, UnknownExtension) {
  EXPECT_THAT(refusal(DataSource::open(options(path("d.csv")), xy(1)), ExitCode::Usage),
              HasSubstr("ends in .safetensors"));
}

TEST_F(DataSourceTest, FileThatIsChangedWhileItIsRead) {
  auto source = DataSource::open(tokens(13), ids(1, 4));
  ASSERT_TRUE(source);
  ASSERT_EQ(truncate(path("t.bin").c_str(), 4), 0);
  std::vector<int64_t> a(4), b(4);
  void *destinations[] = {a.data(), b.data()};
  Status status = source->fill(0, 0, 0, destinations); // would be SIGBUS for a file of many pages
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Io);
}

TEST_F(DataSourceTest, MisuseIsInternal) {
  auto source = DataSource::open(options(tenSamples(), 1, 2, 2), xy(1));
  ASSERT_TRUE(source);
  void *destinations[] = {nullptr, nullptr};
  EXPECT_EQ(source->fill(0, 2, 0, destinations).error().code, ExitCode::Internal);
  EXPECT_EQ(source->fill(0, 0, 2, destinations).error().code, ExitCode::Internal);
  EXPECT_EQ(source->fill(0, 0, 0, std::span(destinations, 1)).error().code, ExitCode::Internal);
  DataOptions later = options(tenSamples(), 1);
  later.firstStep = 5;
  auto resumed = DataSource::open(later, xy(1));
  ASSERT_TRUE(resumed);
  EXPECT_EQ(resumed->fill(4, 0, 0, destinations).error().code, ExitCode::Internal);
}

TEST_F(DataSourceTest, SpecsComeFromTheProgram) {
  Program program;
  program.buffers.resize(2);
  program.buffers[1].dtype = DType::I32;
  program.buffers[1].shape = {2, 8};
  program.inputs = {{"ids", 1, 50257, true, -100}};
  auto specs = inputSpecs(program);
  ASSERT_EQ(specs.size(), 1u);
  EXPECT_EQ(specs[0].name, "ids");
  EXPECT_EQ(specs[0].dtype, DType::I32);
  EXPECT_THAT(specs[0].shape, ElementsAre(2, 8));
  EXPECT_EQ(specs[0].indexLimit, 50257);
  EXPECT_TRUE(specs[0].hasIgnoreIndex);
  EXPECT_EQ(specs[0].ignoreIndex, -100);
  EXPECT_TRUE(specs[0].targets.empty());
  program.inputs[0].targets = {{1, 2}, {5, 3}};
  EXPECT_THAT(inputSpecs(program)[0].targets, ElementsAre(0, 1, 1, 0, 0, 1, 1, 1));
}
} // namespace
