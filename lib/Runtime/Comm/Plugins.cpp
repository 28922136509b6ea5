//===- Plugins.cpp - Opens the plugins of communication --------------------------===//
#include "Plugins.h"

#include "Process/PluginFile.h"

namespace ds::rt {

Result<const GlooApi *> openGloo() {
  static const Result<const GlooApi *> api = openApi<GlooApi>(
      {"libds-gloo.so", "dsGloo", "several ranks need",
       "install Gloo (libgloo0; to build the plugin, libgloo-dev) and keep the plugin in ../lib of "
       "the tool"},
      kGlooAbi);
  return api;
}

Result<const PmixApi *> openPmix() {
  static const Result<const PmixApi *> api = openApi<PmixApi>(
      {"libds-pmix.so", "dsPmix", "ranks under mpirun or srun need",
       "install PMIx (libpmix2; to build the plugin, libpmix-dev) and keep the plugin in ../lib of "
       "the tool, or start local ranks with --ranks N"},
      kPmixAbi);
  return api;
}

} // namespace ds::rt
