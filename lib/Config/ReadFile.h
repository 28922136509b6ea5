//===- ReadFile.h - All bytes of a small text file ----------------------------------===//
#ifndef DS_LIB_CONFIG_READFILE_H
#define DS_LIB_CONFIG_READFILE_H

#include "ds/Support/Error.h"

namespace ds::config {

/// The bytes of a regular file, a little more than the parser's limit at most. Fails with Io and `hint`.
Result<std::string> readFile(const std::string &path, const std::string &hint);

} // namespace ds::config

#endif // DS_LIB_CONFIG_READFILE_H
