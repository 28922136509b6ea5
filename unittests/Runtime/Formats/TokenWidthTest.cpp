//===- TokenWidthTest.cpp - How wide the tokens of a file without header are -------===//

#include "DataFixture.h"

#include "gmock/gmock.h"

using namespace ds;
using namespace ds::rt;
using testing::HasSubstr;

namespace {

class TokenWidthTest : public DataSourceTest {};

/// Inputs of a model with so many tokens.
std::vector<InputSpec> vocabulary(int64_t tokens) {
  return {{"ids", DType::I64, {1, 4}, tokens}, {"targets", DType::I64, {1, 4}, tokens, true, -100}};
}

TEST_F(TokenWidthTest, SixteenBitsAreNotAssumedForALargerVocabulary) {
  DataOptions raw = options(write("t.bin", bytesOf<uint32_t>({70000, 2, 128255, 4, 5, 6, 7, 8, 9})));
  EXPECT_THAT(
      refusal(DataSource::open(raw, vocabulary(128256))),
      HasSubstr(
          "t.bin': has no header, so that its tokens are read as u16 of 16 bits, but argument 'ids' has "
          "a vocabulary of 128256, and 16 bits tell 65536 tokens apart"));
  EXPECT_THAT(DataSource::open(raw, vocabulary(128256)).error().hint, HasSubstr("--token-dtype u32"));
  EXPECT_THAT(refusal(DataSource::open(options("1:" + raw.path), vocabulary(65537))), HasSubstr("65537"));
  EXPECT_TRUE(DataSource::open(raw, vocabulary(65536)));
  for (const TokenWidth width : {TokenWidth::U16, TokenWidth::U32}) {
    raw.tokenWidth = width; // somebody has said so
    EXPECT_TRUE(DataSource::open(raw, vocabulary(128256)));
  }
}

TEST_F(TokenWidthTest, HalvesOfTokensAreNoTokens) {
  std::vector<uint32_t> small(64);
  std::iota(small.begin(), small.end(), 1u);
  DataOptions raw = options(write("t.bin", bytesOf(small)));
  EXPECT_THAT(refusal(DataSource::open(raw, vocabulary(256))),
              HasSubstr("but every second one at its beginning is 0, as in a file of u32"));
  raw.tokenWidth = TokenWidth::U16;
  EXPECT_TRUE(DataSource::open(raw, vocabulary(256)));
  EXPECT_TRUE(DataSource::open(options(write("z.bin", std::string(256, '\0'))), vocabulary(256)))
      << "zeros are as wide as one likes";
  EXPECT_TRUE(
      DataSource::open(options(write("s.bin", bytesOf<uint16_t>({1, 0, 2, 0, 3, 0}))), vocabulary(256)))
      << "too few to tell";
}

} // namespace
