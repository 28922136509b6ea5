//===- Sandbox.h - Takes away what an import does not need ----------------------===//
//
// Loading TorchScript runs code of the archive. Before that, the process gives up for good the right to make
// any system call but those of a list: it opens nothing more, neither for reading nor for writing, reaches
// nothing and starts nothing. It speaks only through descriptors that were opened before. Its memory and
// time are bounded.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_GUARD_SANDBOX_H
#define DS_LIB_IMPORT_GUARD_SANDBOX_H

#include "Limits.h"

#include <string>
#include <vector>

namespace ds {

/// Applies the limits and the filter, to all threads. Returns what could not be applied, in one line; empty
/// when all was. From then on whatever oversteps them ends the process, with a record of what it was on
/// `reportFd`, or a line on standard error where that is negative.
std::string enterSandbox(const ImportLimits &limits, int reportFd);

/// Closes all descriptors but the standard ones and those of `kept`, of which negative ones do not count:
/// what the caller's caller left open is nothing that an archive may read.
void closeOthers(std::vector<int> kept);

} // namespace ds

#endif // DS_LIB_IMPORT_GUARD_SANDBOX_H
