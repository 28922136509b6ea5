//===- ParserTest.cpp - What is read as JSON and what is refused where ---------------===//
//
// Through the public reader: accepted spellings all mean the same configuration, refused ones name their
// place.
//
//===---------------------------------------------------------------------------===//
#include "ConfigTestUtil.h"
#include "Value.h"

using namespace ds;
using namespace ds::config;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Parser, AcceptsHjsonLiberties) {
  for (const char *text : {
           R"({"train_batch_size": 8})",
           "{'train_batch_size': 8}",
           "{train_batch_size: 8}",
           "{train_batch_size: 8,}",
           "# comment\n{ // comment\n /* comment\n */ train_batch_size: 8 # comment\n}",
           "{train_batch_size: 8\n steps_per_print: 10\n}",
           "\r\n{\r\n\t\"train_batch_size\"\t:\t8\r\n}\r\n",
           R"({"train\u005fbatch\u005fsize": 8})",
           "{train_batch_size: 8e0}",
           "{train_batch_size: 0.8e1}",
           "{train_batch_size: 80e-1}",
           "{train_batch_size: 8.000}",
       })
    EXPECT_EQ(valueOf(read(text), "train_batch_size"), "8") << text;
}

namespace {
struct Bad {
  std::string text;
  const char *message; ///< its head, from the place on
  const char *hint = "";
};
} // namespace

TEST(Parser, RefusesAtThePlace) {
  const Bad cases[] = {
      {"", "c:1:1 (byte 0): expects a value, but got the end of the text"},
      {"[]", "c:1:1 (byte 0): expects an object, but got a list of 0"},
      {"7", "c:1:1 (byte 0): expects an object, but got the number 7"},
      {"\xEF\xBB\xBF{}", "c:1:1 (byte 0): the text starts with a byte order mark", "UTF-8"},
      {std::string("\xFF\xFE{\0", 4), "c:1:1 (byte 0): the text starts with a byte order mark"},
      {"{\n  \"train_batch_size\": 8,\n  \"train_batch_size\": 9\n}", "c:3:3 (byte 29): duplicate key",
       "line 2"},
      {"{fp16: {enabled: true, enabled: true}}", "c:1:24 (byte 23): duplicate key \"enabled\""},
      {"{train_batch_size: NaN}", "c:1:20 (byte 19): \"NaN\" is not a number"},
      {"{train_batch_size: -Infinity}", "c:1:20 (byte 19): \"-Infinity\" is not a number"},
      {"{train_batch_size: 9223372036854775808}",
       "c:1:20 (byte 19): the integer 9223372036854775808 is outside"},
      {"{train_batch_size: 18446744073709551624}",
       "c:1:20 (byte 19): the integer 18446744073709551624 is outside"},
      {"{gradient_clipping: 1e999}", "c:1:21 (byte 20): the number 1e999 is outside the range of a double"},
      {"{gradient_clipping: 1e-999}", "c:1:21 (byte 20): the number 1e-999 is outside the range of a double"},
      {"{gradient_clipping: 01}", "c:1:21 (byte 20): \"01\" is not a number"},
      {"{gradient_clipping: 1.}", "c:1:21 (byte 20): \"1.\" is not a number"},
      {"{gradient_clipping: .5}", "c:1:21 (byte 20): expects a value, but got the unquoted text \".5\""},
      {"{gradient_clipping: 1_000}", "c:1:21 (byte 20): \"1_000\" is not a number"},
      {"{gradient_clipping: 0x10}", "c:1:21 (byte 20): \"0x10\" is not a number"},
      {"{fp16: {enabled: True}}", "c:1:18 (byte 17): expects a value, but got \"True\"",
       "true, false or null"},
      {"{optimizer: {type: AdamW}}", "c:1:20 (byte 19): expects a value, but got the unquoted text \"AdamW\"",
       "quotes"},
      {"{train_batch_size 8}",
       "c:1:19 (byte 18): expects ':' after the key \"train_batch_size\", but got \"8\""},
      {"{train_batch_size: 8 steps_per_print: 1}",
       "c:1:22 (byte 21): expects ',' or '}', but got \"steps_per_print\""},
      {"{train_batch_size: 8", "c:1:1 (byte 0): the object does not end"},
      {"{a: [1, 2", "c:1:5 (byte 4): the list does not end"},
      {"{a: \"b", "c:1:5 (byte 4): the string does not end"},
      {"{a: \"b\nc\"}", "c:1:7 (byte 6): a string may not hold a control character"},
      {"{a: '''b'''}", "c:1:5 (byte 4): multi-line strings are not accepted"},
      {"{a: \"\\x\"}", "c:1:6 (byte 5): unknown escape"},
      {"{a: \"\\u12g4\"}", "c:1:10 (byte 9): expects four hexadecimal digits"},
      {"{a: \"\\ud800\"}", "c:1:6 (byte 5): half of a surrogate pair"},
      {"{a: \"\\u0000\"}", "c:1:6 (byte 5): a string may not hold a zero byte"},
      {"{a: \"\xC0\xAF\"}", "c:1:6 (byte 5): the string is not UTF-8"},
      {"{a: \"\xED\xA0\x80\"}", "c:1:6 (byte 5): the string is not UTF-8"},
      {"{\xFF: 1}", "c:1:2 (byte 1): expects a key, but got a byte that is not UTF-8"},
      {"{} {}", "c:1:4 (byte 3): expects the end of the text, but got \"{\""},
      {"{} /* no end", "c:1:4 (byte 3): the comment does not end"},
      {"{a: 1,, b: 2}", "c:1:7 (byte 6): expects a key, but got \",\""},
  };
  for (const Bad &bad : cases) {
    Result<Config> config = read(bad.text);
    EXPECT_THAT(told(config), StartsWith(bad.message)) << bad.text;
    if (!config) {
      EXPECT_EQ(config.error().code, ExitCode::Invalid) << bad.text;
      EXPECT_THAT(config.error().hint, HasSubstr(bad.hint)) << bad.text;
    }
  }
}

