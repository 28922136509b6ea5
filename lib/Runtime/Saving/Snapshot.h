//===- Snapshot.h - A copy of what a rank saves, as its files will be -----------------===//
//
// Training stands still while states are copied, and what is done later takes memory and processors from it.
// So all threads of the step copy; and a copy lies as the file will, header and tensors in one piece, aligned
// for a disk, which takes it from there: nothing is copied a second time. What is left for later is a digest
// and asking for the writes.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_SAVING_SNAPSHOT_H
#define DS_LIB_RUNTIME_SAVING_SNAPSHOT_H

#include "ds/Runtime/Checkpoint/ShardPlan.h"
#include "ds/Runtime/Cpu/Arena.h"
#include "ds/Runtime/Engine/Executor.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ds::rt {

/// Calls `take` with each piece of a file, in order and run by run: where it lies now, and the memory of the
/// host that holds its bytes during the call.
Status visitPieces(const Executor &executor, const ShardFile &file,
                   const std::function<Status(const std::byte *address, std::span<const std::byte>)> &take);

class Snapshot {
public:
  /// Bytes that can be copied at any time until training goes on.
  struct Part {
    std::byte *to;
    const std::byte *from;
    uint64_t bytes;
  };

  /// Takes the memory for copies of `files`. DoesNotFit: there is not enough.
  static Result<Snapshot> create(const std::vector<ShardFile> &files);

  /// Copies the states of now. Called by the thread that trains.
  Status take(const Executor &executor, const std::vector<ShardFile> &files);

  /// All bytes of a file.
  std::span<const std::byte> image(size_t file) const { return images[file]; }

private:
  Result<std::vector<Part>> collect(const Executor &executor, const std::vector<ShardFile> &files);

  Arena arena;
  std::vector<std::span<std::byte>> images; ///< by file, in the arena
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAVING_SNAPSHOT_H
