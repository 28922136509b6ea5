//===- TokenizerTest.cpp - Text as tokens, by a tokenizer.json ---------------------------===//
//
// The tokens below were found by hand from the list of merges. test/Run/sample-tokenizer.test compares longer
// texts of many scripts with another implementation.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Tokenizer/Tokenizer.h"

#include "Tokenizer/Merges.h"
#include "Tokenizer/Pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

using namespace ds;
using namespace ds::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

const std::string kVocabulary =
    R"({"h": 0, "e": 1, "l": 2, "o": 3, "Ġ": 4, "w": 5, "r": 6, "d": 7, "he": 8, "ll": 9, "hell": 10, "hello": 11,
        "Ġw": 12, "or": 13, "'": 14, "s": 15, "Ã": 17, "©": 18, "Ã©": 19})";
const std::string kMerges = R"(["h e", "l l", "he ll", "hell o", "Ġ w", ["o", "r"], "Ã ©"])";

/// A file whose "model", and whatever comes `besides`, are these.
std::string fileOf(const std::string &model, const std::string &besides = "") {
  return R"({"added_tokens": [{"id": 16, "content": "<|end|>", "special": true}],
             "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false})" +
         besides + R"(, "model": )" + model + "}";
}

std::string modelOf(const std::string &vocabulary = kVocabulary, const std::string &merges = kMerges,
                    const std::string &besides = "") {
  return R"({"type": "BPE")" + besides + R"(, "vocab": )" + vocabulary + R"(, "merges": )" + merges + "}";
}

std::vector<int64_t> tokensOf(const std::string &text, const std::string &file = fileOf(modelOf())) {
  const Result<Tokenizer> tokenizer = Tokenizer::parse(file, "t.json");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  const Result<std::vector<int64_t>> tokens = tokenizer->encode(text);
  EXPECT_TRUE(tokens) << tokens.error().message;
  return *tokens;
}

/// What is said of a file that is refused.
std::string refusal(const std::string &file) {
  const Result<Tokenizer> tokenizer = Tokenizer::parse(file, "t.json");
  return tokenizer ? "accepted"
                   : std::to_string(int(tokenizer.error().code)) + ": " + tokenizer.error().message;
}

TEST(Tokenizer, MergesBytesInTheOrderOfTheList) {
  EXPECT_THAT(tokensOf("hello"), ElementsAre(11));
  EXPECT_THAT(tokensOf("hel"), ElementsAre(8, 2));
  EXPECT_THAT(tokensOf("hello world's"), ElementsAre(11, 12, 13, 2, 7, 14, 15)); // "hello", " world", "'s"
  EXPECT_THAT(tokensOf("llll"), ElementsAre(9, 9));
  EXPECT_THAT(tokensOf("lll"), ElementsAre(9, 2)); // the leftmost of equals
  EXPECT_THAT(tokensOf("é"), ElementsAre(19));     // bytes C3 A9
  EXPECT_THAT(tokensOf(""), ElementsAre());
}

TEST(Tokenizer, FindsAddedTokensFirst) {
  EXPECT_THAT(tokensOf("he<|end|>llo<|end|>"), ElementsAre(8, 16, 9, 3, 16));
  const std::string two = R"({"added_tokens": [{"id": 16, "content": "he"}, {"id": 20, "content": "hell"}],
                              "pre_tokenizer": {"type": "ByteLevel"}, "model": )" +
                          modelOf() + "}";
  EXPECT_THAT(tokensOf("hello he", two), ElementsAre(20, 3, 4, 16)); // the longest of those that begin there
}

TEST(Tokenizer, AddsASpaceWhereTheFileAsksForIt) {
  const std::string file =
      R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true}, "model": )" + modelOf() + "}";
  EXPECT_THAT(tokensOf("w", file), ElementsAre(12));
  EXPECT_THAT(tokensOf(" w", file), ElementsAre(12));
}

TEST(Tokenizer, DecodesToBytes) {
  const Result<Tokenizer> tokenizer = Tokenizer::parse(fileOf(modelOf()), "t.json");
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->decode(12), " w");
  EXPECT_EQ(tokenizer->decode(17), "\xC3");
  EXPECT_EQ(tokenizer->decode(16), "<|end|>");
  EXPECT_EQ(tokenizer->decode(20), "");
  EXPECT_EQ(tokenizer->decode(-1), "");
}

TEST(Tokenizer, RefusesTextThatItCannotSpell) {
  const Result<Tokenizer> tokenizer = Tokenizer::parse(fileOf(modelOf()), "t.json");
  ASSERT_TRUE(tokenizer);
  const auto said = [&](const char *text) {
    const Result<std::vector<int64_t>> tokens = tokenizer->encode(text);
    return tokens ? "accepted" : tokens.error().message;
  };
  EXPECT_THAT(said("hex"), HasSubstr("model.vocab has no token for the byte 120 of the text"));
  EXPECT_THAT(said("he\xC3"), HasSubstr("not well-formed UTF-8"));
}

TEST(Tokenizer, ComposesNothing) {
  const Result<Tokenizer> tokenizer =
      Tokenizer::parse(fileOf(modelOf(), R"(, "normalizer": {"type": "NFC"})"), "t.json");
  ASSERT_TRUE(tokenizer);
  EXPECT_TRUE(tokenizer->encode("he\xC3\xA9"));
  const Result<std::vector<int64_t>> tokens = tokenizer->encode("he\xCC\x81"); // U+0301
  ASSERT_FALSE(tokens);
  EXPECT_THAT(tokens.error().message, HasSubstr("normalizer NFC: the text has characters from U+0300 on"));
}

