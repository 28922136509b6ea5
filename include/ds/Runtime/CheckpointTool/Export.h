//===- Export.h - A checkpoint as a folder of a Hugging Face model -----------------------===//
//
// Parameters and buffers, in their exact values or rounded, in one or several safetensors files with an
// index. Of a model with adapters these alone, as PEFT keeps them, or the weights that they are added to. The
// folder appears at once, by one rename, when all of it has been written and synced; what fails leaves
// nothing behind.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINTTOOL_EXPORT_H
#define DS_RUNTIME_CHECKPOINTTOOL_EXPORT_H

#include "ds/Runtime/Formats/FileDType.h"
#include "ds/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::rt {

struct ExportOptions {
  std::string from = {};               ///< directory of a checkpoint
  std::string to = {};                 ///< absent, or an empty directory
  std::optional<FileDType> dtype = {}; ///< F32, BF16 or F16, of all tensors of floats; none: as they are kept
  uint64_t maxShardBytes = 5'000'000'000; ///< of tensors in a file; a larger tensor has a file of its own
  std::string config = {}; ///< a config.json to go with it; empty: the one that the model came from, if any
  bool tied = false;       ///< also a copy under each other name of a tensor
  bool merge = false;      ///< of a model with adapters: weights with them added; else the adapters alone
};

struct ExportReport {
  uint64_t tensors = 0, bytes = 0; ///< bytes of tensors
  std::vector<std::string> files;
  std::vector<std::string> tiedNames; ///< left out
  bool hasConfig = false;
  bool isAdapter = false; ///< a folder of PEFT
};

/// Invalid: a value does not fit the type, a type that is not converted, a config.json that is none. Corrupt:
/// the checkpoint is damaged. Io: `to` is not empty, or cannot be written.
Result<ExportReport> exportCheckpoint(const ExportOptions &options);

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINTTOOL_EXPORT_H
