//===- PluginFile.h - Opens the shared objects that stand beside the tools -------===//
#ifndef DS_LIB_RUNTIME_PLUGINFILE_H
#define DS_LIB_RUNTIME_PLUGINFILE_H

#include "ds/Support/Error.h"

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

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PLUGINFILE_H
