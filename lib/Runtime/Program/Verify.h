//===- Verify.h - What the parts of the program verifier share -----------------===//
//
// Each part checks one layer and trusts the ones before it: tables (indices, enumerations, geometry), then
// library commands and collectives (operands against Library.h and Program.h), then segments and their
// schedule (what is done when), then lifetimes and events (who holds which byte when), then lanes (what runs
// beside what), then what stages have with each other.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_PROGRAM_VERIFY_H
#define DS_LIB_RUNTIME_PROGRAM_VERIFY_H

#include "ds/Runtime/Program/ProgramFile.h"

#include <fmt/format.h>

#include <string_view>

namespace ds::rt {

/// A refusal: `what` says place, value and limit.
template <class... Args>
Error refuse(fmt::format_string<Args...> what, Args &&...args) {
  return Error{ExitCode::Corrupt, fmt::format(what, std::forward<Args>(args)...), ""};
}

/// Of a buffer, and after how many micro-batches a command's operands are where they were: commands are bound
/// once for each.
inline constexpr uint32_t kMaxSlots = 1024;

/// Whether `value` is an enumerator; `last` is the last one.
template <class Enum>
bool isKnown(Enum value, Enum last) {
  return static_cast<unsigned>(value) <= static_cast<unsigned>(last);
}

/// Whether the window [first, first + count) lies in a list of `size` entries.
inline bool inRange(uint64_t first, uint64_t count, uint64_t size) { return first + count <= size; }

/// "commands[7] (matmul of layer 2)": for diagnostics; survives any bad index.
std::string describeCommand(const Program &program, uint64_t command);

/// Bytes of the arena of `space` of one stage.
uint64_t bytesOf(const ArenaBytes &arenas, Space space);

/// "stage 2: ": whose schedule or memory a message is about; empty in a program of one stage.
std::string describeStage(const Program &program, size_t stage);

/// Whether two buffers move alike from micro-batch to micro-batch.
bool haveSameSlots(const Buffer &a, const Buffer &b);

/// Bytes from the buffer's window on one rank to that on the next one along `axis`.
uint64_t axisStride(const Buffer &buffer, unsigned axis);

/// Whether no two elements of `buffer` share a byte: by stride, each dimension steps over all that those
/// below it reach. True of all windows that are cut out of packed memory; errs on the side of false.
bool hasDistinctElements(const Buffer &buffer);

/// Whether any byte of an element of `a` can be one of `b` in one command, on any rank. Exact for views of
/// one parent that are cut along a dimension; otherwise errs on the side of true.
bool mayOverlap(const Buffer &a, const Buffer &b, const Mesh &mesh);

Status verifyTables(const Program &program);
Status verifySignature(const Program &program);
Status verifyKernels(const Program &program);
/// The kernels of the program are those of `lines`, which the image says of itself (KernelInterface.h); of a
/// program for CUDA those that the host runs, or those that the device does.
Status verifyInterfaces(const Program &program, std::string_view lines, bool ofHost);
Status verifyKernelCommand(const Program &program, uint64_t command);
Status verifyCollectives(const Program &program);
Status verifyCollectiveCommand(const Program &program, uint64_t command);
/// Exchanges are whole, and their messages share nothing that one of them receives (Messages.h).
Status verifyExchanges(const Program &program);
/// What lanes run beside each other neither shares streams nor touches bytes that one of them writes, and
/// each slot is done with one micro-batch before the next (docs/pipelines.md).
Status verifyLanes(const Program &program);
Status verifyLaneAccesses(const Program &program, uint32_t stage);
/// In every step and evaluation stages send what others receive, and nobody waits for ever.
Status verifyMeetings(const Program &program);
Status verifyStorageSettings(const Program &program);
Status verifyStorageCommand(const Program &program, uint64_t command);
/// A command that is none of storage names no bytes of storage: it would take their places for addresses.
Status verifyNoStorage(const Program &program, uint64_t command);
/// Bytes that `command` touches behind the `extent` bytes of an operand, because storage moves in whole
/// units.
uint64_t paddingBytes(const Command &command, uint64_t extent);
Status verifyLibraryCommand(const Program &program, uint64_t command);
Status verifySegments(const Program &program);
Status verifySchedules(const Program &program);
Status verifyLifetimes(const Program &program);
Status verifyEvents(const Program &program);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROGRAM_VERIFY_H
