//===- AdapterOptions.cpp - What --lora asks for -------------------------------------===//
#include "AdapterOptions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"

using namespace ds;
using namespace ds::opt;

Result<std::optional<AdapterRequest>> ds::opt::adapterRequest(const Options &options) {
  if (options.lora.empty())
    return std::optional<AdapterRequest>();
  if (!options.freeze.empty())
    return Error{ExitCode::Usage, "--freeze and --lora: adapters freeze all else already",
                 "leave --freeze out"};
  const bool hasFolder =
      llvm::any_of(options.lora, [](const std::string &spec) { return llvm::sys::fs::is_directory(spec); });
  if (hasFolder && options.lora.size() > 1)
    return Error{ExitCode::Usage,
                 "--lora: a folder says of all adapters what they are, and is given beside others",
                 "give one folder, or patterns alone"};
  Result<AdapterRequest> request =
      hasFolder ? readAdapterFolder(options.lora.front()) : parseAdapterRules(options.lora);
  if (!request)
    return request.error();
  return std::optional<AdapterRequest>(*request);
}
