//===- CharacterClasses.h - Letters, numbers and spaces -----------------------------===//
#ifndef DS_LIB_RUNTIME_TOKENIZER_CHARACTERCLASSES_H
#define DS_LIB_RUNTIME_TOKENIZER_CHARACTERCLASSES_H

#include <cstdint>

namespace ds::rt {

/// What GPT-2's pre-tokenizer tells apart: \s, \p{L}, \p{N} and the rest.
enum class CharacterClass : uint8_t { Space, Letter, Number, Other };
CharacterClass classOf(char32_t point);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TOKENIZER_CHARACTERCLASSES_H
