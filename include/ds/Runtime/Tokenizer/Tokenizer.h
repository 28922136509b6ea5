//===- Tokenizer.h - Text as tokens, by a tokenizer.json ---------------------------------===//
//
// Hugging Face's tokenizer.json of the kind that GPT-2 has, and its descendants: byte-level BPE. Text is cut
// at added tokens, the rest into pieces by GPT-2's expression, a piece into bytes, and neighbouring tokens of
// a piece are merged in the order of the file. Any text has tokens, and any tokens are bytes again.
//
// What the file asks for beyond that is refused by its key, for other tokens would be other text to a model.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_TOKENIZER_TOKENIZER_H
#define DS_RUNTIME_TOKENIZER_TOKENIZER_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ds::rt {

struct TokenizerParts;

class Tokenizer {
public:
  /// Reads the file at `path`. Io: it cannot be read. Corrupt: it is no tokenizer.json. Invalid: it is of
  /// another kind.
  static Result<Tokenizer> open(const std::string &path);
  /// The same of the file's text; `name` is for messages.
  static Result<Tokenizer> parse(std::string_view text, const std::string &name);
  ~Tokenizer();
  Tokenizer(Tokenizer &&) noexcept;

  /// The tokens of `text`. Usage: it is not UTF-8. Invalid: the vocabulary has no token for one of its bytes.
  Result<std::vector<int64_t>> encode(std::string_view text) const;

  /// The bytes that a token stands for; empty where the vocabulary has none of this number. One token may end
  /// within a character.
  std::string_view decode(int64_t token) const;

private:
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);
  std::unique_ptr<const TokenizerParts> parts;
};

} // namespace ds::rt

#endif // DS_RUNTIME_TOKENIZER_TOKENIZER_H
