//===- TokenStreamTest.cpp - Both dialects of .bin -----------------------------===//

#include "ds/Runtime/Data/TokenStream.h"
#include "TestFiles.h"

#include "gmock/gmock.h"

using namespace ds;
using namespace ds::rt;
using testing::HasSubstr;

namespace {

std::string llmc(int32_t magic, int32_t version, int32_t count, std::string_view tokens) {
  std::vector<int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return bytesOf(header) + std::string(tokens);
}

class TokenStreamTest : public FormatsTest {
protected:
  std::string refusal(std::string_view bytes, ExitCode code, std::optional<TokenWidth> width = std::nullopt) {
    auto stream = TokenStream::open(write("t.bin", bytes), width);
    EXPECT_FALSE(stream);
    if (stream)
      return "";
    EXPECT_EQ(stream.error().code, code) << stream.error().message;
    return stream.error().message;
  }
};

TEST_F(TokenStreamTest, RawTokens) {
  auto stream = TokenStream::open(write("t.bin", bytesOf<uint16_t>({1, 2, 3})), TokenWidth::U16);
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->size(), 3u);
  EXPECT_EQ(stream->dtype(), FileDType::U16);
  EXPECT_FALSE(stream->hasHeader());
  auto wide = TokenStream::open(write("t.bin", bytesOf<uint32_t>({1, 2, 3})), TokenWidth::U32);
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->size(), 3u);
  EXPECT_EQ(wide->dtype(), FileDType::U32);
}

TEST_F(TokenStreamTest, RawIsSixteenBitsWideUnlessSaid) {
  Result<TokenStream> stream = TokenStream::open(write("t.bin", bytesOf<uint16_t>({1, 2, 3})), std::nullopt);
  ASSERT_TRUE(stream) << stream.error().message;
  EXPECT_EQ(stream->size(), 3u);
  EXPECT_EQ(stream->dtype(), FileDType::U16);
}

TEST_F(TokenStreamTest, RawNeedsWholeTokens) {
  EXPECT_THAT(refusal("abc", ExitCode::Corrupt, TokenWidth::U16), HasSubstr("3 bytes"));
  EXPECT_THAT(refusal("abcdef", ExitCode::Corrupt, TokenWidth::U32), HasSubstr("u32"));
}

TEST_F(TokenStreamTest, EmptyIsEmpty) {
  auto stream = TokenStream::open(write("t.bin", ""), TokenWidth::U16);
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->size(), 0u);
}

TEST_F(TokenStreamTest, HeaderSaysTheWidth) {
  auto gpt2 =
      TokenStream::open(write("t.bin", llmc(20240520, 1, 3, bytesOf<uint16_t>({7, 8, 9}))), std::nullopt);
  ASSERT_TRUE(gpt2) << gpt2.error().message;
  EXPECT_EQ(gpt2->size(), 3u);
  EXPECT_EQ(gpt2->width(), TokenWidth::U16);
  EXPECT_TRUE(gpt2->hasHeader());
  EXPECT_EQ(int(gpt2->data()[0]), 7);
  auto llama =
      TokenStream::open(write("t.bin", llmc(20240801, 7, 2, bytesOf<uint32_t>({7, 8}))), TokenWidth::U32);
  ASSERT_TRUE(llama) << llama.error().message;
  EXPECT_EQ(llama->width(), TokenWidth::U32);
  EXPECT_EQ(llama->size(), 2u);
}

TEST_F(TokenStreamTest, WidthMayNotContradictTheHeader) {
  EXPECT_THAT(refusal(llmc(20240520, 1, 1, "ab"), ExitCode::Usage, TokenWidth::U32),
              HasSubstr("header says u16, but --token-dtype says u32"));
}

TEST_F(TokenStreamTest, VersionsAndCounts) {
  EXPECT_THAT(refusal(llmc(20240520, 2, 1, "ab"), ExitCode::Corrupt), HasSubstr("expects version 1"));
  EXPECT_THAT(refusal(llmc(20240801, 1, 1, "abcd"), ExitCode::Corrupt), HasSubstr("expects version 7"));
  EXPECT_THAT(refusal(llmc(20240520, 1, -1, ""), ExitCode::Corrupt), HasSubstr("-1 tokens"));
  EXPECT_THAT(refusal(llmc(20240520, 1, 2, "abc"), ExitCode::Corrupt),
              HasSubstr("2 u16 tokens take 1028 bytes with it, but the file has 1027"));
  EXPECT_THAT(refusal(llmc(20240520, 1, 1, "abcd"), ExitCode::Corrupt), HasSubstr("the file has 1028"));
  EXPECT_THAT(refusal(llmc(20240520, 1, 5, "").substr(0, 500), ExitCode::Corrupt),
              HasSubstr("the file has 500"));
}

TEST_F(TokenStreamTest, MultipleChoiceFilesAreNamed) {
  EXPECT_THAT(refusal(llmc(20240522, 1, 1, "ab"), ExitCode::Invalid), HasSubstr("multiple-choice"));
}

TEST_F(TokenStreamTest, WidthSpellings) {
  EXPECT_EQ(parseTokenWidth("u16"), TokenWidth::U16);
  EXPECT_EQ(parseTokenWidth("u32"), TokenWidth::U32);
  EXPECT_FALSE(parseTokenWidth("i32"));
}
} // namespace
