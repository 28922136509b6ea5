//===- TokenizerParts.h - What a tokenizer.json says ------------------------------------===//
#ifndef DS_LIB_RUNTIME_TOKENIZER_TOKENIZERPARTS_H
#define DS_LIB_RUNTIME_TOKENIZER_TOKENIZERPARTS_H

#include "Merges.h"

#include "ds/Support/Error.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ds::rt {

/// A token that is found in text before anything else is done with it.
struct AddedToken {
  std::string content;
  uint32_t token;
};

struct TokenizerParts {
  static constexpr uint32_t kNone = UINT32_MAX;

  std::string name;                     ///< for messages
  std::vector<std::string> bytes;       ///< by token; empty where there is none of that number
  std::array<uint32_t, 256> byteTokens; ///< kNone where the vocabulary has none for a byte
  Merges merges;
  std::vector<AddedToken> added; ///< the longest first
  bool addsSpace = false;        ///< text that does not begin with a space is given one
  bool normalizes = false;       ///< to Unicode's form NFC, in which text below U+0300 always is
};

/// Reads a tokenizer.json; errors as Tokenizer::open says.
Result<std::unique_ptr<const TokenizerParts>> readTokenizer(std::string_view text, const std::string &name);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TOKENIZER_TOKENIZERPARTS_H
