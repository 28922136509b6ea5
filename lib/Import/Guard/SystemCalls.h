//===- SystemCalls.h - The system calls that an import may make ----------------===//
//
// An allow-list: a call that nobody thought of is refused. What LibTorch, the C library and thread pools need
// once everything is loaded is memory, threads, time, and reading and writing what is open already.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_GUARD_SYSTEMCALLS_H
#define DS_LIB_IMPORT_GUARD_SYSTEMCALLS_H

#include <cstddef>

namespace ds::system_calls {

/// Puts the filter in force for all threads of this process, for good. False where the kernel or the
/// container does not let it. A call that is not in the list raises SIGSYS and is not made.
bool installFilter();

/// Looks up the names of all calls: must happen before `nameOf` is used in a signal handler.
void resolveNames();
/// "openat"; "unknown" for a number that has no name. Safe in a signal handler.
const char *nameOf(int number);
/// What the call is for: "open a file"; null for calls that are best told by their name. Safe in a signal
/// handler.
const char *purposeOf(const char *name);

} // namespace ds::system_calls

#endif // DS_LIB_IMPORT_GUARD_SYSTEMCALLS_H
