//===- OutputPath.h - What the name of an output leads to -----------------------===//
#ifndef DS_LIB_RUNTIME_FILES_OUTPUTPATH_H
#define DS_LIB_RUNTIME_FILES_OUTPUTPATH_H

#include <string>
#include <sys/stat.h>

namespace ds::rt {

/// Follows links, including one that leads to a file that does not exist yet.
std::string resolveLinks(std::string path);

/// The descriptor of this process's standard output or error if it is the file `info`, else -1. Such a file
/// (as /dev/stdout) is neither replaced nor moved: others hold it open.
int standardStreamOf(const struct stat &info);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FILES_OUTPUTPATH_H
