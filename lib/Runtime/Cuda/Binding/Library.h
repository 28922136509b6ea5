//===- Library.h - Shared libraries of NVIDIA, opened when they are needed -------===//
//
// None is linked, so that the plugin loads where they are missing and can say which one is, what version was
// found and what is needed. A table holds one pointer for each function, of the type that the header
// declares. DS_CUDA_DRIVER, DS_CUBLASLT, DS_CUDNN, DS_CUPTI, DS_NCCL and DS_NVML name other files than the
// usual ones.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_BINDING_LIBRARY_H
#define DS_LIB_RUNTIME_CUDA_BINDING_LIBRARY_H

#include "ds/Support/Error.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <initializer_list>
#include <string>

namespace ds::rt::cuda {

/// The name of the symbol that a function has in this version of its header.
#define DS_SYMBOL_TEXT(NAME) #NAME
#define DS_SYMBOL(FUNCTION) DS_SYMBOL_TEXT(FUNCTION)

/// What an error says of a library.
struct LibraryFile {
  const char *variable;                      ///< of the environment
  std::initializer_list<const char *> names; ///< in the order in which they are tried
  const char *purpose;                       ///< "a GPU needs"
  const char *hint;                          ///< which version, and where it is from
};

/// The library's handle; it stays open. Fails with ExitCode::Device.
inline Result<void *> openLibrary(const LibraryFile &file) {
  const char *chosen = std::getenv(file.variable);
  if (chosen && *chosen) {
    if (void *library = ::dlopen(chosen, RTLD_NOW | RTLD_LOCAL))
      return library;
    return Error{ExitCode::Device, fmt::format("{} {}", file.purpose, ::dlerror()),
                 fmt::format("{} names this file", file.variable)};
  }
  std::string reason;
  for (const char *name : file.names) {
    if (void *library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return library;
    reason = reason.empty() ? ::dlerror() : reason;
  }
  return Error{ExitCode::Device, fmt::format("{} {}", file.purpose, reason), file.hint};
}

/// Finds `name` in `library`; false and a `missing` name if it is not there.
template <class Function>
bool find(void *library, const char *name, Function *&function, std::string &missing) {
  function = reinterpret_cast<Function *>(::dlsym(library, name));
  if (!function && missing.empty())
    missing = name;
  return function != nullptr;
}

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_BINDING_LIBRARY_H
