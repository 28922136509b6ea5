//===- PluginFile.h - Opens the shared objects that stand beside the tools -------===//
#ifndef DS_LIB_RUNTIME_PROCESS_PLUGINFILE_H
#define DS_LIB_RUNTIME_PROCESS_PLUGINFILE_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <string>

namespace ds::rt {

/// What an error says of a plugin.
struct PluginFile {
  const char *library; ///< "libds-gloo.so"
  const char *symbol;  ///< its one entry point
  const char *purpose; ///< "collectives need": who needs the library
  const char *hint;
};

/// The address of the entry point. Looks in <prefix>/lib for a tool in <prefix>/bin (in the build tree and in
/// an installation), else on the loader's path. The library stays open. Fails with ExitCode::Device, naming
/// what is missing: the plugin, or a library that it needs.
Result<void *> openPlugin(const PluginFile &plugin);

/// The error for a plugin of another build.
Error wrongInterface(const PluginFile &plugin, unsigned found, unsigned needed);

/// The table of functions that the entry point returns. Its first field `abi` must be the tool's own.
template <class Api>
Result<const Api *> openApi(const PluginFile &plugin, uint32_t abi) {
  const Result<void *> symbol = openPlugin(plugin);
  if (!symbol)
    return symbol.error();
  const Api *api = reinterpret_cast<const Api *(*)()>(*symbol)();
  if (!api || api->abi != abi)
    return wrongInterface(plugin, api ? api->abi : 0, abi);
  return api;
}

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROCESS_PLUGINFILE_H
