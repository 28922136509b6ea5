//===- Archive.h - Checks a TorchScript archive before LibTorch reads it --------===//
//
// LibTorch trusts its archives: it skips the checksums and has crashed on damaged ones. So every entry is
// read here first, by libzip, and the archive is refused where anything is damaged, encrypted, oddly named or
// suspiciously large when unpacked.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_GUARD_ARCHIVE_H
#define DS_LIB_IMPORT_GUARD_ARCHIVE_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds {

/// What the check learned on its way.
struct ArchiveSummary {
  uint64_t unpackedBytes = 0;
  std::vector<std::string> operatorNames; ///< that the code calls, sorted: "aten::add"
};

/// Bounds that no honest archive meets.
struct ArchiveLimits {
  uint64_t entries = 200'000;
  uint64_t nameBytes = 1024;
  uint64_t unpackedRatio = 200; ///< of an entry of more than `ratioFreeBytes`
  uint64_t ratioFreeBytes = 1 << 20;
  uint64_t codeBytes = uint64_t(256) << 20; ///< all entries that are compressed, unpacked
};

/// Reads the archive behind `fd` completely. The descriptor stays open.
Result<ArchiveSummary> checkArchive(int fd, const ArchiveLimits &limits = {});

} // namespace ds

#endif // DS_LIB_IMPORT_GUARD_ARCHIVE_H
