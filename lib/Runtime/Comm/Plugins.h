//===- Plugins.h - Opens the plugins of communication ----------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_PLUGINS_H
#define DS_LIB_RUNTIME_COMM_PLUGINS_H

#include "GlooPlugin.h"
#include "PmixPlugin.h"

#include "ds/Support/Error.h"

namespace ds::rt {

/// Each opens its plugin once and keeps it open. ExitCode::Device, naming what is missing, on failure.
Result<const GlooApi *> openGloo();
Result<const PmixApi *> openPmix();

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_PLUGINS_H
