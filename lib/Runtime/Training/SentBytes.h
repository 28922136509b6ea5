//===- SentBytes.h - What a rank sends, by what for and to whom ----------------------===//
//
// A plan says how many bytes a rank sends in a step, by the kind of collective and by the axes along which
// its group lies. Here the same is counted of the commands that a run executes, on any device.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_SENTBYTES_H
#define DS_LIB_RUNTIME_TRAINING_SENTBYTES_H

#include "ds/Runtime/Formats/JsonLog.h"
#include "ds/Runtime/Program/Program.h"

#include <string>

namespace ds::rt {

/// What a rank sends by one collective: the most that any of its group does, 0 by other commands. Requires a
/// program that verifyProgram accepts.
uint64_t sentBytes(const Program &program, const Command &command);

/// What a rank of the one stage of `program` sends in a step. A message counts where it is sent.
SentBytes sentByStep(const Program &program);

/// "sent by rank 0 in a step: all_gather 1 MiB along dp.local, 64 KiB along dp.node; send 2 KiB along pp";
/// empty of nothing.
std::string describeSent(const SentBytes &sent);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_SENTBYTES_H
