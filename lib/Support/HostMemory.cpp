//===- HostMemory.cpp - How much memory this process may use --------------------===//
//
// The limit of a container stands in no field of /proc/meminfo. It is found by way of /proc/self/mountinfo
// (where control groups are mounted, and which part of their tree is seen there) and /proc/self/cgroup (which
// group this process is in); a limit of any group above counts as well.
//
//===---------------------------------------------------------------------------===//

#include "ds/Support/HostMemory.h"

#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include <sys/resource.h>

namespace ds {

namespace {

/// A mounted control-group tree that can limit memory.
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

static std::optional<int64_t> toInt(const std::string &text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

static bool contains(const std::string &commaList, const std::string &word) {
  for (const std::string &part : split(commaList, ','))
    if (part == word)
      return true;
  return false;
}

/// Bytes of "MemTotal:  24684084 kB".
static std::optional<int64_t> physicalBytes(const std::string &root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key, value, unit;
    words >> key >> value >> unit;
    std::optional<int64_t> kib = toInt(value);
    if (key == "MemTotal:" && unit == "kB" && kib && *kib > 0 && *kib <= INT64_MAX / 1024)
      return *kib * 1024;
  }
  return std::nullopt;
}

/// The group of this process in the tree of version 2, or in the version-1 tree of the memory controller.
static std::string groupOf(const std::string &root, bool unified) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) { // hierarchy:controllers:path
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    if (unified ? line.compare(0, second + 1, "0::") == 0 : contains(controllers, "memory"))
      return line.substr(second + 1);
  }
  return "/";
}

static std::vector<GroupTree> groupTrees(const std::string &root) {
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
      trees.push_back({mount[4], mount[3], "memory.max", groupOf(root, true)});
    else if (system[0] == "cgroup" && contains(system[2], "memory"))
      trees.push_back({mount[4], mount[3], "memory.limit_in_bytes", groupOf(root, false)});
  }
  return trees;
}

/// Lowers `memory` to the limits of the process's group and of all groups above it that can be seen.
static void applyTree(const GroupTree &tree, const std::string &root, HostMemory &memory) {
  std::string group = tree.group;
  if (tree.top != "/" && group.compare(0, tree.top.size(), tree.top) == 0)
    group.erase(0, tree.top.size()); // the mount shows only a part of the tree
  while (true) {
    const std::string path = tree.point + (group == "/" ? "" : group) + "/" + tree.file;
    std::ifstream file(root + path);
    std::string text;
    // "max" is no number: no limit here.
    if (std::getline(file, text))
      if (std::optional<int64_t> limit = toInt(text); limit && *limit < memory.bytes)
        memory = {*limit, "cgroup limit " + path};
    size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos)
      return;
    group.erase(slash);
  }
}

Result<HostMemory> hostMemory(const std::string &root) {
  std::optional<int64_t> physical = physicalBytes(root);
  if (!physical)
    return Error{ExitCode::Io, root + "/proc/meminfo: no readable MemTotal", "give the limit with --memory"};
  HostMemory memory = {*physical, "physical memory"};
  for (const GroupTree &tree : groupTrees(root))
    applyTree(tree, root, memory);
  rlimit limit;
  if (root.empty() && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < rlim_t(memory.bytes))
    memory = {int64_t(limit.rlim_cur), "address space"};
  return memory;
}

} // namespace ds
