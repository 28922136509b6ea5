//===- Batches.h - Goes through tensors a few MiB at a time --------------------------===//
//
// A large tensor is several pieces, small ones come many at once: a chunk of a file is read and compared with
// its digest once for all of them, not for each.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CHECKPOINTTOOL_BATCHES_H
#define DS_LIB_RUNTIME_CHECKPOINTTOOL_BATCHES_H

#include "ds/Runtime/Checkpoint/Checkpoint.h"

#include <span>
#include <vector>

namespace ds::rt {

/// Elements [first, first + count) of a tensor of a list.
struct Piece {
  size_t tensor = 0; ///< index into the list
  uint64_t first = 0, count = 0;
  uint64_t at = 0; ///< first byte in the batch's buffer
};

/// Cuts a list of tensors into batches.
class Batches {
public:
  /// Of all pieces of a batch together, at most.
  static constexpr uint64_t kBytes = uint64_t(8) << 20;

  explicit Batches(std::span<const CheckpointTensor *const> tensors) : tensors(tensors) {}

  /// The next pieces; none at the end. Tensors without elements have none.
  std::vector<Piece> next();

private:
  std::span<const CheckpointTensor *const> tensors;
  size_t tensor = 0;  ///< the next one
  uint64_t first = 0; ///< its next element
};

/// Reads the pieces, of tensors of `checkpoint`, to their places in `buffer`, which grows as it must.
Status readBatch(const Checkpoint &checkpoint, std::span<const CheckpointTensor *const> tensors,
                 std::span<const Piece> pieces, std::vector<std::byte> &buffer);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CHECKPOINTTOOL_BATCHES_H
