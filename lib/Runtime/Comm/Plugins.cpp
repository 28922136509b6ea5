//===- Plugins.cpp - Opens the plugins of communication --------------------------===//
#include "Plugins.h"

#include "../PluginFile.h"

namespace ds::rt {

template <class Api>
static Result<const Api *> open(const PluginFile &plugin, uint32_t abi) {
  const Result<void *> symbol = openPlugin(plugin);
  if (!symbol)
    return symbol.error();
  const Api *api = reinterpret_cast<const Api *(*)()>(*symbol)();
  if (!api || api->abi != abi)
    return wrongInterface(plugin, api ? api->abi : 0, abi);
  return api;
}

Result<const GlooApi *> openGloo() {
  static const Result<const GlooApi *> api = open<GlooApi>(
      {"libds-gloo.so", "dsGloo", "several ranks need",
       "install Gloo (libgloo0; to build the plugin, libgloo-dev) and keep the plugin in ../lib of "
       "the tool"},
      kGlooAbi);
  return api;
}

Result<const PmixApi *> openPmix() {
  static const Result<const PmixApi *> api = open<PmixApi>(
      {"libds-pmix.so", "dsPmix", "ranks under mpirun or srun need",
       "install PMIx (libpmix2; to build the plugin, libpmix-dev) and keep the plugin in ../lib of "
       "the tool, or start local ranks with --ranks N"},
      kPmixAbi);
  return api;
}

} // namespace ds::rt
