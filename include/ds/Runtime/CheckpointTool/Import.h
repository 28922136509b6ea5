//===- Import.h - Others' checkpoints as ours ------------------------------------------===//
//
// What ForeignCheckpoint.h shows becomes a checkpoint that ds-run --resume takes up: parameters under the
// module's names, moments as `<parameter>.exp_avg`, the optimizer's name and step, the loss scale, and how
// far the data were read. Of weights alone, as Hugging Face keeps them, a checkpoint of step 0 is made:
// moments then start from zero.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINTTOOL_IMPORT_H
#define DS_RUNTIME_CHECKPOINTTOOL_IMPORT_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::rt {

struct ImportOptions {
  std::string from = {};             ///< a folder of another system
  std::string to = {};               ///< directory of checkpoints, which is made if it is not there
  std::optional<uint64_t> step = {}; ///< that was finished; none: as the files say
  uint64_t seed = 0;                 ///< of dropout from here on
};

struct ImportReport {
  std::string path;        ///< of the new checkpoint
  std::string description; ///< of what was read: "ZeRO 3 of 8 ranks"
  uint64_t parameters = 0, buffers = 0, moments = 0;
  uint64_t step = 0, updates = 0, samples = 0; ///< updates: the optimizer's own count
  std::vector<std::string> notes; ///< what a run should not go on from without a look, a line each
};

/// Usage: the files do not say how many steps were made, or `step` is given for weights alone. Invalid: a
/// folder of another kind, or one that cannot be put together here. Corrupt: it is damaged. Io: it cannot be
/// read, or the checkpoint cannot be written or is there already.
Result<ImportReport> importCheckpoint(const ImportOptions &options);

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINTTOOL_IMPORT_H
