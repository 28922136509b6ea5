//===- Transport.h - Messages between this rank and every other -----------------------===//
//
// What collectives are made of: each pair of ranks has one ordered sequence of messages in each direction.
// Implemented by plugins (Gloo); this header is all that both sides of the dlopen border share, so it names
// no type of a library.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_TRANSPORT_H
#define DS_LIB_RUNTIME_COMM_TRANSPORT_H

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ds::rt {

/// One thread uses a transport, but `close` may come from any.
class Transport {
public:
  enum class Outcome { Done, TimedOut, Broken };
  using Milliseconds = std::chrono::milliseconds;

  virtual ~Transport() = default;

  /// Starts to move `bytes` > 0 bytes, which stay untouched until the message has been waited for. False if
  /// the connection is broken.
  virtual bool postSend(uint32_t peer, const void *data, uint64_t bytes) = 0;
  virtual bool postReceive(uint32_t peer, void *data, uint64_t bytes) = 0;

  /// Waits for the oldest message to (from) `peer` that has not been waited for. After TimedOut or Broken
  /// everything that is not done is Broken.
  virtual Outcome waitSend(uint32_t peer, Milliseconds timeout) = 0;
  virtual Outcome waitReceive(uint32_t peer, Milliseconds timeout) = 0;

  /// Of `peers`, one at least, one from which waitReceive would not have to wait, or any where there is none
  /// by `timeout`, and where messages come in whether or not they are waited for.
  virtual uint32_t awaitAny(std::span<const uint32_t> peers, Milliseconds timeout) { return peers.front(); }

  /// Why the transport is Broken, in the words of the library; may be empty.
  virtual std::string reason() const = 0;

  /// Breaks all connections; every wait ends. When it returns, the transport writes to no memory that was
  /// given for a message.
  virtual void close() = 0;
};

/// One on connections that it is given.
class SocketTransport : public Transport {
public:
  /// Takes a TCP connection to `peer`, which it owns from then on. False, with a `reason`, on failure. Every
  /// rank is given one to each of the others, in any order.
  virtual bool connect(uint32_t peer, int socket) = 0;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_TRANSPORT_H
