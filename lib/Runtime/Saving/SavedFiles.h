//===- SavedFiles.h - The files of one rank in a checkpoint ---------------------------===//
//
// Which states they hold is planned once (ShardPlan.h). They are written from the states of now, or from a
// copy while training goes on.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_SAVING_SAVEDFILES_H
#define DS_LIB_RUNTIME_SAVING_SAVEDFILES_H

#include "Snapshot.h"

#include "ds/Runtime/Checkpoint/Checkpoint.h"
#include "ds/Runtime/Checkpoint/ShardPlan.h"
#include "ds/Runtime/Checkpoint/StagedWriter.h"
#include "ds/Runtime/Files/FileLayer.h"

#include <optional>
#include <span>

namespace ds::rt {

class ShardWriter;

class SavedFiles {
public:
  explicit SavedFiles(FileLayer &layer) : layer(layer) {}

  /// Plans those of `rank`, of which a directory has those of `ranks`.
  Status plan(const Program &program, uint32_t rank, std::span<const uint32_t> ranks);
  /// Takes the memory for a copy of their states.
  Status makeCopy();

  /// Copies the states of now; requires makeCopy.
  Status copy(const Executor &executor) { return snapshot->take(executor, files); }

  /// Writes all into `directory`, from `executor`, or from the copy where there is none.
  Result<std::vector<CheckpointFile>> write(const Executor *executor, const std::string &directory,
                                            uint64_t chunkBytes) const;

private:
  Status writeFile(size_t number, const Executor *executor, ShardWriter &writer) const;

  FileLayer &layer;
  std::vector<ShardFile> files;
  std::unique_ptr<StagedWriter> staged; ///< of all files, one after another
  std::optional<Snapshot> snapshot;     ///< what is written while training goes on
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAVING_SAVEDFILES_H
