//===- Solo.h - A group of one rank ----------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_SOLO_H
#define DS_LIB_RUNTIME_COMM_SOLO_H

#include "ds/Runtime/Comm/Communicator.h"

namespace ds::rt {

/// Collectives of one rank: they copy or do nothing, and are not counted.
std::unique_ptr<Communicator> makeSoloCommunicator();

/// A job of one rank. Needs no plugin, but leaves PMIx if `place` came from it.
std::unique_ptr<RankGroup> makeSoloGroup(const RankIdentity &place, uint32_t channels);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_SOLO_H
