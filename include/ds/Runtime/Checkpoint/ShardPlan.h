//===- ShardPlan.h - Which rank writes what of a checkpoint ------------------------===//
//
// Every element of every state is written once. What several ranks hold they divide, by whole rows where
// that comes out, so that all write at once; small tensors go to one of them each. A rank's part of a tensor
// is a few boxes (Box.h), and padding is in none of them. A safetensors file can name a tensor once, so the
// first boxes of all tensors are the rank's first file, the second ones its second, and so on: nearly all is
// in the first.
//
// Written are exact values only: a parameter of 16 bits that has a master is the master, rounded, and stays
// out. Gradients are dead between steps.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINT_SHARDPLAN_H
#define DS_RUNTIME_CHECKPOINT_SHARDPLAN_H

#include "ds/Runtime/Checkpoint/Box.h"
#include "ds/Runtime/Checkpoint/Manifest.h"

#include <span>
#include <string>
#include <vector>

namespace ds::rt {

/// `count` times what is inside, each `stride` elements behind the one before.
struct Repeat {
  uint64_t count = 1, stride = 0;
  bool operator==(const Repeat &) const = default;
};

/// A box of a state as it lies in the memory of the rank that writes it: one run of elements, or equal ones,
/// as of columns that are a part of the rank's.
struct ShardPiece {
  std::string state; ///< its name in the program
  Box box;           ///< in the tensor
  uint64_t at = 0;   ///< first element in the state's buffer
  uint64_t bytes = 0;
  std::vector<Repeat> repeats = {}; ///< of the runs, slowest first

  uint64_t runs() const;
  /// First element of run `run` in the buffer; they ascend.
  uint64_t runAt(uint64_t run) const;
};

/// One file of a rank.
struct ShardFile {
  std::string name;
  std::string header;             ///< the file's first bytes
  std::vector<ShardPiece> pieces; ///< in the order of their bytes, behind the header
  uint64_t dataBytes = 0;         ///< of all pieces
};

/// The tensors of a checkpoint of `program`: what all ranks together write. Requires the program with all its
/// stages.
std::vector<CheckpointTensor> checkpointTensors(const Program &program);

/// What `rank` writes. Where ranks write parts of a checkpoint, `node` are those of its part, ascending, who
/// write all that they hold: what others hold too is not divided with them. None: all ranks write one whole.
/// Invalid: names that no file can hold.
Result<std::vector<ShardFile>> planShards(const Program &program, uint32_t rank,
                                          std::span<const uint32_t> node = {});

/// Bytes of all pieces of a rank: what a copy of them takes.
uint64_t snapshotBytes(const Program &program, uint32_t rank);

/// At least the bytes of any rank's pieces, and not much more, in time that does not grow with the ranks. Of
/// a program whose ranks may write parts it is what one of them would write if each were a node.
uint64_t mostSnapshotBytes(const Program &program);

/// Bytes of all tensors: what all ranks together write, but for headers.
uint64_t checkpointBytes(const Program &program);

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINT_SHARDPLAN_H
