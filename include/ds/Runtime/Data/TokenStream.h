//===- TokenStream.h - Tokens one after another in a .bin file -----------------===//
//
// Two dialects of the field: llm.c's, with a header of 256 words that says how wide a token is and how many
// there are, and nanoGPT's, which is nothing but tokens, so that the user must say how wide they are. They
// cannot be confused: llm.c's magic numbers would be token ids beyond any vocabulary.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_DATA_TOKENSTREAM_H
#define DS_RUNTIME_DATA_TOKENSTREAM_H

#include "ds/Runtime/Files/MappedFile.h"
#include "ds/Runtime/Formats/FileDType.h"
#include "ds/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ds::rt {

/// Bytes of one token.
enum class TokenWidth : uint8_t { U16 = 2, U32 = 4 };

/// "u16" or "u32", as `--token-dtype` spells them; nothing for another text.
std::optional<TokenWidth> parseTokenWidth(std::string_view text);

/// A verified stream, mapped.
class TokenStream {
public:
  /// `rawWidth` is that of a file without a header (absent: U16, nanoGPT's), and must agree with the header
  /// of one that has it. Usage: it disagrees. Corrupt: unknown version, or a size that is not what the header
  /// says. Io: it could not be read.
  static Result<TokenStream> open(const std::string &path, std::optional<TokenWidth> rawWidth);

  uint64_t size() const { return count; } ///< tokens
  TokenWidth width() const { return tokenWidth; }
  FileDType dtype() const { return tokenWidth == TokenWidth::U16 ? FileDType::U16 : FileDType::U32; }
  bool hasHeader() const { return dataOffset != 0; }
  std::span<const std::byte> data() const { return file.bytes().subspan(dataOffset); }
  const MappedFile &mapped() const { return file; }

private:
  TokenStream() = default;
  MappedFile file;
  TokenWidth tokenWidth = TokenWidth::U16;
  uint64_t count = 0;
  size_t dataOffset = 0;
};

} // namespace ds::rt

#endif // DS_RUNTIME_DATA_TOKENSTREAM_H
