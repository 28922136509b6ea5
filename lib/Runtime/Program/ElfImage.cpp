//===- ElfImage.cpp - Whether machine code is all there -------------------------===//
#include "ElfImage.h"

#include <fmt/format.h>

#include <cstring>
#include <elf.h>

namespace ds::rt {
namespace {

Error corrupt(std::string what) {
  return Error{ExitCode::Corrupt, std::move(what), "compile the model again with ds-opt"};
}

/// Whether `count` things of `size` bytes at `offset` lie within `bytes`.
bool isWithin(uint64_t offset, uint64_t count, uint64_t size, uint64_t bytes) {
  uint64_t all = 0, end = 0;
  return !__builtin_mul_overflow(count, size, &all) && !__builtin_add_overflow(offset, all, &end) &&
         end <= bytes;
}

/// Every entry of a table of headers promises bytes that are there.
template <class Entry>
Status checkEntries(const std::vector<uint8_t> &bytes, const char *what, const char *kind, uint64_t offset,
                    uint64_t count, uint64_t entryBytes) {
  if (count == 0)
    return {};
  if (entryBytes != sizeof(Entry) || !isWithin(offset, count, entryBytes, bytes.size()))
    return corrupt(fmt::format("the {} has {} {} headers of {} bytes at offset {}, but ends at byte {}", what,
                               count, kind, entryBytes, offset, bytes.size()));
  for (uint64_t i = 0; i < count; ++i) {
    Entry entry;
    std::memcpy(&entry, bytes.data() + offset + i * sizeof entry, sizeof entry);
    uint64_t at = 0, size = 0;
    if constexpr (std::is_same_v<Entry, Elf64_Phdr>)
      at = entry.p_offset, size = entry.p_filesz;
    else
      at = entry.sh_offset, size = entry.sh_type == SHT_NOBITS ? 0 : entry.sh_size;
    if (size != 0 && !isWithin(at, 1, size, bytes.size()))
      return corrupt(fmt::format("the {} promises {} bytes at offset {} ({} {}), but ends at byte {}", what,
                                 size, at, kind, i, bytes.size()));
  }
  return {};
}

} // namespace

Status checkElf(const std::vector<uint8_t> &bytes, const char *what) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof header || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0 ||
      bytes[EI_CLASS] != ELFCLASS64)
    return corrupt(fmt::format("the {} of {} bytes is no 64-bit ELF file", what, bytes.size()));
  std::memcpy(&header, bytes.data(), sizeof header);
  if (Status status = checkEntries<Elf64_Phdr>(bytes, what, "segment", header.e_phoff, header.e_phnum,
                                               header.e_phentsize);
      !status)
    return status;
  return checkEntries<Elf64_Shdr>(bytes, what, "section", header.e_shoff, header.e_shnum, header.e_shentsize);
}

} // namespace ds::rt
