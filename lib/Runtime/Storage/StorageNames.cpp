//===- StorageNames.cpp - What messages call the places of a storage ----------------===//
#include "StorageNames.h"

#include "Files/Text.h"
#include "ds/Support/Align.h"

#include <fmt/format.h>

namespace ds::rt {

const std::string &directoryOf(const StorageOptions &options, uint64_t offset) {
  return options.map.fileOf(offset) == 0 ? options.directory : options.parameterDirectory;
}

std::string spellDirectories(const StorageOptions &options) {
  const std::string first = quote(options.directory);
  return options.map.files() == 1 ? first : first + " and " + quote(options.parameterDirectory);
}

std::string spellPlace(const StorageOptions &options, uint64_t offset) {
  std::string text = fmt::format("offset {} of rank {}", offset, options.rank);
  for (const StorageRegion &region : options.regions)
    if (offset < alignTo(region.offset + region.bytes, kStorageUnit) && offset + kStorageUnit > region.offset)
      return text + ", in " + quote(region.name);
  return text;
}

} // namespace ds::rt
