//===- ChannelSet.h - The channels of a rank, as they are connected ----------------===//
//
// Ranks meet before they know what they will run, so that the first to fail is heard by all; how many
// channels a run needs its program says. So channels are connected in two rounds: those that ranks meet by,
// and the rest when all know the program. Until then a rank listens, and not a moment longer.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CHANNELSET_H
#define DS_LIB_RUNTIME_COMM_CHANNELSET_H

#include "Collectives.h"
#include "Control/Control.h"
#include "Control/Reception.h"
#include "GlooPlugin.h"

#include "ds/Runtime/Comm/Communicator.h"

#include <map>
#include <memory>
#include <vector>

namespace ds::rt {

class ChannelSet {
public:
  /// Between those who left `cards`, by connections that are made at `reception`. `control` outlives it.
  ChannelSet(const RankIdentity &place, std::chrono::milliseconds timeout, std::vector<Card> cards,
             std::unique_ptr<Reception> reception, Control &control);

  /// Connects channels until there are `count`: memory to memory where all ranks can read each other's, else
  /// by Gloo. Nobody calls any more where these are the `last`. Collective.
  Status connect(uint32_t count, bool last, Deadline deadline);

  /// Whether data goes from memory to memory.
  bool isLocal() const { return local; }
  /// Everybody on a channel.
  Communicator &all(uint32_t index) { return *channels.at(index)->all; }
  Communicator &subset(uint32_t index, const std::vector<uint32_t> &members);

private:
  /// A channel, and who does something together on it.
  struct Members {
    Channel channel;
    std::map<std::vector<uint32_t>, std::unique_ptr<Communicator>> subsets = {};
    Communicator *all = nullptr; ///< one of them
  };

  Result<bool> addLocalChannel(Deadline deadline);
  Status connectByGloo(uint32_t count, Deadline deadline);
  Status addGlooChannel(const GlooApi &gloo, Deadline deadline);
  Status connectToAll(SocketTransport &transport, CallPurpose purpose, Deadline deadline);
  Error notConnected(const std::vector<uint32_t> &peers, const std::string &why);
  Error noticed() const;
  Transport &use(std::unique_ptr<Transport> transport);
  void giveUp(const std::string &reason);

  const RankIdentity place;
  const std::chrono::milliseconds timeout;
  const std::vector<Card> cards; ///< of all ranks
  Control &control;
  std::unique_ptr<Reception> reception; ///< null once all channels are connected
  std::vector<std::unique_ptr<Members>> channels;
  bool local = false; ///< for all channels
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CHANNELSET_H
