//===- LineErrors.h - What ds-opt says of a command line that it does not take ---===//
#ifndef DS_TOOLS_DS_OPT_COMMANDLINE_LINEERRORS_H
#define DS_TOOLS_DS_OPT_COMMANDLINE_LINEERRORS_H

#include "ds/Support/Error.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace ds::opt {

/// Prints an error the way all tools do, and gives its exit code.
ExitCode complain(const Error &error);

/// Has a help that is asked for, and that LLVM prints, fit a terminal that is narrow. Called before the line
/// is parsed.
void fitHelp(int argc, char **argv);

/// What `parse` has written to standard error where it answers no; nothing where it answers yes. Some of what
/// LLVM's parser says goes there whichever stream it is given, so that the descriptor itself is led to memory
/// meanwhile.
std::optional<std::string> errorsOf(llvm::function_ref<bool()> parse);

/// What LLVM's parser has said of a line, as an error of ours: its first mistake alone, with the words that a
/// value may be or the option that is nearest.
Error spellLineError(llvm::StringRef said);

} // namespace ds::opt

#endif // DS_TOOLS_DS_OPT_COMMANDLINE_LINEERRORS_H
