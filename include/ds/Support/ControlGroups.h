//===- ControlGroups.h - What a container sets for this process -------------------===//
#ifndef DS_SUPPORT_CONTROLGROUPS_H
#define DS_SUPPORT_CONTROLGROUPS_H

#include <cstdint>
#include <string>
#include <vector>

namespace ds {

/// One file of a control group.
struct GroupFile {
  std::string path, line; ///< its first line
};

/// A limit by the file that holds it in each version of control groups.
struct GroupLimit {
  std::string controller; ///< of version 1, whose tree may be one of its own
  std::string version2, version1;
};

/// What the files of `limit` say, of this process's group and of all above it that can be seen, in both
/// versions; the nearest group of a tree first. Files are read below `root`, which only tests set.
std::vector<GroupFile> readGroupLimit(const GroupLimit &limit, const std::string &root = "");

/// What a control group lets its processes have of memory together, in bytes.
struct GroupMemory {
  std::string path; ///< of the file that holds the limit
  int64_t limit = 0;
  int64_t used = 0; ///< now, without what the kernel gives up at once: files that nobody has used lately
};

/// Of every group with a limit, of this process's and all above it, in both versions; the only reader of such
/// limits, for plans and for runs. Files are read below `root`, which only tests set.
std::vector<GroupMemory> readGroupMemory(const std::string &root = "");

/// A whole number of at least 0, and nothing else; -1 for other text.
long long groupNumber(const std::string &text);

} // namespace ds

#endif // DS_SUPPORT_CONTROLGROUPS_H
