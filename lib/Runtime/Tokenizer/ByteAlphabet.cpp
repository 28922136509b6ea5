//===- ByteAlphabet.cpp - Bytes as characters that can be seen -------------------------===//
#include "ByteAlphabet.h"

#include "Files/Text.h"

#include <array>
#include <unordered_map>

namespace ds::rt {

/// By byte: the character that spells it.
static std::array<char32_t, 256> makeAlphabet() {
  const auto isSeen = [](unsigned byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
  };
  std::array<char32_t, 256> alphabet{};
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < alphabet.size(); ++byte)
    alphabet[byte] = isSeen(byte) ? byte : next++;
  return alphabet;
}

std::string spellByte(unsigned char byte) {
  static const std::array<char32_t, 256> alphabet = makeAlphabet();
  const char32_t point = alphabet[byte]; // below U+0800
  if (point < 0x80)
    return {static_cast<char>(point)};
  return {static_cast<char>(0xC0 | point >> 6), static_cast<char>(0x80 | (point & 0x3F))};
}

std::optional<std::string> bytesOf(std::string_view text) {
  static const auto bytes = [] {
    std::unordered_map<std::string, char> map;
    for (unsigned byte = 0; byte < 256; ++byte)
      map[spellByte(static_cast<unsigned char>(byte))] = static_cast<char>(byte);
    return map;
  }();
  std::string spelled;
  for (size_t at = 0; at < text.size();) {
    const unsigned length = utf8Length(text.substr(at));
    const auto found = bytes.find(std::string(text.substr(at, length)));
    if (length == 0 || found == bytes.end())
      return std::nullopt;
    spelled += found->second;
    at += length;
  }
  return spelled;
}

} // namespace ds::rt
