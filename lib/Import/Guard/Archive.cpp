//===- Archive.cpp - Checks a TorchScript archive before LibTorch reads it ------===//

#include "Archive.h"
#include "Report.h"
#include "ds/Support/Descriptor.h"

#include <zip.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

namespace ds {

namespace {

struct CloseArchive {
  void operator()(zip_t *archive) const { zip_discard(archive); }
};
struct CloseEntry {
  void operator()(zip_file_t *entry) const { zip_fclose(entry); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;
using Entry = std::unique_ptr<zip_file_t, CloseEntry>;

/// What is to be known of an entry before it is read.
struct EntryInfo {
  std::string name;
  uint64_t index = 0, size = 0;
  bool isCode = false;
};

} // namespace

static Error corrupt(std::string message) {
  return {ExitCode::Corrupt, std::move(message),
          "copy the file again, or export it again with torch.jit.save"};
}

static std::string quoted(std::string_view name) { return "'" + import_report::printable(name, 200) + "'"; }

static Result<Archive> openArchive(int fd) {
  Descriptor copy(dup(fd)); // libzip closes what it is given.
  int code = 0;
  lseek(copy.get(), 0, SEEK_SET);
  Archive archive(zip_fdopen(copy.get(), ZIP_CHECKCONS, &code));
  if (archive) {
    copy.release();
    return archive;
  }
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  Error result = corrupt(std::string("the file is not a TorchScript archive: ") + zip_error_strerror(&error));
  zip_error_fini(&error);
  return result;
}

/// Names are relative paths below one directory, as PyTorch writes them.
static bool isPlainName(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find('\\') != name.npos)
    return false;
  for (unsigned char c : name)
    if (c < 0x20 || c == 0x7f)
      return false;
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = std::min(name.find('/', begin), name.size());
    std::string_view part = name.substr(begin, end - begin);
    if (part == ".." || part == "." || (part.empty() && end != name.size()))
      return false;
    begin = end + 1;
  }
  return true;
}

/// Checks one directory entry; adds its unpacked bytes to `unpacked` and, where it is compressed, to
/// `inflated`.
static Status checkEntry(const zip_stat_t &stat, const ArchiveLimits &limits, uint64_t &inflated) {
  constexpr uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if ((stat.valid & needed) != needed)
    return corrupt("an entry of the archive has no name or no size");
  std::string_view name = stat.name;
  if (name.size() > limits.nameBytes)
    return corrupt("entry " + quoted(name) + " has a name of " + std::to_string(name.size()) +
                   " bytes; the limit is " + std::to_string(limits.nameBytes));
  if (!isPlainName(name))
    return corrupt("entry " + quoted(name) + " has a name that is not a plain relative path");
  if ((stat.valid & ZIP_STAT_ENCRYPTION_METHOD) && stat.encryption_method != ZIP_EM_NONE)
    return corrupt("entry " + quoted(name) + " is encrypted");
  if (stat.comp_method == ZIP_CM_STORE)
    return {};
  if (stat.comp_method != ZIP_CM_DEFLATE)
    return corrupt("entry " + quoted(name) + " is compressed by method " + std::to_string(stat.comp_method) +
                   "; PyTorch reads 0 (stored) and 8 (deflated)");
  inflated += std::min(stat.size, limits.codeBytes + 1);
  bool isBomb = stat.size > limits.ratioFreeBytes && stat.size / limits.unpackedRatio > stat.comp_size;
  if (isBomb || inflated > limits.codeBytes)
    return corrupt("entry " + quoted(name) + " unpacks " + std::to_string(stat.comp_size) + " bytes to " +
                   std::to_string(stat.size) + "; the limits are a ratio of " +
                   std::to_string(limits.unpackedRatio) + " and " + std::to_string(limits.codeBytes) +
                   " bytes in all");
  return {};
}

static Result<std::vector<EntryInfo>> listEntries(zip_t *archive, uint64_t fileBytes,
                                                  const ArchiveLimits &limits) {
  zip_int64_t count = zip_get_num_entries(archive, 0);
  if (count < 1 || static_cast<uint64_t>(count) > limits.entries)
    return corrupt("the archive has " + std::to_string(count) + " entries; the limit is " +
                   std::to_string(limits.entries));
  std::vector<EntryInfo> entries;
  std::set<std::string> names;
  uint64_t inflated = 0, stored = 0;
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive, static_cast<zip_uint64_t>(i), 0, &stat) != 0)
      return corrupt("entry " + std::to_string(i) + " cannot be read: " + zip_strerror(archive));
    if (Status status = checkEntry(stat, limits, inflated); !status)
      return status.error();
    if (stat.comp_method == ZIP_CM_STORE && __builtin_add_overflow(stored, stat.size, &stored))
      stored = UINT64_MAX;
    if (stored > fileBytes)
      return corrupt("the entries up to " + quoted(stat.name) + " hold more bytes than the file");
    if (!names.insert(stat.name).second)
      return corrupt("entry " + quoted(stat.name) + " occurs twice");
    std::string_view name = stat.name;
    bool isCode = name.ends_with(".py") && name.find("/code/") != name.npos;
    entries.push_back({std::string(name), static_cast<uint64_t>(i), stat.size, isCode});
  }
  return entries;
}

