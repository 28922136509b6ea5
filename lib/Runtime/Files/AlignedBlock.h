//===- AlignedBlock.h - Memory that a disk reads and writes directly -----------------===//
#ifndef DS_LIB_RUNTIME_FILES_ALIGNEDBLOCK_H
#define DS_LIB_RUNTIME_FILES_ALIGNEDBLOCK_H

#include "ds/Runtime/Files/FileLayer.h"

#include <cstdlib>
#include <memory>
#include <new>

namespace ds::rt {

struct FreeBlock {
  void operator()(std::byte *bytes) const { std::free(bytes); }
};
using AlignedBlock = std::unique_ptr<std::byte, FreeBlock>;

/// `bytes` bytes, a multiple of kDirectUnit and not 0, aligned to it. Throws std::bad_alloc.
inline AlignedBlock allocateBlock(size_t bytes) {
  AlignedBlock block(static_cast<std::byte *>(std::aligned_alloc(kDirectUnit, bytes)));
  if (!block)
    throw std::bad_alloc();
  return block;
}

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FILES_ALIGNEDBLOCK_H
