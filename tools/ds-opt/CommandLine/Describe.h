//===- Describe.h - --version of ds-opt, and a description for manuals and shells ---===//
#ifndef DS_TOOLS_DS_OPT_COMMANDLINE_DESCRIBE_H
#define DS_TOOLS_DS_OPT_COMMANDLINE_DESCRIBE_H

#include "llvm/Support/raw_ostream.h"

namespace ds::opt {

/// Prints the name and version of Deepstage, and LLVM's in one line; what LLVM itself prints is about LLVM.
void printVersion(llvm::raw_ostream &stream);

/// Prints as JSON what --help lists, in the form of tools/DescribeTool.h.
void describeOptions(llvm::raw_ostream &stream);

} // namespace ds::opt

#endif // DS_TOOLS_DS_OPT_COMMANDLINE_DESCRIBE_H
