//===- RunTool.h - What every tool does before and around its work -------------------===//
//
// A tool is started in whatever surroundings its user has: with closed descriptors, small stacks, limits on
// memory, threads, files and their sizes. What fails for such a reason ends with a message and one of the
// documented exit codes, never by a signal:
//
//   4  memory: a limit on the address space, or none left          (docs/limits.md lists them with their
//   hints) 6  descriptors, sizes of files, output that nobody takes 9  threads that cannot be started
//
//===---------------------------------------------------------------------------===//
#ifndef DS_SUPPORT_RUNTOOL_H
#define DS_SUPPORT_RUNTOOL_H

#include "ds/Support/Error.h"

namespace ds {

/// Runs `body` as the tool `name`: on a stack of at least 8 MiB, with descriptors 0 to 2 open, with writing
/// beyond a limit an error (SIGXFSZ is ignored), and with exceptions that nobody handles told as errors.
/// Called once, by main.
int runTool(const char *name, int argc, char **argv, int (*body)(int argc, char **argv));

/// The error of memory that could not be had, with the limit that is to blame as far as it is known.
Error outOfMemory();

/// The error of a thread that could not be started for `errorNumber`.
Error noThread(int errorNumber);

/// Tells an error in a process that can do nothing else any more, removes temporary files and ends it.
/// Takes no memory.
[[noreturn]] void endWith(ExitCode code, const char *message, const char *hint) noexcept;

/// The same for memory and for threads.
[[noreturn]] void endOutOfMemory() noexcept;
[[noreturn]] void endWithoutThread(int errorNumber) noexcept;

} // namespace ds

#endif // DS_SUPPORT_RUNTOOL_H
