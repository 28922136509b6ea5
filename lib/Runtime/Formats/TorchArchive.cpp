//===- TorchArchive.cpp - The zip archive of torch.save -------------------------===//

#include "TorchArchive.h"

#include "Files/Text.h"
#include "ds/Support/Descriptor.h"

#include <algorithm>
#include <vector>
#include <zip.h>

#include <sys/stat.h>
#include <unistd.h>

using namespace ds;
using namespace ds::rt;

namespace {
constexpr int64_t kMaxEntries = 200'000;
constexpr size_t kMaxNameBytes = 1024;
constexpr char kHint[] = "copy the file again, or save it again with torch.save";
} // namespace

void TorchArchive::Discard::operator()(zip *archive) const { zip_discard(archive); }
void TorchArchive::Discard::operator()(zip_file *entry) const { zip_fclose(entry); }

Error TorchArchive::corrupt(const std::string &what) const {
  return {ExitCode::Corrupt, quote(path) + ": " + what, kHint};
}

/// What a file that is no zip archive is, where that can be told.
static Error notAnArchive(int fd, const std::string &path, int code) {
  uint8_t start[4] = {};
  bool isPickle = pread(fd, start, sizeof(start), 0) == sizeof(start) && start[0] == 0x80 && start[1] <= 5;
  if (isPickle)
    return {ExitCode::Invalid,
            quote(path) +
                ": is a bare pickle, or torch.save's form before PyTorch 1.6, which is not an archive",
            "load it with torch.load and save it again with torch.save"};
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  return {ExitCode::Corrupt, quote(path) + ": is no archive of torch.save: " + reason, kHint};
}

Result<TorchArchive> TorchArchive::open(int fd, const std::string &path) {
  Descriptor file(fd);
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return Error{ExitCode::Io, "cannot read " + quote(path) + ": expects a regular file", ""};
  TorchArchive result;
  result.path = path;
  int code = 0;
  result.archive.reset(zip_fdopen(fd, ZIP_CHECKCONS, &code)); // owns the descriptor if it succeeds
  if (!result.archive)
    return notAnArchive(fd, path, code);
  file.release();
  if (Status status = result.list(uint64_t(info.st_size)); !status)
    return status.error();
  if (Status status = result.checkLayout(); !status)
    return status.error();
  return result;
}

/// Names are relative paths, as PyTorch writes them.
static bool isPlainName(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || name.front() == '/' || name.find('\\') != name.npos)
    return false;
  bool isPrintable = std::all_of(name.begin(), name.end(), [](uint8_t c) { return c >= 0x20 && c != 0x7f; });
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = std::min(name.find('/', begin), name.size());
    std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..")
      return false;
    begin = end + 1;
  }
  return isPrintable;
}

Status TorchArchive::list(uint64_t fileBytes) {
  int64_t count = zip_get_num_entries(archive.get(), 0);
  if (count < 1 || count > kMaxEntries)
    return corrupt("has " + std::to_string(count) + " entries; the limit is " + std::to_string(kMaxEntries));
  constexpr uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD |
                               ZIP_STAT_CRC | ZIP_STAT_ENCRYPTION_METHOD;
  uint64_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive.get(), uint64_t(i), 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded)
      return corrupt("entry " + std::to_string(i) + " has no name, size or checksum");
    std::string_view name = stat.name;
    if (!isPlainName(name))
      return corrupt("entry " + quote(name) + " has a name that is no plain relative path");
    if (stat.comp_method != ZIP_CM_STORE || stat.encryption_method != ZIP_EM_NONE)
      return corrupt("entry " + quote(name) + " is compressed or encrypted, which torch.save never does");
    if (stat.size > fileBytes || (total += stat.size) > fileBytes)
      return corrupt("the entries up to " + quote(name) + " hold more bytes than the file");
    if (i == 0)
      root = name.substr(0, name.find('/') + 1);
    if (root.empty() || !name.starts_with(root))
      return corrupt("entry " + quote(name) + " lies outside of the archive's directory " + quote(root));
    if (!entries.try_emplace(std::string(name.substr(root.size())), Entry{stat.index, stat.size}).second)
      return corrupt("entry " + quote(name) + " occurs twice");
  }
  return {};
}

Status TorchArchive::checkLayout() {
  if (find("constants.pkl"))
    return Error{ExitCode::Invalid, quote(path) + ": is a TorchScript archive, not a file of torch.save",
                 "save the model's state_dict() with torch.save"};
  if (!find("data.pkl"))
    return corrupt("has no " + root + "data.pkl");
  Entry *order = find("byteorder");
  if (!order)
    return {}; // from before PyTorch 2.1, which wrote what the machine had
  if (order->bytes > 16)
    return corrupt("has a byteorder of " + std::to_string(order->bytes) + " bytes");
  Result<std::string> text = readAll(*order);
  if (!text)
    return text.error();
  if (*text != "little")
    return Error{ExitCode::Invalid, quote(path) + ": has numbers in byte order " + quote(*text),
                 "save it again on a little-endian machine"};
  return {};
}

TorchArchive::Entry *TorchArchive::find(std::string_view name) {
  auto found = entries.find(name);
  return found == entries.end() ? nullptr : &found->second;
}

/// Makes `current` the entry, at its beginning if it was not open.
Status TorchArchive::select(const Entry &entry) {
  if (current && currentIndex == entry.index)
    return {};
  current.reset(zip_fopen_index(archive.get(), entry.index, 0));
  currentIndex = entry.index;
  if (!current)
    return corrupt("entry " + std::to_string(entry.index) +
                   " cannot be opened: " + zip_strerror(archive.get()));
  return {};
}

/// Reads the entry to its end, where libzip compares the checksum.
Status TorchArchive::check(Entry &entry) {
  current.reset();
  if (Status status = select(entry); !status)
    return status;
  std::vector<std::byte> buffer(std::min<uint64_t>(entry.bytes + 1, 1 << 20));
  uint64_t total = 0;
  int64_t got;
  while ((got = zip_fread(current.get(), buffer.data(), buffer.size())) > 0)
    total += uint64_t(got);
  if (got < 0 || total != entry.bytes)
    return corrupt("entry " + std::to_string(entry.index) + " is damaged: " +
                   (got < 0 ? zip_file_strerror(current.get()) : std::to_string(total) + " bytes"));
  entry.isChecked = true;
  return {};
}

Status TorchArchive::readAt(Entry &entry, uint64_t begin, void *to, uint64_t bytes) {
  if (!entry.isChecked)
    if (Status status = check(entry); !status)
      return status;
  if (Status status = select(entry); !status)
    return status;
  if (zip_fseek(current.get(), int64_t(begin), SEEK_SET) != 0)
    return corrupt("entry " + std::to_string(entry.index) + " cannot be read at byte " +
                   std::to_string(begin));
  for (uint64_t done = 0; done < bytes;) {
    int64_t got = zip_fread(current.get(), static_cast<std::byte *>(to) + done, bytes - done);
    if (got <= 0)
      return corrupt("entry " + std::to_string(entry.index) + " ends at byte " +
                     std::to_string(begin + done));
    done += uint64_t(got);
  }
  return {};
}

Result<std::string> TorchArchive::readAll(Entry &entry) {
  std::string bytes(entry.bytes, '\0');
  if (Status status = readAt(entry, 0, bytes.data(), bytes.size()); !status)
    return status.error();
  return bytes;
}
