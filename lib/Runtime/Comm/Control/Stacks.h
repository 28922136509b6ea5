//===- Stacks.h - Where the threads of this process are ---------------------------===//
//
// When a job has waited in vain, what each rank does at that moment says why, and a second later nothing is
// left of it. So a rank writes down the stacks of all its threads when the one that gives up asks for them.
//
// Each thread walks its own stack, in the handler of a signal that it is sent. backtrace() takes no lock once
// its library is loaded, which `prepareStacks` sees to. Names come from the symbol tables of the files that
// are mapped; where one has none, file and offset are what `addr2line -e` takes. Threads that have the signal
// blocked, or hang in the kernel where none reaches them, are told of by name alone.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_STACKS_H
#define DS_LIB_RUNTIME_COMM_CONTROL_STACKS_H

#include <chrono>
#include <string>

namespace ds::rt {

/// The signal that threads are sent: whoever blocks all signals in a thread should leave out this one.
int stackSignal();

/// Installs the handler; from any thread, any number of times.
void prepareStacks();

/// A line for each thread and each of its frames. Takes `patience` at most, and whatever is not known by
/// then is missing. One call at a time; requires prepareStacks.
std::string describeStacks(std::chrono::milliseconds patience);

/// Writes to stderr, or gives up after `patience`: nobody may be reading what is written.
inline constexpr std::chrono::milliseconds kWritingTime(1000);
void writeToStderr(const std::string &text, std::chrono::milliseconds patience);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_STACKS_H
