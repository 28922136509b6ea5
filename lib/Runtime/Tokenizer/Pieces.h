//===- Pieces.h - Text in the pieces that merges stay within -------------------------===//
#ifndef DS_LIB_RUNTIME_TOKENIZER_PIECES_H
#define DS_LIB_RUNTIME_TOKENIZER_PIECES_H

#include <string_view>
#include <vector>

namespace ds::rt {

/// `text`, which is UTF-8, in the matches of GPT-2's expression, which leave nothing out:
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// "it's  42\n" is "it", "'s", " ", " 42", "\n". Spaces before a word are a piece but for the last one, which
/// belongs to the word.
std::vector<std::string_view> splitPieces(std::string_view text);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TOKENIZER_PIECES_H
