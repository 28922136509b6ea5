//===- OptionalText.h - A value of an option that may be left out -----------------===//
#ifndef DS_TOOLS_DS_OPT_COMMANDLINE_OPTIONALTEXT_H
#define DS_TOOLS_DS_OPT_COMMANDLINE_OPTIONALTEXT_H

#include "llvm/Support/CommandLine.h"

namespace ds::opt {

/// A value that may be left out. LLVM puts such a one in brackets, and does not count them in its columns.
struct OptionalTextParser : llvm::cl::parser<std::string> {
  using llvm::cl::parser<std::string>::parser;
  size_t getOptionWidth(const llvm::cl::Option &option) const {
    return parser::getOptionWidth(option) + llvm::StringRef("[]").size();
  }
  void printOptionInfo(const llvm::cl::Option &option, size_t width) const {
    parser::printOptionInfo(option, width - llvm::StringRef("[]").size());
  }
};

} // namespace ds::opt

#endif // DS_TOOLS_DS_OPT_COMMANDLINE_OPTIONALTEXT_H
