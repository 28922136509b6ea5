//===- InputGuard.h - Looks at MLIR before it is read -----------------------------===//
//
// MLIR's parsers are made for files that a compiler wrote: the reader of bytecode dies of many damaged files,
// and that of text uses the stack for every level of nesting. Bytecode is therefore read in a process of its
// own first, which may die; text must not be nested deeper than any model is.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_TOOLS_DSOPT_COMMANDLINE_INPUTGUARD_H
#define DS_TOOLS_DSOPT_COMMANDLINE_INPUTGUARD_H

#include "ds/Support/Error.h"

#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace ds::opt {

/// Deepest nesting of brackets in text: modules, functions, regions, attributes and types have about ten.
constexpr unsigned kDeepest = 200;

/// The deepest nesting of (), [], {} and <> in MLIR text, outside strings and comments.
unsigned nestingOf(llvm::StringRef text);

/// Refuses a file of MLIR (or standard input, "-", which stays readable) that would be the end of its reader:
/// Corrupt for bytecode, Invalid for text. Must run before the first thread. A file that cannot be opened is
/// left to who reads it.
Status guardInput(const std::string &path, mlir::DialectRegistry &registry);

/// Refuses a file of MLIR text (or standard input, "-") that cannot be parsed, after the diagnostics that say
/// why: Invalid. They come from a process of its own, for the parser of LLVM 19.1 writes to memory that it
/// has freed when it gives up on a text that uses a value which is not there. Bytecode passes. Must run after
/// guardInput and before the first thread.
Status guardText(const std::string &path, mlir::DialectRegistry &registry);

} // namespace ds::opt

#endif // DS_TOOLS_DSOPT_COMMANDLINE_INPUTGUARD_H
