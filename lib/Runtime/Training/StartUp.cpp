//===- StartUp.cpp - Short signs of what a rank starts with ---------------------===//
#include "StartUp.h"

#include "ds/Runtime/Files/MappedFile.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

namespace ds::rt {

uint64_t addToSign(uint64_t sign, std::span<const std::byte> bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), sign);
}

static std::string signOf(const std::string &path, size_t limit) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file)
    return "no file";
  const std::span<const std::byte> bytes = file->bytes();
  return fmt::format("{} bytes of digest {:016x}", bytes.size(),
                     addToSign(0, bytes.first(std::min(bytes.size(), limit))));
}

std::string executableSign() { return signOf("/proc/self/exe", SIZE_MAX); }

std::string fileSign(const std::string &path) { return signOf(path, size_t(1) << 20); }

} // namespace ds::rt
