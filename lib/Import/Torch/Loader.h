//===- Loader.h - Loads the archive with LibTorch -------------------------------===//
#ifndef DS_LIB_IMPORT_TORCH_LOADER_H
#define DS_LIB_IMPORT_TORCH_LOADER_H

#include "Import.h"

#include <torch/csrc/jit/api/module.h>

namespace ds::ts {

/// Loads the module from the request's file. Throws Failure: exit code 3 where the archive needs operators
/// that this LibTorch has not, all of them named, and 5 where it is not a module.
torch::jit::Module loadModule(const Request &request);

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_LOADER_H
