//===- StorageNames.h - What messages call the places of a storage ------------------===//
#ifndef DS_LIB_RUNTIME_STORAGE_STORAGENAMES_H
#define DS_LIB_RUNTIME_STORAGE_STORAGENAMES_H

#include "ds/Runtime/Storage/Storage.h"

namespace ds::rt {

/// The directory that has the byte at `offset` of the arena.
const std::string &directoryOf(const StorageOptions &options, uint64_t offset);

/// Each directory that has a file, quoted.
std::string spellDirectories(const StorageOptions &options);

/// "offset 4096 of rank 0, in 'wte.weight'".
std::string spellPlace(const StorageOptions &options, uint64_t offset);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_STORAGE_STORAGENAMES_H