/// The files without which nothing is a TorchScript archive, under one directory.
static Status checkLayout(const std::vector<EntryInfo> &entries) {
  std::string root = entries.front().name.substr(0, entries.front().name.find('/') + 1);
  bool hasData = false, hasCode = false;
  for (const EntryInfo &entry : entries) {
    if (root.empty() || entry.name.compare(0, root.size(), root) != 0)
      return corrupt("entry " + quoted(entry.name) + " lies outside of the archive's directory " +
                     quoted(root));
    hasData |= entry.name == root + "data.pkl";
    hasCode |= entry.name == root + "constants.pkl";
  }
  if (hasData && hasCode)
    return {};
  if (hasData)
    return Error{ExitCode::Invalid,
                 "the file holds tensors, but no TorchScript module (constants.pkl is missing)",
                 "save the model with torch.jit.save(torch.jit.script(model), ...) instead of torch.save"};
  return corrupt("the archive has no " + root + "data.pkl");
}

/// Adds the operators that a piece of TorchScript calls: `torch.add(` and `ops.prim.NumToTensor(`.
static void collectOperators(std::string_view code, std::set<std::string> &names) {
  auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  auto wordAt = [&](size_t begin) {
    size_t end = begin;
    while (end < code.size() && isWord(code[end]))
      ++end;
    return code.substr(begin, end - begin);
  };
  for (size_t open = code.find('('); open != code.npos; open = code.find('(', open + 1)) {
    size_t begin = open;
    while (begin > 0 && (isWord(code[begin - 1]) || code[begin - 1] == '.'))
      --begin;
    std::string_view callee = code.substr(begin, open - begin);
    if (callee.substr(0, 6) == "torch." && wordAt(begin + 6).size() + 6 == callee.size() && callee.size() > 6)
      names.insert("aten::" + std::string(callee.substr(6)));
    if (callee.substr(0, 4) != "ops.")
      continue;
    std::string_view space = wordAt(begin + 4);
    if (size_t name = 4 + space.size() + 1;
        name < callee.size() && wordAt(begin + name).size() + name == callee.size())
      names.insert(std::string(space) + "::" + std::string(callee.substr(name)));
  }
}

/// Reads an entry to its end, for libzip reports a wrong checksum there. Keeps the text of code.
static Status readEntry(zip_t *archive, const EntryInfo &info, std::set<std::string> &operators) {
  Entry entry(zip_fopen_index(archive, info.index, 0));
  if (!entry)
    return corrupt("entry " + quoted(info.name) + " cannot be opened: " + zip_strerror(archive));
  std::vector<char> buffer(info.isCode ? info.size + 1 : 1 << 18);
  uint64_t total = 0;
  while (true) {
    size_t at = info.isCode ? std::min<uint64_t>(total, info.size) : 0;
    zip_int64_t got = zip_fread(entry.get(), buffer.data() + at, buffer.size() - at);
    if (got < 0)
      return corrupt("entry " + quoted(info.name) + " is damaged: " + zip_file_strerror(entry.get()));
    if (got == 0)
      break;
    total += static_cast<uint64_t>(got);
    if (total > info.size)
      break;
  }
  if (total != info.size)
    return corrupt("entry " + quoted(info.name) + " holds " + std::to_string(total) +
                   " bytes, but its size is " + std::to_string(info.size));
  if (info.isCode)
    collectOperators({buffer.data(), total}, operators);
  return {};
}

Result<ArchiveSummary> checkArchive(int fd, const ArchiveLimits &limits) {
  struct stat file = {};
  if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode))
    return Error{ExitCode::Io, "the model is not a regular file", ""};
  auto archive = openArchive(fd);
  if (!archive)
    return archive.error();
  auto entries = listEntries(archive->get(), static_cast<uint64_t>(file.st_size), limits);
  if (!entries)
    return entries.error();
  if (Status status = checkLayout(*entries); !status)
    return status.error();
  std::set<std::string> operators;
  for (const EntryInfo &entry : *entries)
    if (Status status = readEntry(archive->get(), entry, operators); !status)
      return status.error();
  ArchiveSummary summary;
  for (const EntryInfo &entry : *entries)
    summary.unpackedBytes += entry.size;
  summary.operatorNames.assign(operators.begin(), operators.end());
  return summary;
}

} // namespace ds
