//===- Pieces.cpp - Text in the pieces that merges stay within -----------------------===//
#include "Pieces.h"

#include "CharacterClasses.h"
#include "Files/Text.h"

#include <algorithm>

namespace ds::rt {
namespace {

/// A code point, and where it begins.
struct Character {
  size_t begin;
  CharacterClass kind;
  bool isBlank; ///< U+0020 itself, which a word takes along
};

/// The code point of a well-formed sequence of `length` bytes.
char32_t decode(std::string_view text, unsigned length) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  char32_t point = length == 1 ? byte(0) : byte(0) & (0x7FU >> length);
  for (unsigned at = 1; at < length; ++at)
    point = point << 6 | (byte(at) & 0x3FU);
  return point;
}

std::vector<Character> decodeAll(std::string_view text) {
  std::vector<Character> characters;
  for (size_t at = 0; at < text.size();) {
    const unsigned length = std::max(1U, utf8Length(text.substr(at)));
    const char32_t point = decode(text.substr(at, length), length);
    characters.push_back({at, classOf(point), point == ' '});
    at += length;
  }
  return characters;
}

/// Bytes of the contraction that `text` begins with, 0 without.
size_t contractionLength(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(ending))
      return ending.size();
  return 0;
}

} // namespace

/// The character behind the piece that begins at `first`.
static size_t endOfPiece(std::string_view text, const std::vector<Character> &characters, size_t first) {
  // All of a contraction is ASCII: as many characters as bytes.
  if (const size_t length = contractionLength(text.substr(characters[first].begin)))
    return first + length;
  const auto endOfRun = [&](size_t from) {
    size_t end = from;
    while (end < characters.size() && characters[end].kind == characters[from].kind)
      ++end;
    return end;
  };
  const size_t word = first + (characters[first].isBlank ? 1 : 0);
  if (word < characters.size() && characters[word].kind != CharacterClass::Space)
    return endOfRun(word);
  const size_t end = endOfRun(first); // of spaces
  return end == characters.size() || end == first + 1 ? end : end - 1;
}

std::vector<std::string_view> splitPieces(std::string_view text) {
  const std::vector<Character> characters = decodeAll(text);
  std::vector<std::string_view> pieces;
  for (size_t first = 0; first < characters.size();) {
    const size_t end = endOfPiece(text, characters, first);
    const size_t begin = characters[first].begin;
    pieces.push_back(
        text.substr(begin, (end < characters.size() ? characters[end].begin : text.size()) - begin));
    first = end;
  }
  return pieces;
}

} // namespace ds::rt
