//===- HostMemory.cpp - How much memory this process may use --------------------===//

#include "ds/Support/HostMemory.h"

#include "ds/Support/ControlGroups.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include <sys/resource.h>

namespace ds {

/// Bytes of a line like "MemTotal:  24684084 kB".
static std::optional<int64_t> memoryInfo(const std::string &wanted, const std::string &root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key, value, unit;
    words >> key >> value >> unit;
    const int64_t kib = groupNumber(value);
    if (key == wanted && unit == "kB" && kib > 0 && kib <= INT64_MAX / 1024)
      return kib * 1024;
  }
  return std::nullopt;
}

Result<HostMemory> hostMemory(const std::string &root) {
  std::optional<int64_t> physical = memoryInfo("MemTotal:", root);
  if (!physical)
    return Error{ExitCode::Io, root + "/proc/meminfo: no readable MemTotal", "give the limit with --memory"};
  HostMemory memory = {*physical, "physical memory"};
  for (const GroupMemory &group : readGroupMemory(root))
    if (group.limit < memory.bytes)
      memory = {group.limit, "cgroup limit " + group.path};
  rlimit limit;
  if (root.empty() && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < rlim_t(memory.bytes))
    memory = {int64_t(limit.rlim_cur), "address space"};
  return memory;
}

HostMemory availableMemory(const std::string &root) {
  HostMemory left = {memoryInfo("MemAvailable:", root).value_or(INT64_MAX), "physical memory"};
  for (const GroupMemory &group : readGroupMemory(root))
    if (const int64_t rest = std::max<int64_t>(group.limit - group.used, 0); rest < left.bytes)
      left = {rest, "cgroup limit " + group.path};
  return left;
}

} // namespace ds
