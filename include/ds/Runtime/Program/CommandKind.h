//===- CommandKind.h - What commands a program can have -------------------------===//
//
// One row for each kind of command says what everybody asks of it: what it is called, what it works with,
// whether it is an event. The ops of the compiler name their kind; plans, the verifier, engines and traces
// read the row. Only who carries commands out, checks their operands or says how long they take names kinds.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_COMMANDKIND_H
#define DS_RUNTIME_PROGRAM_COMMANDKIND_H

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace ds::rt {

enum class CommandKind : uint8_t {
  Kernel,      ///< callee = index into kernels
  Library,     ///< callee = LibraryFn
  Copy,        ///< between spaces; operands: source, destination
  Collective,  ///< callee = index into collectives; see Collective for the operands
  Storage,     ///< between storage and host; operands: source, destination; whole units are moved
  RecordEvent, ///< callee = event
  WaitEvent,   ///< callee = event
};
inline constexpr CommandKind kLastCommandKind = CommandKind::WaitEvent;

/// What a command takes while it runs. Commands that take the same one slow each other down.
enum class Resource : uint8_t {
  Nothing, ///< it is an event
  Cores,   ///< of the device, or of the host where it is on the host's stream: it computes
  Link,    ///< between device and host
  Fabric,  ///< between ranks
  Disk,
};

struct CommandTraits {
  CommandKind kind;
  const char *name;     ///< in plans
  const char *category; ///< in traces of runs, by the words of PyTorch's
  Resource resource;

  constexpr bool computes() const { return resource == Resource::Cores; }
  constexpr bool isEvent() const { return resource == Resource::Nothing; }
};

inline constexpr CommandTraits kCommands[] = {
    {CommandKind::Kernel, "compute", "kernel", Resource::Cores},
    {CommandKind::Library, "compute", "cpu_op", Resource::Cores},
    {CommandKind::Copy, "copy", "memcpy", Resource::Link},
    {CommandKind::Collective, "collective", "collective", Resource::Fabric},
    {CommandKind::Storage, "storage", "memcpy", Resource::Disk},
    {CommandKind::RecordEvent, "record", "event", Resource::Nothing},
    {CommandKind::WaitEvent, "wait", "event", Resource::Nothing},
};

/// Whether each kind has the row of its number.
constexpr bool haveOwnRows() {
  for (size_t row = 0; row < std::size(kCommands); ++row)
    if (kCommands[row].kind != static_cast<CommandKind>(row))
      return false;
  return std::size(kCommands) == static_cast<size_t>(kLastCommandKind) + 1;
}
static_assert(haveOwnRows(), "each kind of command has a row, in the order of the enumerators");

/// Requires a kind that is known.
constexpr const CommandTraits &traitsOf(CommandKind kind) { return kCommands[static_cast<size_t>(kind)]; }

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_COMMANDKIND_H
