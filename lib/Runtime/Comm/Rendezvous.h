//===- Rendezvous.h - How ranks find each other ----------------------------------===//
//
// Every rank leaves its card and collects those of all others, by a deadline. Nothing of an earlier job can
// be picked up: in a directory the names of the files hold the job's nonce, and PMIx has a name space per
// job.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_RENDEZVOUS_H
#define DS_LIB_RUNTIME_COMM_RENDEZVOUS_H

#include "Control/Card.h"
#include "Control/Socket.h"

#include "ds/Runtime/Comm/Communicator.h"

#include <sys/types.h>
#include <vector>

namespace ds::rt {

/// The cards of all ranks, in rank order. Fails with ExitCode::Peer at `deadline`, naming the ranks that did
/// not come, and earlier if the launcher reports that one has ended.
Result<std::vector<Card>> meetInDirectory(const RankIdentity &place, const Card &mine, Deadline deadline);

/// Leaves a note for ranks that wait in the directory: rank `rank` will not come, `why`. For the launcher.
void reportAbsence(const std::string &directory, const std::string &nonce, uint32_t rank,
                   const std::string &why);

/// What such a note says, "rank 3 was killed by signal 9 (Killed)"; empty while there is none, or for one
/// that `owner` has not left.
std::string toldAbsence(const RankIdentity &place, uid_t owner);

/// What meetings have in common: the error for those of `cards` that are still missing.
Error missingRanks(const std::vector<std::optional<Card>> &cards, std::chrono::milliseconds waited);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_RENDEZVOUS_H
