//===- IndexedTokensTest.cpp - Megatron's .bin and .idx, right and damaged -----===//

#include "ds/Runtime/Data/IndexedTokens.h"
#include "DataFixture.h"
#include "IndexedFiles.h"

#include "gmock/gmock.h"

using namespace ds;
using namespace ds::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

class IndexedTokensTest : public DataSourceTest {
protected:
  Result<IndexedTokens> openPair(const IndexText &index, std::string_view data) {
    write("t.bin", data);
    return IndexedTokens::open(write("t.idx", index.bytes()), path("t.bin"));
  }
  std::string refusal(const IndexText &index, std::string_view data, ExitCode code = ExitCode::Corrupt) {
    Result<IndexedTokens> pair = openPair(index, data);
    EXPECT_FALSE(pair);
    if (pair)
      return "";
    EXPECT_EQ(pair.error().code, code) << pair.error().message;
    return pair.error().message;
  }
  using DataSourceTest::refusal;

  const std::string six = bytesOf<uint16_t>({7, 8, 9, 10, 11, 12});
};

TEST_F(IndexedTokensTest, EveryIntegerType) {
  const std::pair<uint8_t, FileDType> types[] = {{1, FileDType::U8},  {2, FileDType::I8},
                                                 {3, FileDType::I16}, {4, FileDType::I32},
                                                 {5, FileDType::I64}, {8, FileDType::U16}};
  for (auto [code, type] : types) {
    const uint64_t width = bitSize(type) / 8;
    Result<IndexedTokens> pair =
        openPair(IndexText::of({2, 0, 3}, width, code), std::string(5 * width, '\1'));
    ASSERT_TRUE(pair) << pair.error().message;
    EXPECT_EQ(pair->size(), 5u);
    EXPECT_EQ(pair->dtype(), type);
    EXPECT_EQ(pair->numDocuments(), 3u);
  }
}

TEST_F(IndexedTokensTest, FloatsAreNoTokens) {
  EXPECT_THAT(refusal(IndexText::of({1}, 8, 6), "12345678", ExitCode::Invalid), HasSubstr("is of F64, not"));
  EXPECT_THAT(refusal(IndexText::of({1}, 4, 7), "1234", ExitCode::Invalid), HasSubstr("is of F32, not"));
}

TEST_F(IndexedTokensTest, HeaderThatIsNone) {
  IndexText index = IndexText::of({6});
  index.magic[3] = 'X';
  EXPECT_THAT(refusal(index, six), HasSubstr("does not begin with 'MMIDIDX'"));
  index = IndexText::of({6});
  index.version = 2;
  EXPECT_THAT(refusal(index, six), HasSubstr("expects version 1, but got 2"));
  for (uint8_t code : {0, 9, 255})
    EXPECT_THAT(refusal(IndexText::of({6}, 2, code), six), HasSubstr("a type code from 1 to 8, but got"));
  write("t.bin", six);
  for (size_t length : {0, 8, 33}) {
    Result<IndexedTokens> cut =
        IndexedTokens::open(write("t.idx", IndexText::of({6}).bytes().substr(0, length)), path("t.bin"));
    ASSERT_FALSE(cut);
    EXPECT_THAT(cut.error().message, HasSubstr("a header of 34 bytes"));
  }
}

TEST_F(IndexedTokensTest, CountsAndSizes) {
  IndexText index = IndexText::of({2, 4});
  index.sequences = 3; // 34 + 3 * 12 + 3 * 8
  EXPECT_THAT(
      refusal(index, six),
      HasSubstr("3 sequences and 3 document borders take 94 bytes with the header, but the file has 82"));
  index = IndexText::of({2, 4});
  index.sequences = UINT64_MAX;
  EXPECT_THAT(refusal(index, six), HasSubstr("take 2^64 or more bytes"));
  index = IndexText::of({2, 4});
  index.borderCount = UINT64_MAX / 8 + 1; // 8 * borders wraps to 0
  EXPECT_THAT(refusal(index, six), HasSubstr("take 2^64 or more bytes"));
  index = IndexText::of({2, 4});
  index.tail = "12"; // one byte for each sequence
  EXPECT_THAT(refusal(index, six, ExitCode::Invalid), HasSubstr("several modalities"));
}

TEST_F(IndexedTokensTest, SequencesFillTheData) {
  EXPECT_THAT(refusal(IndexText::of({2, 3}), six), HasSubstr("the sequences take 10 bytes, but"));
  EXPECT_THAT(refusal(IndexText::of({2, 5}), six), HasSubstr("sequence 1 ends at byte 14, but"));
  EXPECT_THAT(refusal(IndexText::of({2, -1}), six), HasSubstr("sequence 1 has a length of -1"));
  IndexText index = IndexText::of({2, 4});
  index.positions[1] = 2;
  EXPECT_THAT(refusal(index, six), HasSubstr("sequence 1 begins at byte 2, but those before it end at 4"));
  index.positions[1] = -4;
  EXPECT_THAT(refusal(index, six), HasSubstr("begins at byte -4"));
  EXPECT_THAT(refusal(IndexText::of({INT32_MAX, INT32_MAX, 2}), six), HasSubstr("sequence 0 ends at"));
}

