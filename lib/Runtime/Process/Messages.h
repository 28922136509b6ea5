//===- Messages.h - Lines that a run writes to its terminal ---------------------===//
//
// Lines are made whole before they are written, so that a follower of the output never sees half a line.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_PROCESS_MESSAGES_H
#define DS_LIB_RUNTIME_PROCESS_MESSAGES_H

#include <string>

namespace ds::rt {

/// One line on stderr, after "ds-run: ".
void logLine(const std::string &text);

/// One line, or several, on stdout. A result that cannot be printed is no reason to end a training: the user
/// is told once, and later lines are tried again, for a disk may have room by then.
void printLine(std::string line);

/// "1.23 GiB", "45.6 MiB", "789 B".
std::string bytesText(double bytes);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROCESS_MESSAGES_H
