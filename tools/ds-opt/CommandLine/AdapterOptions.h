//===- AdapterOptions.h - What --lora asks for ---------------------------------------===//
#ifndef DS_TOOLS_DS_OPT_COMMANDLINE_ADAPTEROPTIONS_H
#define DS_TOOLS_DS_OPT_COMMANDLINE_ADAPTEROPTIONS_H

#include "Options.h"
#include "ds/Support/Adapters.h"
#include "ds/Support/Error.h"

#include <optional>

namespace ds::opt {

/// The adapters that --lora asks for, if it is given. Usage: it cannot be read, or says two things. Invalid,
/// Io: the folder that it names has no adapter_config.json that can be trained.
Result<std::optional<AdapterRequest>> adapterRequest(const Options &options);

} // namespace ds::opt

#endif // DS_TOOLS_DS_OPT_COMMANDLINE_ADAPTEROPTIONS_H
