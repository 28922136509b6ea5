//===- LocalTransport.h - Messages between the ranks of one machine -----------------===//
//
// Over TCP a byte between two ranks of one machine is copied into the kernel and out again, by threads that
// take the processor from the ranks. Here the receiver reads it straight out of the sender's memory
// (process_vm_readv): one copy, in the thread that waits for it, none before it is asked for. Measured
// figures are in docs/ranks.md.
//
// Reading another process needs its consent, so to speak: same user, no seccomp rule against it, one pid name
// space. That is tried while connecting, and the ranks agree on what they use.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_LOCALTRANSPORT_H
#define DS_LIB_RUNTIME_COMM_LOCALTRANSPORT_H

#include "Control/Socket.h"
#include "Transport.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace ds::rt {

class LocalTransport : public Transport {
public:
  /// Null if the operating system refuses.
  static std::unique_ptr<LocalTransport> create(uint32_t rank, uint32_t world);
  ~LocalTransport() override;

  /// What the other ranks need in order to connect; the same string goes to all of them.
  const std::string &address() const { return own; }
  /// Connects to one rank, whose `address` is given. False, with a `reason`, on failure. In which order does
  /// not matter.
  bool connect(uint32_t peer, const std::string &address);
  bool postSend(uint32_t peer, const void *data, uint64_t bytes) override;
  bool postReceive(uint32_t peer, void *data, uint64_t bytes) override;
  Outcome waitSend(uint32_t peer, Milliseconds timeout) override;
  Outcome waitReceive(uint32_t peer, Milliseconds timeout) override;
  uint32_t awaitAny(std::span<const uint32_t> peers, Milliseconds timeout) override;
  std::string reason() const override;
  void close() override;

private:
  static constexpr uint32_t kSlots = 256; ///< messages of one pair under way; collectives have a handful
  struct Message {
    uint64_t address, bytes; ///< of the data, in the sender
  };
  /// Messages from one rank to another; lies in memory that both have mapped. The counters wrap.
  struct Ring {
    alignas(64) std::atomic<uint32_t> posted; ///< written by the sender; a futex
    alignas(64) std::atomic<uint32_t> taken;  ///< written by the receiver; a futex
    Message messages[kSlots];
  };
  static_assert(std::atomic<uint32_t>::is_always_lock_free, "shared between processes");
  struct Receive {
    void *data;
    uint64_t bytes;
  };
  struct Peer {
    pid_t pid = 0;
    Ring *mapping = nullptr;       ///< the peer's rings, by sender
    Ring *out = nullptr;           ///< of them, this rank's
    Ring *in = nullptr;            ///< of this rank's rings, the peer's
    uint32_t sent = 0;             ///< messages to the peer that have been waited for
    uint32_t expected = 0;         ///< receives that have been posted
    std::vector<Receive> receives; ///< by number modulo kSlots
  };

  LocalTransport(uint32_t rank, uint32_t world);
  bool open();
  bool copy(pid_t pid, uint64_t from, void *to, uint64_t bytes);
  Outcome waitFor(std::atomic<uint32_t> &counter, uint32_t value, Milliseconds timeout);
  bool fail(const std::string &why);

  const uint32_t rank, world;
  Socket memory;         ///< of `rings`: an anonymous file that the peers open by way of /proc
  Ring *rings = nullptr; ///< of messages to this rank, by sender
  const uint64_t probe;  ///< what a peer reads to see whether it can, and whether this is this process
  std::string own;
  std::vector<Peer> peers;
  std::atomic<bool> closed{false};
  mutable std::mutex mutex; ///< guards failure
  std::string failure;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_LOCALTRANSPORT_H
