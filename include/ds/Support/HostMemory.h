//===- HostMemory.h - How much memory this process may use ----------------------===//
#ifndef DS_SUPPORT_HOSTMEMORY_H
#define DS_SUPPORT_HOSTMEMORY_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <string>

namespace ds {

struct HostMemory {
  int64_t bytes = 0; ///< of hostMemory the most that this process may use, not what is free now
  std::string
      source; ///< which limit that is: "physical memory", "cgroup limit /a/b/memory.max", "address space"
};

/// The lowest of physical memory, the limits of this process's control group and all above it (version 2 and
/// 1, as a container sets them), and the address-space limit (`ulimit -v`). Files are read below `root`,
/// which only tests set; the address-space limit counts only without it. Fails (exit 6) if not even physical
/// memory can be read.
Result<HostMemory> hostMemory(const std::string &root = "");

/// What this process may still take: the least of what the machine has available and of what each of those
/// control groups has left now. As much as there can be where the system does not say.
HostMemory availableMemory(const std::string &root = "");

} // namespace ds

#endif // DS_SUPPORT_HOSTMEMORY_H
