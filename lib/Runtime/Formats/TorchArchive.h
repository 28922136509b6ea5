//===- TorchArchive.h - The zip archive of torch.save ---------------------------===//
//
// libzip reads it; what torch.save never writes (compressed, encrypted or doubled entries, names outside of
// one directory, more bytes than the file has, big-endian numbers) is refused before anything is read.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_FORMATS_TORCHARCHIVE_H
#define DS_LIB_RUNTIME_FORMATS_TORCHARCHIVE_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

struct zip;
struct zip_file;

namespace ds::rt {

class TorchArchive {
public:
  struct Entry {
    uint64_t index = 0, bytes = 0;
    bool isChecked = false; ///< its checksum was compared
  };

  /// Takes the descriptor over, also on failure; `path` is for messages.
  static Result<TorchArchive> open(int fd, const std::string &path);

  /// The entry of that name below the archive's directory ("data.pkl", "data/0"), or null.
  Entry *find(std::string_view name);

  /// The whole of a short entry, its checksum compared.
  Result<std::string> readAll(Entry &entry);
  /// `bytes` bytes from `begin` on. The first read of an entry compares its checksum.
  Status readAt(Entry &entry, uint64_t begin, void *to, uint64_t bytes);

private:
  struct Discard {
    void operator()(zip *archive) const;
    void operator()(zip_file *entry) const;
  };

  Error corrupt(const std::string &what) const;
  Status list(uint64_t fileBytes);
  Status checkLayout();
  Status select(const Entry &entry);
  Status check(Entry &entry);

  std::string path, root; ///< root: "archive/"
  std::unique_ptr<zip, Discard> archive;
  std::map<std::string, Entry, std::less<>> entries; ///< without the root
  std::unique_ptr<zip_file, Discard> current;        ///< closed before `archive` is
  uint64_t currentIndex = 0;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FORMATS_TORCHARCHIVE_H
