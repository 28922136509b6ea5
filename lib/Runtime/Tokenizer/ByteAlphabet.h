//===- ByteAlphabet.h - Bytes as characters that can be seen ---------------------------===//
#ifndef DS_LIB_RUNTIME_TOKENIZER_BYTEALPHABET_H
#define DS_LIB_RUNTIME_TOKENIZER_BYTEALPHABET_H

#include <optional>
#include <string>
#include <string_view>

namespace ds::rt {

/// How the keys of a byte-level vocabulary spell a byte, in UTF-8: as the character of that number where it
/// can be seen, "a" or "é", and as one from U+0100 on otherwise, in order: a space is "Ġ".
std::string spellByte(unsigned char byte);

/// The bytes that `text` spells; none where a character spells no byte.
std::optional<std::string> bytesOf(std::string_view text);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TOKENIZER_BYTEALPHABET_H