TEST(Tokenizer, RefusesOtherKindsByName) {
  EXPECT_EQ(refusal(fileOf(R"({"type": "Unigram", "vocab": []})")),
            "3: 't.json': model.type: expects BPE, but got 'Unigram'");
  const auto file = [](const std::string &key) {
    return refusal(fileOf(modelOf(kVocabulary, kMerges, key)));
  };
  EXPECT_THAT(file(R"(, "byte_fallback": true)"), HasSubstr("model.byte_fallback: expects false"));
  EXPECT_THAT(file(R"(, "ignore_merges": true)"), HasSubstr("model.ignore_merges: expects false"));
  EXPECT_THAT(file(R"(, "end_of_word_suffix": "</w>")"),
              HasSubstr("model.end_of_word_suffix: expects none, but got '</w>'"));
  EXPECT_THAT(file(R"(, "dropout": 0.1)"), HasSubstr("model.dropout: expects none"));
  EXPECT_EQ(file(R"(, "continuing_subword_prefix": "", "dropout": null)"), "accepted");
  const auto besides = [](const std::string &key) { return refusal(fileOf(modelOf(), key)); };
  EXPECT_THAT(besides(R"(, "normalizer": {"type": "Lowercase"})"),
              HasSubstr("normalizer.type: expects NFC or none"));
  EXPECT_THAT(besides(R"(, "decoder": {"type": "WordPiece"})"), HasSubstr("decoder.type: expects ByteLevel"));
  EXPECT_THAT(besides(R"(, "post_processor": {"type": "TemplateProcessing",
                          "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]})"),
              HasSubstr("post_processor.single: expects the text alone"));
  EXPECT_EQ(
      besides(R"(, "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}]})"),
      "accepted");
  EXPECT_THAT(refusal(R"({"pre_tokenizer": {"type": "Sequence"}, "model": )" + modelOf() + "}"),
              HasSubstr("pre_tokenizer.type: expects ByteLevel, but got 'Sequence'"));
  EXPECT_THAT(
      refusal(R"({"pre_tokenizer": {"type": "ByteLevel", "use_regex": false}, "model": )" + modelOf() + "}"),
      HasSubstr("pre_tokenizer.use_regex: expects true"));
  EXPECT_THAT(besides(R"(, "added_tokens": [{"id": 16, "content": "<mask>", "lstrip": true}])"),
              HasSubstr("added_tokens[0].lstrip: expects false"));
}

TEST(Tokenizer, RefusesDamagedFiles) {
  EXPECT_EQ(refusal("{"), "5: 't.json': is no JSON object");
  EXPECT_EQ(refusal("{}"), "5: 't.json': has no \"model\", as a tokenizer.json has");
  EXPECT_THAT(refusal(fileOf(modelOf("{}"))), HasSubstr("5: 't.json': model.vocab has no tokens"));
  EXPECT_THAT(refusal(fileOf(modelOf(R"({"a": -1})", "[]"))),
              HasSubstr("model.vocab gives 'a' the number '-1'"));
  EXPECT_THAT(refusal(fileOf(modelOf(R"({"a": 16777216})", "[]"))), HasSubstr("expected one below 16777216"));
  EXPECT_THAT(refusal(fileOf(modelOf(kVocabulary, R"(["h x"])"))),
              HasSubstr("model.merges[0] is of 'x', which model.vocab does not have"));
  EXPECT_THAT(refusal(fileOf(modelOf(kVocabulary, R"(["he"])"))),
              HasSubstr("model.merges[0] is 'he', expected two tokens"));
  EXPECT_THAT(refusal(fileOf(modelOf(kVocabulary, "7"))), HasSubstr("model.merges is no list"));
  EXPECT_THAT(refusal(fileOf(modelOf(), R"(, "added_tokens": [{"id": 3}])")),
              HasSubstr("added_tokens[0] has no content and number"));
}

TEST(Pieces, AreTheMatchesOfTheExpression) {
  EXPECT_THAT(splitPieces("it's  42\n"), ElementsAre("it", "'s", " ", " 42", "\n"));
  EXPECT_THAT(splitPieces("a\n\n b!?'ll"), ElementsAre("a", "\n\n", " b", "!?'", "ll"));
  EXPECT_THAT(splitPieces("a \t "), ElementsAre("a", " \t "));
  EXPECT_THAT(splitPieces("\tx\xC2\xA0y"), ElementsAre("\t", "x", "\xC2\xA0", "y")); // no blank
}

/// The definition: the pair of the least rank, of these the first, each time over the whole list.
std::vector<uint32_t> mergeSlowly(std::vector<uint32_t> tokens,
                                  const std::vector<std::array<uint32_t, 3>> &list) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto &[left, right, merged] : list) {
      for (size_t at = 0; at + 1 < tokens.size() && !changed; ++at)
        if (tokens[at] == left && tokens[at + 1] == right) {
          tokens[at] = merged;
          tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at) + 1);
          changed = true;
        }
      if (changed)
        break;
    }
  }
  return tokens;
}

TEST(Merges, AreThoseOfTheDefinition) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::array<uint32_t, 3>> list;
    Merges merges;
    for (uint32_t token = 3; token < 12; ++token) { // each of two before it, no pair twice
      const std::array<uint32_t, 3> merge = {uint32_t(random() % token), uint32_t(random() % token), token};
      if (std::ranges::any_of(
              list, [&](const auto &other) { return other[0] == merge[0] && other[1] == merge[1]; }))
        continue;
      list.push_back(merge);
      merges.add(merge[0], merge[1], merge[2]);
    }
    std::vector<uint32_t> tokens(random() % 40);
    for (uint32_t &token : tokens)
      token = random() % 3;
    EXPECT_EQ(merges.apply(tokens), mergeSlowly(tokens, list));
  }
}

} // namespace
