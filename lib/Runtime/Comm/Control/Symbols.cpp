//===- Symbols.cpp - Names of addresses ---------------------------------------------===//
//
// dladdr knows the functions that a file shows to others, which of an executable are few. All that were not
// stripped are in its symbol table.
//
//===---------------------------------------------------------------------------===//
#include "Symbols.h"

#include "ds/Runtime/Files/MappedFile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <iterator>
#include <link.h>
#include <span>

namespace ds::rt {
namespace {

using Bytes = std::span<const std::byte>;

/// Copies a `T` from `offset` of a file's bytes; false beyond their end.
template <class T>
bool copyFrom(Bytes bytes, uint64_t offset, T &to) {
  if (offset > bytes.size() || sizeof(T) > bytes.size() - offset)
    return false;
  std::memcpy(&to, bytes.data() + offset, sizeof(T));
  return true;
}

/// The section headers of an ELF file of this machine's kind; none of anything else.
std::vector<Elf64_Shdr> sectionsOf(Bytes bytes) {
  Elf64_Ehdr header;
  std::vector<Elf64_Shdr> sections;
  if (!copyFrom(bytes, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64)
    return sections;
  Elf64_Shdr section;
  for (uint64_t i = 0; i < header.e_shnum && copyFrom(bytes, header.e_shoff + i * sizeof section, section);
       ++i)
    sections.push_back(section);
  return sections;
}

/// What stands from `offset` on up to a 0, or to the end of the file.
std::string textAt(Bytes bytes, uint64_t offset) {
  const char *begin = reinterpret_cast<const char *>(bytes.data()) + offset;
  return std::string(begin, ::strnlen(begin, bytes.size() - offset));
}

/// What a programmer calls it; of long lists of parameters the beginning.
std::string demangled(const char *name) {
  constexpr size_t kMostShown = 100;
  int status = 0;
  char *plain = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string text = plain ? plain : name;
  std::free(plain);
  if (text.size() > kMostShown)
    text = text.substr(0, kMostShown) + "...";
  return text;
}

} // namespace

const std::vector<Symbols::Function> &Symbols::functionsOf(const std::string &file) {
  const auto [entry, isNew] = files.try_emplace(file);
  std::vector<Function> &functions = entry->second;
  if (!isNew)
    return functions;
  const Result<MappedFile> mapped = MappedFile::open(file);
  if (!mapped)
    return functions;
  const Bytes bytes = mapped->bytes();
  const std::vector<Elf64_Shdr> sections = sectionsOf(bytes);
  for (const Elf64_Shdr &table : sections) {
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= sections.size())
      continue;
    const Elf64_Shdr &names = sections[table.sh_link];
    Elf64_Sym symbol;
    for (uint64_t at = 0; at < table.sh_size && copyFrom(bytes, table.sh_offset + at, symbol);
         at += sizeof symbol) {
      const uint64_t name = names.sh_offset + symbol.st_name;
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_size > 0 && name < bytes.size())
        functions.push_back({symbol.st_value, symbol.st_size, textAt(bytes, name)});
    }
  }
  std::sort(functions.begin(), functions.end(),
            [](const Function &a, const Function &b) { return a.begin < b.begin; });
  return functions;
}

std::string Symbols::describe(const void *address) {
  Dl_info info{};
  link_map *map = nullptr;
  if (!::dladdr1(address, &info, reinterpret_cast<void **>(&map), RTLD_DL_LINKMAP) || !info.dli_fname || !map)
    return fmt::format("{}", address);
  const bool isExecutable = map->l_name[0] == '\0';
  const std::string file = isExecutable ? "/proc/self/exe" : info.dli_fname;
  const uint64_t offset = reinterpret_cast<uintptr_t>(address) - map->l_addr;
  const char *last = std::strrchr(info.dli_fname, '/');
  const std::string place = fmt::format("({}+{:#x})", last ? last + 1 : info.dli_fname, offset);
  const std::vector<Function> &functions = functionsOf(file);
  auto after = std::upper_bound(functions.begin(), functions.end(), offset,
                                [](uint64_t at, const Function &function) { return at < function.begin; });
  if (after != functions.begin() && offset - std::prev(after)->begin < std::prev(after)->bytes)
    return fmt::format("{}+{:#x} {}", demangled(std::prev(after)->name.c_str()),
                       offset - std::prev(after)->begin, place);
  if (info.dli_sname)
    return fmt::format("{}+{:#x} {}", demangled(info.dli_sname),
                       static_cast<const char *>(address) - static_cast<const char *>(info.dli_saddr), place);
  return place;
}

} // namespace ds::rt
