//===- StorageFile.h - The file that holds a rank's storage arena ------------------===//
#ifndef DS_LIB_RUNTIME_STORAGE_STORAGEFILE_H
#define DS_LIB_RUNTIME_STORAGE_STORAGEFILE_H

#include "ds/Runtime/Storage/StorageMap.h"
#include "ds/Support/Error.h"

#include <cstdint>
#include <string>

namespace ds::rt {

/// What files of storage are called: "ds-storage-PID-rankR". Each has its name for an instant only; one that
/// a process left which died in that instant is removed by the next to come.
inline constexpr char kStorageFilePrefix[] = "ds-storage-";

/// A file that is there already, and may have taken the space of the next one.
struct StorageNeighbour {
  int file = -1; ///< none
  std::string directory = {};
  uint64_t bytes = 0;
};

/// What a file of storage is to be.
struct StorageFileRequest {
  std::string directory;
  uint32_t rank = 0;                ///< for its name
  std::vector<StorageRange> ranges; ///< that get space, in order; all else stays a hole
  const char *option = "--nvme";    ///< that names another directory, for hints
  StorageNeighbour neighbour = {};
};

/// A file past the system's cache, with its space allocated and without a name: its descriptor. Fails as
/// Storage::open says.
Result<int> makeStorageFile(const StorageFileRequest &request);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_STORAGE_STORAGEFILE_H
