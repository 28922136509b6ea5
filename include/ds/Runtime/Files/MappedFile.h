//===- MappedFile.h - A file as read-only memory -------------------------------===//
//
// Weights and data are read by mapping: nothing is copied before it is needed, and ranks of one machine share
// the pages. The price: a file that another process truncates while it is mapped raises SIGBUS on the next
// touch. Replacing a file by rename (AtomicFile) is safe, the mapping keeps the old contents;
// `checkUnchanged` catches the careless case before the data is read.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_FILES_MAPPEDFILE_H
#define DS_RUNTIME_FILES_MAPPEDFILE_H

#include "ds/Support/Descriptor.h"
#include "ds/Support/Error.h"
#include "ds/Support/Mapping.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ds::rt {

/// Owns the mapping and the descriptor. Movable; pointers into it stay valid over a move.
class MappedFile {
public:
  /// Maps the whole of a regular file. Anything else (directory, pipe, device) is refused with Io.
  static Result<MappedFile> open(const std::string &path);

  /// Maps `directory`/`name`, where `name` comes from an untrusted file: it must be a plain file name, and a
  /// symbolic link may not lead out of the directory.
  static Result<MappedFile> openBeneath(const std::string &directory, std::string_view name);

  /// Maps the file behind an open descriptor and takes it over, also on failure; `name` is for messages.
  static Result<MappedFile> adopt(int fd, std::string name);

  std::span<const std::byte> bytes() const { return {mapping.data(), mapping.size()}; }
  const std::string &path() const { return name; }

  /// Takes what has been read out of this process's memory. It is read again where it is touched.
  void forget() const;

  /// Io error if the file's size or modification time is no longer what it was when it was opened.
  Status checkUnchanged() const;

private:
  std::string name;
  Mapping mapping; ///< none for an empty file
  Descriptor file;
  int64_t modifiedNs = 0;
};

} // namespace ds::rt

#endif // DS_RUNTIME_FILES_MAPPEDFILE_H
