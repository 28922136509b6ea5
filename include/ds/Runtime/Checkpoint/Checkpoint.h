//===- Checkpoint.h - A checkpoint that is open for reading --------------------------===//
//
// What each tensor consists of is read from the headers of the files; whether the parts are all there, once,
// is checked then. Contents are read chunk by chunk, in the chunks that the manifest has digests of, and no
// byte of a chunk is used before the digest has been compared: a reader of any range knows that it is what
// was written. Whoever reads needs the chunks in which his elements lie, whatever ranks have written them.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINT_CHECKPOINT_H
#define DS_RUNTIME_CHECKPOINT_CHECKPOINT_H

#include "ds/Runtime/Checkpoint/Box.h"
#include "ds/Runtime/Checkpoint/Manifest.h"

#include <functional>
#include <unordered_map>
#include <vector>

namespace ds::rt {

/// A run of logical elements of a tensor that lie together in a file.
struct StoredRun {
  uint64_t first = 0, count = 0;
  uint32_t file = 0;   ///< of Manifest::files
  uint64_t offset = 0; ///< bytes from the file's start
};

/// Bytes of a file that somebody wants, and what for.
struct WantedBytes {
  uint32_t file = 0;
  uint64_t offset = 0, bytes = 0;
  uint64_t tag = 0; ///< the reader's own
};

/// Takes the part [from, from + part.size()) of the wanted bytes. Parts come in any order, each byte once,
/// and end where elements of 8 bytes and less do.
using TakeBytes =
    std::function<Status(const WantedBytes &wanted, uint64_t from, std::span<const std::byte> part)>;

class Checkpoint {
public:
  /// Opens the checkpoint in `directory` (".../step-100"), or the part of one that is there. Corrupt:
  /// something is missing, has another size, is damaged where it was looked at, or the boxes of a tensor
  /// leave a hole or overlap. What several nodes have is read from one of them.
  static Result<Checkpoint> open(const std::string &directory);

  const Manifest &manifest() const { return content; }
  const std::string &directory() const { return path; }

  /// The tensor of that name, also by one of its aliases; null if there is none.
  const CheckpointTensor *find(std::string_view name) const;
  /// Where its elements are, in ascending order; without holes in a checkpoint that is whole.
  const std::vector<StoredRun> &runs(const CheckpointTensor &tensor) const;

  /// Appends what of elements [first, first + count) of `tensor` must be read, in order; returns how many are
  /// on other nodes.
  uint64_t want(const CheckpointTensor &tensor, uint64_t first, uint64_t count,
                const std::function<void(WantedBytes, uint64_t element)> &add) const;

  /// What is said of elements that are on other nodes: Invalid, with the nodes that have them.
  Error elsewhere(const std::string &what) const;

  /// Reads what is wanted, by file and offset. Corrupt: a chunk is not what was written; its file and offset
  /// are named. Io: it cannot be read.
  Status read(std::vector<WantedBytes> wanted, const TakeBytes &take) const;

  /// Reads `count` elements of `tensor` from `first` on, as they are stored. Invalid: some are on other
  /// nodes.
  Status read(const CheckpointTensor &tensor, uint64_t first, uint64_t count, std::byte *to) const;

  /// Compares the digests of a whole file of the manifest; `bad` is told of each chunk that differs.
  Status verify(const CheckpointFile &file,
                const std::function<void(uint64_t offset, uint64_t bytes)> &bad) const;

  /// Bytes of all files.
  uint64_t bytes() const;

private:
  Status readHeaders();
  Status readHeader(uint32_t file);
  Status checkCover();
  void dropRepeated(std::vector<StoredRun> &runs, uint64_t elementBytes) const;

  std::string path;
  Manifest content;
  std::unordered_map<std::string, size_t> numbers; ///< of tensors, by name and alias
  std::vector<std::vector<StoredRun>> stored;      ///< by tensor
};

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINT_CHECKPOINT_H
