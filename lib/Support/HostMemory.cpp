//===- HostMemory.cpp - How much memory this process may use --------------------===//

#include "ds/Support/HostMemory.h"

#include "ds/Support/ControlGroups.h"

#include <fstream>
#include <optional>
#include <sstream>

#include <sys/resource.h>

namespace ds {

/// Bytes of "MemTotal:  24684084 kB".
static std::optional<int64_t> physicalBytes(const std::string &root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key, value, unit;
    words >> key >> value >> unit;
    const int64_t kib = groupNumber(value);
    if (key == "MemTotal:" && unit == "kB" && kib > 0 && kib <= INT64_MAX / 1024)
      return kib * 1024;
  }
  return std::nullopt;
}

Result<HostMemory> hostMemory(const std::string &root) {
  std::optional<int64_t> physical = physicalBytes(root);
  if (!physical)
    return Error{ExitCode::Io, root + "/proc/meminfo: no readable MemTotal", "give the limit with --memory"};
  HostMemory memory = {*physical, "physical memory"};
  for (const GroupFile &file : readGroupLimit({"memory", "memory.max", "memory.limit_in_bytes"}, root))
    // "max" is no number: no limit here.
    if (const int64_t limit = groupNumber(file.line); limit >= 0 && limit < memory.bytes)
      memory = {limit, "cgroup limit " + file.path};
  rlimit limit;
  if (root.empty() && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < rlim_t(memory.bytes))
    memory = {int64_t(limit.rlim_cur), "address space"};
  return memory;
}

} // namespace ds
