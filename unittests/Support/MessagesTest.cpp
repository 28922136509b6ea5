//===- MessagesTest.cpp - What a reader sees of names and long lines ---------------===//
#include "ds/Support/Messages.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace ds;

TEST(Messages, NamesHaveNoControlCharacters) {
  EXPECT_EQ(printableName("a\x1b[31m\nb\x7f"), "a\\x1b[31m\\x0ab\\x7f");
  EXPECT_EQ(printableName("h\xc3\xa9"), "h\xc3\xa9");
}

TEST(Messages, TextKeepsItsOwnLineBreaksAlone) {
  char tool[] = "ds-opt", path[] = "gpt\nds-opt: error: no", option[] = "--config=c\nd.json";
  char *arguments[] = {tool, path, option};
  rememberArguments(3, arguments);
  EXPECT_EQ(printableText("first\nsecond \x1b[2J"), "first\nsecond \\x1b[2J");
  EXPECT_EQ(printableText("gpt\nds-opt: error: no: not there"), "gpt\\x0ads-opt: error: no: not there");
  EXPECT_EQ(printableText("cannot read 'c\nd.json'"), "cannot read 'c\\x0ad.json'");
}

TEST(Messages, LinesEndBetweenWords) {
  EXPECT_EQ(wrapLines("one two three", 0, 4), "one two three");
  EXPECT_EQ(wrapLines("one two three", 13, 2), "one two three");
  EXPECT_EQ(wrapLines("one two three", 12, 2), "one two\n  three");
  EXPECT_EQ(wrapLines("  --save DIR  where to\n  --x", 15, 4), "  --save DIR\n    where to\n  --x");
  EXPECT_EQ(wrapLines("a https://a-very-long-word b", 8, 2), "a\n  https://a-very-long-word\n  b");
  EXPECT_EQ(wrapLines("\xc3\xa9\xc3\xa9 \xc3\xa9", 4, 2),
            "\xc3\xa9\xc3\xa9 \xc3\xa9"); // 4 characters, 7 bytes
}

TEST(Messages, AnErrorFitsSixtyColumns) {
  const Error error{ExitCode::Usage, "there is no option --confg of this tool, which has some thirty others",
                    "did you mean --config? ds-opt --help lists the options, each with what it does"};
  const std::string text = spellError("ds-opt", error, 60);
  size_t longest = 0, start = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; start = end + 1, end = text.find('\n', start))
    longest = std::max(longest, end - start);
  EXPECT_LE(longest, 60u) << text;
  EXPECT_EQ(spellError("ds-opt", error, 0),
            "ds-opt: error: " + error.message + "\n  hint: " + error.hint + "\n");
}
