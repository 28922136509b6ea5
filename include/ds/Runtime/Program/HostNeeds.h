//===- HostNeeds.h - What a program on an accelerator takes of its host -----------===//
//
// Beside the process itself. Who plans and who runs read it here, so that the plan is what the run takes.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_HOSTNEEDS_H
#define DS_RUNTIME_PROGRAM_HOSTNEEDS_H

#include "ds/Runtime/Program/Program.h"

namespace ds::rt {

/// Where each input of a micro-step lies in the page-locked memory through which inputs reach the device, in
/// bytes from the micro-step's place, and behind them the bytes of such a place.
std::vector<uint64_t> stagedInputOffsets(const Program &program);

/// Bytes of all such places: one for each micro-step, because a whole step is started at once.
uint64_t inputStagingBytes(const Program &program);

/// Bytes of page-locked memory in which streams mark how far they are.
uint64_t markBytes(const Program &program);

/// Bytes of the largest part of a state that any rank holds. Parts pass through a copy in the host's memory,
/// one at a time, when states get their first values and when they are saved.
uint64_t largestPartBytes(const Program &program);

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_HOSTNEEDS_H
