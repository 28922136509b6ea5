//===- ControlGroups.cpp - What a container sets for this process -----------------===//
//
// The limit of a container stands in no field of /proc/meminfo or the like. It is found by way of
// /proc/self/mountinfo (where control groups are mounted, and which part of their tree is seen there) and
// /proc/self/cgroup (which group this process is in); a limit of any group above counts as well.
//
//===---------------------------------------------------------------------------===//
#include "ds/Support/ControlGroups.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace ds {

namespace {

/// A mounted control-group tree that can hold the limit.
struct GroupTree {
  std::string point; ///< where it is mounted
  std::string top;   ///< the group that is seen there
  std::string file;  ///< that holds the limit
  std::string group; ///< of this process
};

} // namespace

static std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

static bool contains(const std::string &commaList, const std::string &word) {
  for (const std::string &part : split(commaList, ','))
    if (part == word)
      return true;
  return false;
}

/// The group of this process in the tree of version 2, or in the version-1 tree of the controller.
static std::string groupOf(const GroupLimit &limit, const std::string &root, bool unified) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) { // hierarchy:controllers:path
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    if (unified ? line.compare(0, second + 1, "0::") == 0 : contains(controllers, limit.controller))
      return line.substr(second + 1);
  }
  return "/";
}

static std::vector<GroupTree> groupTrees(const GroupLimit &limit, const std::string &root) {
  std::vector<GroupTree> trees;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    // id parent device top point options [optional...] - type source options
    size_t dash = line.find(" - ");
    if (dash == std::string::npos)
      continue;
    std::vector<std::string> mount = split(line.substr(0, dash), ' '),
                             system = split(line.substr(dash + 3), ' ');
    if (mount.size() < 5 || system.size() < 3)
      continue;
    if (system[0] == "cgroup2")
      trees.push_back({mount[4], mount[3], limit.version2, groupOf(limit, root, true)});
    else if (system[0] == "cgroup" && contains(system[2], limit.controller))
      trees.push_back({mount[4], mount[3], limit.version1, groupOf(limit, root, false)});
  }
  return trees;
}

/// Adds what the group of the process and all groups above it say.
static void readTree(const GroupTree &tree, const std::string &root, std::vector<GroupFile> &files) {
  std::string group = tree.group;
  if (tree.top != "/" && group.compare(0, tree.top.size(), tree.top) == 0)
    group.erase(0, tree.top.size()); // the mount shows only a part of the tree
  while (true) {
    const std::string path = tree.point + (group == "/" ? "" : group) + "/" + tree.file;
    std::ifstream file(root + path);
    std::string line;
    if (std::getline(file, line))
      files.push_back({path, line});
    size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos)
      return;
    group.erase(slash);
  }
}

std::vector<GroupFile> readGroupLimit(const GroupLimit &limit, const std::string &root) {
  std::vector<GroupFile> files;
  for (const GroupTree &tree : groupTrees(limit, root))
    readTree(tree, root, files);
  return files;
}

/// The number in the first line of a file; -1 without.
static int64_t numberIn(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? groupNumber(line) : -1;
}

/// Of "key number" lines the number of `key`; 0 without.
static int64_t numberOf(const std::string &key, const std::string &path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key + " "))
      return std::max<int64_t>(groupNumber(line.substr(key.size() + 1)), 0);
  return 0;
}

std::vector<GroupMemory> readGroupMemory(const std::string &root) {
  const GroupLimit files = {"memory", "memory.max", "memory.limit_in_bytes"};
  std::vector<GroupMemory> groups;
  for (const GroupFile &file : readGroupLimit(files, root)) {
    GroupMemory group{file.path, groupNumber(file.line), 0};
    if (group.limit < 0) // "max" is no number: no limit here
      continue;
    const bool isVersion2 = file.path.ends_with(files.version2);
    const std::string directory = root + file.path.substr(0, file.path.rfind('/') + 1);
    const int64_t all = numberIn(directory + (isVersion2 ? "memory.current" : "memory.usage_in_bytes"));
    const int64_t idle =
        numberOf(isVersion2 ? "inactive_file" : "total_inactive_file", directory + "memory.stat");
    group.used = std::max<int64_t>(all - idle, 0);
    groups.push_back(std::move(group));
  }
  return groups;
}

long long groupNumber(const std::string &text) {
  long long value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc() || end != text.data() + text.size() || value < 0 ? -1 : value;
}

} // namespace ds
