//===- TorchFile.h - Files of torch.save ----------------------------------------===//
//
// An archive of stored entries: a pickle of the value, and one entry with the bytes of each storage. Opening
// reads the pickle and checks the archive (libzip), not the storages: elements are read from their entry when
// they are asked for. A storage's checksum is compared before its first element is given out, which reads it
// once from end to end.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_FORMATS_TORCHFILE_H
#define DS_RUNTIME_FORMATS_TORCHFILE_H

#include "ds/Runtime/Formats/Pickle.h"

#include <memory>
#include <string>
#include <string_view>

namespace ds::rt {

/// Tells whether a path still leads to the file that was opened.
struct TorchFileIdentity {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modifiedNs = 0;
  bool operator==(const TorchFileIdentity &) const = default;
};

/// An open file. Movable; values stay valid over a move. Reading is thread-safe: one read at a time.
class TorchFile {
public:
  /// Corrupt: a damaged archive or pickle. Invalid: an archive of another kind, or torch.save's form before
  /// PyTorch 1.6. Io: it could not be read.
  static Result<TorchFile> open(const std::string &path);
  /// The same for a name that comes from an untrusted file (see MappedFile::openBeneath).
  static Result<TorchFile> openBeneath(const std::string &directory, std::string_view name);

  const std::string &path() const;
  const TorchFileIdentity &identity() const;

  /// What was saved.
  PickleValue root() const;

  /// Writes elements first .. first + count of the tensor's row-major order to `to`, packed, little-endian.
  /// The tensor is one of this file's. One whose elements are not in this order in the file is loaded whole;
  /// the last such one is kept.
  Status read(const PickleTensor &tensor, uint64_t first, uint64_t count, void *to) const;

  TorchFile(TorchFile &&) noexcept;
  TorchFile &operator=(TorchFile &&) noexcept;
  ~TorchFile();

private:
  struct Contents;
  static Result<TorchFile> adopt(int fd, const std::string &path);
  explicit TorchFile(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents; ///< never null but after a move
};

} // namespace ds::rt

#endif // DS_RUNTIME_FORMATS_TORCHFILE_H
