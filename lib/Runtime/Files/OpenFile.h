//===- OpenFile.h - Descriptors of files to read --------------------------------===//
#ifndef DS_LIB_RUNTIME_FILES_OPENFILE_H
#define DS_LIB_RUNTIME_FILES_OPENFILE_H

#include "ds/Support/Error.h"

#include <string>
#include <string_view>

namespace ds::rt {

/// A descriptor of `path` to read from; does not wait for a pipe's writer. Io where there is none.
Result<int> openFile(const std::string &path);

/// A descriptor of `directory`/`name`, where `name` comes from an untrusted file: Corrupt unless it is a
/// plain file name, or where it is a link that leads out of the directory.
Result<int> openFileBeneath(const std::string &directory, std::string_view name);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FILES_OPENFILE_H
