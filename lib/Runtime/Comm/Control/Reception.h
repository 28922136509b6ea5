//===- Reception.h - Who calls, before anybody waits for them -----------------------===//
//
// A rank listens at a port that anyone can reach: port scanners, other jobs, remains of them. So nobody waits
// for a caller before it has said who it is and has shown that it knows the secrets of this job, which only
// the rendezvous gives. Those who have called and not said so yet are heard side by side; one that stays
// silent keeps no other waiting. Every connection between ranks is made here, for news and for data alike: no
// library listens anywhere.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_RECEPTION_H
#define DS_LIB_RUNTIME_COMM_CONTROL_RECEPTION_H

#include "Card.h"
#include "Socket.h"

#include <list>
#include <map>
#include <vector>

namespace ds::rt {

/// What a connection is for: news, or from kData on the data of a channel.
using CallPurpose = uint32_t;
inline constexpr CallPurpose kNewsCall = 0, kDataCall = 1;

/// What a caller says first. It knows both secrets from the rendezvous of this very job.
struct Hello {
  char secretOfCaller[32], secretOfCalled[32];
  uint32_t caller;
  CallPurpose purpose;
};

/// Calls rank `called` of those that have left `cards`, as rank `caller`.
Result<Socket> callRank(const std::vector<Card> &cards, uint32_t caller, uint32_t called, CallPurpose purpose,
                        Deadline deadline);

/// Takes the calls for one rank. Used by one thread at a time.
class Reception {
public:
  /// `cards` are those of all ranks, `listener` is where `rank` is called.
  Reception(std::vector<Card> cards, uint32_t rank, Socket listener);

  /// Is readable when there is something to `work` on; negative where the system gives none.
  int descriptor() const { return events.get(); }

  /// Goes on with all who have called, without waiting for any of them.
  void work();

  /// The connection of a rank that has called for `purpose`, once; invalid while it has not.
  Socket take(uint32_t caller, CallPurpose purpose);

  /// Works until `take` would have something of each of `callers`, or until the deadline; `isOver` is asked
  /// now and then, and ends the waiting. Returns those who have not called.
  std::vector<uint32_t> await(const std::vector<uint32_t> &callers, CallPurpose purpose, Deadline deadline,
                              const std::function<bool()> &isOver);

private:
  /// Somebody who has not said all yet.
  struct Stranger {
    Socket socket;
    Deadline since;
    Hello hello = {};
    size_t received = 0;
  };

  bool acceptOne();
  bool makeRoom();
  bool hear(Stranger &stranger);
  void admit(Stranger &stranger);

  const std::vector<Card> cards;
  const uint32_t rank;
  const Socket listener;
  const Socket events;           ///< epoll of the listener and of all strangers
  std::list<Stranger> strangers; ///< in the order in which they called
  std::map<std::pair<uint32_t, CallPurpose>, Socket> calls;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_RECEPTION_H
