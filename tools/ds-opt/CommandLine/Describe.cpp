//===- Describe.cpp - --version of ds-opt, and a description for manuals and shells -===//
#include "Describe.h"

#include "ds/Support/Version.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/JSON.h"

namespace cl = llvm::cl;

void ds::opt::printVersion(llvm::raw_ostream &stream) {
  stream << "ds-opt (Deepstage) " << ds::kVersion << ", with LLVM " << LLVM_VERSION_STRING << "\n";
}

/// One option. A value that LLVM's table of words belongs to has them in its name, as "ir|plan|program".
static llvm::json::Object describe(const cl::Option &option, bool isPositional) {
  std::string name = isPositional                ? "MODEL"
                     : option.ArgStr.size() == 1 ? ("-" + option.ArgStr).str()
                                                 : ("--" + option.ArgStr).str();
  llvm::StringRef value = option.ValueStr;
  bool takesValue = isPositional || option.getValueExpectedFlag() != cl::ValueDisallowed;
  if (isPositional || (takesValue && value.empty()))
    value = "VALUE";
  // A flag of LLVM's takes --flag=false as well; nobody is told of that.
  bool isFlag =
      !isPositional && option.getValueExpectedFlag() == cl::ValueOptional && option.ValueStr.empty();
  return llvm::json::Object{{"names", llvm::json::Array{name}},
                            {"positional", isPositional},
                            {"value", isFlag || !takesValue ? llvm::StringRef() : value},
                            {"help", option.HelpStr.trim("<>")}};
}

void ds::opt::describeOptions(llvm::raw_ostream &stream) {
  llvm::json::Array options;
  for (const cl::Option *option : cl::SubCommand::getTopLevel().PositionalOpts)
    options.push_back(describe(*option, /*isPositional=*/true));
  std::vector<const cl::Option *> named;
  for (auto &[name, option] : cl::getRegisteredOptions())
    if (option->getOptionHiddenFlag() == cl::NotHidden && name == option->ArgStr)
      named.push_back(option);
  llvm::sort(named, [](auto *a, auto *b) { return a->ArgStr < b->ArgStr; });
  for (const cl::Option *option : named)
    options.push_back(describe(*option, /*isPositional=*/false));
  llvm::json::Object command{
      {"name", ""}, {"summary", "Compiler and planner for training steps"}, {"options", std::move(options)}};
  llvm::json::Object tool{
      {"tool", "ds-opt"}, {"version", ds::kVersion}, {"commands", llvm::json::Array{std::move(command)}}};
  stream << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(tool)));
}
