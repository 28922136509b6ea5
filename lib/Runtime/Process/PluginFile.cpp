//===- PluginFile.cpp - Opens the shared objects that stand beside the tools -----===//
#include "PluginFile.h"

#include <algorithm>
#include <dlfcn.h>
#include <unistd.h>

namespace ds::rt {

/// The file for the running <prefix>/bin/tool: <prefix>/lib/deepstage/<library> of an installation, or
/// <prefix>/lib/<library> of a build; empty if neither is there.
static std::string besideExecutable(const char *library) {
  char path[4096];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  if (size <= 0 || size == sizeof path)
    return {};
  std::string directory(path, static_cast<size_t>(size));
  for (int up = 0; up < 2; ++up)
    directory.resize(std::min(directory.rfind('/'), directory.size()));
  for (const char *folder : {"/lib/deepstage/", "/lib/"})
    if (const std::string file = directory + folder + library; ::access(file.c_str(), R_OK) == 0)
      return file;
  return {};
}

Result<void *> openPlugin(const PluginFile &plugin) {
  void *library = nullptr;
  if (const std::string path = besideExecutable(plugin.library); !path.empty())
    library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  else
    library = ::dlopen(plugin.library, RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? ::dlsym(library, plugin.symbol) : nullptr;
  if (!symbol)
    return Error{ExitCode::Device, std::string(plugin.purpose) + " " + plugin.library + ": " + ::dlerror(),
                 plugin.hint};
  return symbol;
}

Error wrongInterface(const PluginFile &plugin, unsigned found, unsigned needed) {
  return Error{ExitCode::Device,
               std::string(plugin.library) + " has interface version " + std::to_string(found) +
                   ", but this tool needs " + std::to_string(needed),
               "build the tool and the plugin from the same source"};
}

} // namespace ds::rt
