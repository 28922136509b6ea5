//===- Sandbox.h - Takes away what an import does not need ----------------------===//
//
// Loading TorchScript runs code of the archive. Before that, the process gives up for good the right to open
// files for writing, to reach the network, to start programs and to look at other processes, and bounds its
// own memory and time. It speaks only through descriptors that its parent opened.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_GUARD_SANDBOX_H
#define DS_LIB_IMPORT_GUARD_SANDBOX_H

#include <cstdint>
#include <string>

namespace ds {

struct SandboxLimits {
  uint64_t addressSpaceBytes = 0;
  uint64_t fileBytes = 0; ///< that one descriptor may be written up to
  uint64_t cpuSeconds = 0;
};

/// Applies the limits and the filter. Returns what could not be applied, in one line; empty when all was. A
/// call that the filter forbids ends the process: its name is reported to `reportFd`.
std::string enterSandbox(const SandboxLimits &limits, int reportFd);

} // namespace ds

#endif // DS_LIB_IMPORT_GUARD_SANDBOX_H
