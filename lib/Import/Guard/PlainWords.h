//===- PlainWords.h - What a library's error says, for people -------------------===//
#ifndef DS_LIB_IMPORT_GUARD_PLAINWORDS_H
#define DS_LIB_IMPORT_GUARD_PLAINWORDS_H

#include <string>
#include <string_view>

namespace ds {

/// LibTorch's message in one line of at most `limit` bytes: without its stack, the places in its own sources
/// and the excerpt of the model's code, of which the file and the line remain.
std::string plainWords(std::string_view text, size_t limit = 300);

/// True when the message says that memory could not be had.
bool tellsOfMemory(std::string_view text);

} // namespace ds

#endif // DS_LIB_IMPORT_GUARD_PLAINWORDS_H
