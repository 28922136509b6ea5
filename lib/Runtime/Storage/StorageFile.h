//===- StorageFile.h - The file that holds a rank's storage arena ------------------===//
#ifndef DS_LIB_RUNTIME_STORAGE_STORAGEFILE_H
#define DS_LIB_RUNTIME_STORAGE_STORAGEFILE_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <string>

namespace ds::rt {

/// What files of storage are called: "ds-storage-PID-rankR". Each has its name for an instant only; one that
/// a process left which died in that instant is removed by the next to come.
inline constexpr char kStorageFilePrefix[] = "ds-storage-";

/// A file of `bytes` bytes in `directory`, past the system's cache, with its space allocated and without a
/// name: its descriptor. Fails as Storage::open says.
Result<int> makeStorageFile(const std::string &directory, uint32_t rank, uint64_t bytes);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_STORAGE_STORAGEFILE_H
