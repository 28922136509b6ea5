//===- ExportFiles.h - Which tensor goes into which file of a model's folder ------------===//
#ifndef DS_LIB_RUNTIME_CHECKPOINTTOOL_EXPORTFILES_H
#define DS_LIB_RUNTIME_CHECKPOINTTOOL_EXPORTFILES_H

#include "MergeAdapters.h"

#include "ds/Runtime/Checkpoint/Checkpoint.h"
#include "ds/Runtime/CheckpointTool/Export.h"

#include <string>
#include <vector>

namespace ds::rt {

/// A tensor under one of its names.
struct ExportTensor {
  std::string name;
  const CheckpointTensor *tensor = nullptr;
  FileDType dtype = FileDType::F32; ///< in the file
  uint64_t bytes = 0;               ///< in the file
};

/// The adapter_config.json of the checkpoint's adapters; empty: it has none.
std::string descriptionOfAdapters(const Manifest &manifest);

/// Parameters and buffers in the manifest's order; with `tied` each also under its other names. Of a model
/// with adapters these, or with `merge` all but them. Invalid: one has a type that is not rounded.
Result<std::vector<ExportTensor>> listExport(const Manifest &manifest, const ExportOptions &options);

/// The tensors cut into files of at most `maxBytes` bytes, or of one tensor.
std::vector<std::vector<ExportTensor>> cutIntoShards(std::vector<ExportTensor> tensors, uint64_t maxBytes);

/// "model.safetensors" of a single one, else "model-00002-of-00003.safetensors".
std::string shardName(size_t number, size_t count);

/// model.safetensors.index.json.
std::string spellIndex(const std::vector<std::vector<ExportTensor>> &shards);

/// Writes one file, complete and synced, with what `merger`, if there is one, adds. Invalid: a value does not
/// fit its type.
Status writeShard(const Checkpoint &checkpoint, const std::string &path,
                  const std::vector<ExportTensor> &shard, AdapterMerger *merger);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CHECKPOINTTOOL_EXPORTFILES_H
