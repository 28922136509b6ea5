//===- SmallFile.h - Files that another process may have put there ----------------===//
//
// Ranks and launchers leave small files for each other in directories that others may be able to write to.
// Whatever lies there under such a name, reading it ends at once, follows no link, and takes no more than it
// was promised.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_SMALLFILE_H
#define DS_LIB_RUNTIME_COMM_SMALLFILE_H

#include <cstddef>
#include <string>
#include <sys/types.h>

namespace ds::rt {

/// More than any of them has.
inline constexpr size_t kMostFileBytes = 4096;

struct SmallFile {
  std::string text;
  std::string refusal; ///< why it is not one of ours: "is a FIFO"; empty if it is, or if there is none
};

/// The file `path`, relative to `directory` (AT_FDCWD: as for open): a regular file of user `owner`. One that
/// is not there, or just now cannot be read, has no text.
SmallFile readSmallFile(int directory, const std::string &path, uid_t owner);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_SMALLFILE_H
