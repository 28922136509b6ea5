//===- Socket.h - TCP sockets with deadlines -------------------------------------===//
//
// Just what the control connections need. Every wait has a deadline; no function throws or raises SIGPIPE.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_SOCKET_H
#define DS_LIB_RUNTIME_COMM_CONTROL_SOCKET_H

#include "ds/Support/Descriptor.h"
#include "ds/Support/Error.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ds::rt {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

/// Milliseconds until `deadline`, rounded up; 0 when it has passed.
int remainingMs(Deadline deadline);

/// "5 s" or "0.5 s".
std::string spellSeconds(std::chrono::milliseconds duration);
/// The same of a wait that is not over: whole seconds, or tenths of the first few.
std::string spellWait(std::chrono::milliseconds waited);

using Socket = Descriptor;

/// Listens on `host` (name or address) at a port that the system chooses; `port` gets it.
Result<Socket> listenOn(const std::string &host, uint16_t &port);

/// Connects; refused connections are final, for a rank listens before it says where.
Result<Socket> connectTo(const std::string &host, uint16_t port, Deadline deadline);

/// All bytes, or false: connection broken, or deadline passed.
bool sendAll(const Socket &socket, const void *data, size_t bytes, Deadline deadline);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_SOCKET_H
