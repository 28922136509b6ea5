//===- Collectives.h - Collectives on a transport of messages -------------------------===//
//
// Every collective is made of rounds: a rank posts what it sends and receives, then waits for it, and names
// the ranks that let it wait too long. Data goes directly from the rank that has it to those that want it: no
// rank waits for one that waits for another, so the one that is late is the one that is named.
//
// A reduction runs block by block: the blocks of all ranks come into staging memory and are combined in rank
// order while the next ones travel.
//
// The ranks of a communicator are numbered here by their positions in it; the transport and the news of
// failures know them by their numbers among all.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_COLLECTIVES_H
#define DS_LIB_RUNTIME_COMM_COLLECTIVES_H

#include "Channel.h"

#include "ds/Kernels/Kernels.h"

namespace ds::rt {

/// What a rank has posted to the members of a communicator, and waits for. A wait that is too long, or a
/// connection that breaks, fails with the ranks that are to blame.
class Rounds {
public:
  Rounds(Channel &channel, std::vector<uint32_t> members);

  const std::vector<uint32_t> members; ///< by position: the number among all ranks
  const uint32_t self, ranks;          ///< this rank's position; how many there are
  uint32_t peerAt(uint32_t step) const { return (self + step) % ranks; }

  Status postSend(uint32_t peer, const void *data, uint64_t bytes);
  Status postReceive(uint32_t peer, void *data, uint64_t bytes);
  /// Waits for the oldest message to `peer` or from it.
  Status wait(uint32_t peer, bool isSend, Deadline deadline);
  Status waitReceives();
  Status waitSends();
  Status settle();
  /// As Communicator::exchange.
  Status exchange(std::span<const Message> messages);

private:
  Status waitAll(const std::vector<uint32_t> &posted, bool isSend);
  Status post(const Message &message);
  Status awaitReceives(std::span<const Message> messages);
  Status await(const Message &message, Deadline deadline);
  const Message &oldest(std::span<const Message> messages, uint32_t member) const;
  Status failed(uint32_t peer, Transport::Outcome outcome);
  bool tellsOf(uint32_t peer) const;
  std::vector<uint32_t> missingWith(uint32_t peer);

  Channel &channel;
  std::vector<uint32_t> sending, receiving; ///< messages posted and not waited for, by peer
  std::vector<uint32_t> awaited;            ///< of an exchange: who still sends, by number among all
};

/// The collectives of Communicator, each made of rounds.
class TransportCommunicator : public Communicator {
public:
  /// For `members`, two at least, in ascending order and the channel's rank among them. `channel` outlives
  /// this.
  TransportCommunicator(Channel &channel, std::vector<uint32_t> members);
  ~TransportCommunicator() override;

  uint32_t position() const override { return self; }
  uint32_t size() const override { return ranks; }
  Status allGather(const void *in, void *out, uint64_t bytesPerRank, const char *what) override;
  Status reduceScatter(const void *in, void *out, void *staging, uint64_t elements, DType dtype,
                       Reduction reduction, const char *what) override;
  Status allReduce(const void *in, void *out, void *staging, uint64_t elements, DType dtype,
                   Reduction reduction, const char *what) override;
  Status broadcast(void *data, uint64_t bytes, uint32_t root, const char *what) override;
  Status allToAll(const void *in, void *out, uint64_t bytesPerRank, const char *what) override;
  Status exchange(std::span<const Message> messages) override;
  Status barrier(const char *what) override;
  std::vector<CommStat> stats() const override { return channel.stats(); }

private:
  /// A vector of elements that is cut into one part per rank: part p begins at p * stride; the last parts may
  /// be shorter, or empty.
  struct Parts {
    const std::byte *in;
    std::byte *out; ///< of this rank's part
    uint64_t stride, total;
    DType dtype;
    Reduction reduction;

    uint64_t size(uint32_t part) const {
      const uint64_t begin = stride * part;
      return begin >= total ? 0 : std::min(stride, total - begin);
    }
  };
  /// How staging memory is used: `depth` blocks of `elements` from each of the other ranks.
  struct Blocks {
    uint64_t elements;
    uint32_t depth;
  };

  /// Runs one collective: refuses after a failure, counts, measures.
  template <class Body>
  Status measured(CollectiveKind kind, const char *what, uint64_t bytes, Body &&body);

  Status gather(std::byte *out, const Parts &parts);
  Status reduceInBlocks(const Parts &parts, std::byte *staging);
  Status postBlock(const Parts &parts, std::byte *staging, Blocks blocks, uint64_t index);
  Status combineBlock(const Parts &parts, std::byte *staging, Blocks blocks, uint64_t index);
  Status reduceSmall(const std::byte *in, std::byte *out, uint64_t elements, DType dtype,
                     Reduction reduction);
  Status combine(std::byte *out, uint64_t elements, DType dtype, Reduction reduction);
  Blocks chooseBlocks(const Parts &parts) const;

  Channel &channel;
  Rounds rounds;
  const uint32_t self, ranks;
  const Isa isa;
  std::vector<const void *> sources; ///< of one combination, by rank
  std::vector<std::byte> scratch;    ///< for small all-reduces and barriers
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_COLLECTIVES_H