TEST_F(IndexedTokensTest, DocumentBorders) {
  auto with = [](std::vector<uint64_t> borders) {
    IndexText index = IndexText::of({2, 4});
    index.borders = std::move(borders);
    index.borderCount = index.borders.size();
    return index;
  };
  EXPECT_EQ(openPair(with({0, 2}), six)->numDocuments(), 1u); // of two sequences
  EXPECT_THAT(refusal(with({}), six), HasSubstr("has no document borders"));
  EXPECT_THAT(refusal(with({1, 2}), six), HasSubstr("border 0 is at sequence 1, but expects 0 to 0"));
  EXPECT_THAT(refusal(with({0, 2, 1}), six), HasSubstr("border 2 is at sequence 1, but expects 2 to 2"));
  EXPECT_THAT(refusal(with({0, 3}), six), HasSubstr("border 1 is at sequence 3"));
  EXPECT_THAT(refusal(with({0, 1}), six), HasSubstr("the last document ends at sequence 1 of 2"));
}

/// KiB of files in this process's memory.
long filesInMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "RssFile:") {
      status >> word;
      return std::stol(word);
    }
  return -1;
}

// A million empty sequences are 12 MB of index.
TEST_F(IndexedTokensTest, LittleOfALongIndexIsInMemory) {
  IndexText index = IndexText::of(std::vector<int32_t>(1 << 20, 0));
  write("t.bin", "");
  write("t.idx", index.bytes());
  const long before = filesInMemory();
  Result<IndexedTokens> pair = IndexedTokens::open(path("t.idx"), path("t.bin"));
  ASSERT_TRUE(pair) << pair.error().message;
  EXPECT_EQ(pair->numDocuments(), 1u << 20);
  ASSERT_GE(before, 0);
  EXPECT_LT(filesInMemory() - before, 4096);
}

TEST_F(IndexedTokensTest, NothingIsAnEmptyPair) {
  Result<IndexedTokens> pair = openPair(IndexText::of({}), "");
  ASSERT_TRUE(pair) << pair.error().message;
  EXPECT_EQ(pair->size(), 0u);
  EXPECT_EQ(pair->numDocuments(), 0u);
}

// Windows run over the borders of documents: 6 tokens are two windows of 2 + 1 at stride 2.
TEST_F(IndexedTokensTest, IsDataUnderThreeNames) {
  write("t.bin", six);
  write("t.idx", IndexText::of({1, 5}).bytes());
  std::string sign;
  for (const char *name : {"t.idx", "t.bin", "t"}) {
    auto source = DataSource::open(options(path(name)), ids(1, 2));
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_THAT(source->describe(), HasSubstr("6 tokens (U16) in 2 documents, 2 samples of 2"));
    int64_t inputs[2], targets[2];
    void *destinations[] = {inputs, targets};
    ASSERT_TRUE(source->fill(1, 0, 0, destinations));
    EXPECT_THAT(inputs, ElementsAre(9, 10));
    EXPECT_THAT(targets, ElementsAre(10, 11));
    EXPECT_TRUE(sign.empty() || source->sign() == sign);
    sign = source->sign();
  }
  write("t.idx", IndexText::of({2, 4}).bytes());
  EXPECT_NE(DataSource::open(options(path("t")), ids(1, 2))->sign(), sign); // also of the .idx
}

TEST_F(IndexedTokensTest, IndexWithoutData) {
  write("t.idx", IndexText::of({1, 5}).bytes());
  EXPECT_THAT(refusal(DataSource::open(options(path("t.idx")), ids(1, 2)), ExitCode::Io),
              HasSubstr("t.bin'"));
  EXPECT_THAT(refusal(DataSource::open(options(path("u.idx")), ids(1, 2)), ExitCode::Io),
              HasSubstr("u.idx'"));
}

TEST_F(IndexedTokensTest, TokenTypeIsTheIndexsAlone) {
  write("t.bin", six);
  write("t.idx", IndexText::of({6}).bytes());
  DataOptions wide = options(path("t.bin"));
  wide.tokenWidth = TokenWidth::U16;
  EXPECT_THAT(refusal(DataSource::open(wide, ids(1, 2)), ExitCode::Usage),
              HasSubstr("--token-dtype need not"));
}
} // namespace
