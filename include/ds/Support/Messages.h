//===- Messages.h - How what the tools say reaches a reader ------------------------===//
//
// Messages hold names that others chose: paths, keys, names of tensors. A control character in one moves the
// cursor or starts a line that looks like a message of its own, so none is written as it is. On a terminal
// lines end between words, for a terminal breaks them anywhere.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_SUPPORT_MESSAGES_H
#define DS_SUPPORT_MESSAGES_H

#include "ds/Support/Error.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace ds {

/// `text` as one line: every control character as \xNN, line breaks too.
std::string printableName(std::string_view text);

/// `text` as a message shows it: control characters but line breaks as \xNN, and names of the command
/// line that have line breaks (`rememberArguments`) in one line.
std::string printableText(std::string_view text);

/// Keeps those names among the arguments that have line breaks. Called once, by main.
void rememberArguments(int argc, char **argv);

/// `text` in lines of at most `columns` characters, broken at spaces; each line that a break makes is
/// indented by `indent`. A word that is longer stays whole. 0 columns: as it is.
std::string wrapLines(std::string_view text, size_t columns, size_t indent);

/// Columns of the terminal behind `descriptor`; 0 where there is none, or one that does not say.
size_t terminalColumns(int descriptor);

/// "TOOL: error: message" and its hint, printable, in lines of at most `columns`.
std::string spellError(std::string_view tool, const Error &error, size_t columns);

} // namespace ds

#endif // DS_SUPPORT_MESSAGES_H
