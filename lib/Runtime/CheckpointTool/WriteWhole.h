//===- WriteWhole.h - Writes a checkpoint as if one rank had ----------------------------===//
#ifndef DS_LIB_RUNTIME_CHECKPOINTTOOL_WRITEWHOLE_H
#define DS_LIB_RUNTIME_CHECKPOINTTOOL_WRITEWHOLE_H

#include "ds/Runtime/Checkpoint/Manifest.h"

#include <functional>

namespace ds::rt {

/// Puts elements [first, first + count) of tensor number `tensor` of the manifest at `to`, packed.
using ReadElements = std::function<Status(size_t tensor, uint64_t first, uint64_t count, std::byte *to)>;

/// Writes the manifest's tensors, whole, as the checkpoint step-N in `root`, and returns its directory; all
/// of it or nothing. Its files and its layouts are set here. Invalid: names that no file can hold. Requires
/// the lock of `root`.
Result<std::string> writeWhole(const std::string &root, Manifest manifest, const ReadElements &read);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CHECKPOINTTOOL_WRITEWHOLE_H