TEST(Parser, BoundsDepthAndSize) {
  std::string bomb = "{a: " + std::string(100000, '[') + std::string(100000, ']') + "}";
  EXPECT_THAT(told(read(bomb)), HasSubstr("expects at most 64 levels of nesting, but got more"));
  std::string objects;
  for (int i = 0; i < 50000; ++i)
    objects += "{a:";
  EXPECT_THAT(told(read(objects)), HasSubstr("at most 64 levels"));
  EXPECT_THAT(told(read("{}" + std::string((16 << 20), ' '))), HasSubstr("expects at most 16777216 bytes"));
}

TEST(Parser, ReadsIntegersExactly) {
  EXPECT_EQ(exactInteger("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(exactInteger("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(exactInteger("9223372036854775808"), std::nullopt);
  EXPECT_EQ(exactInteger("922337203685477580.7e1"), INT64_MAX); // a double would round it to 2^63
  EXPECT_EQ(exactInteger("5e8"), 500000000);
  EXPECT_EQ(exactInteger("2.50e1"), 25);
  EXPECT_EQ(exactInteger("1e18"), 1000000000000000000);
  EXPECT_EQ(exactInteger("1e19"), std::nullopt);
  EXPECT_EQ(exactInteger("2.5"), std::nullopt);
  EXPECT_EQ(exactInteger("1e-1"), std::nullopt);
  EXPECT_EQ(exactInteger("0e99999999999999999999"), 0);
  EXPECT_EQ(exactInteger("1e99999999999999999999"), std::nullopt);
  EXPECT_EQ(exactInteger("-0.0"), 0);
}

TEST(Parser, ManyMistakesTakeBoundedTimeAndSpace) {
  std::string text = "{";
  for (int i = 0; i < 100000; ++i)
    text += "grandient_" + std::to_string(i) + ": 1,\n";
  Result<Config> config = read(text + "}");
  ASSERT_FALSE(config);
  EXPECT_LT(config.error().message.size(), 20000u);
  EXPECT_THAT(config.error().message, HasSubstr("... and 99950 more"));
}
