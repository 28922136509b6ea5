//===- Card.h - What a rank says about itself before it is connected -------------===//
//
// The rendezvous carries one card per rank: by the directory of the local launcher, or by PMIx. It is all
// that ranks need to open the control connections; everything else goes over those. Each card has a secret of
// its own, which whoever connects must know: a connection from another job, or for another rank that had the
// same port, is turned away.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_CARD_H
#define DS_LIB_RUNTIME_COMM_CONTROL_CARD_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace ds::rt {

struct Card {
  std::string host;    ///< name, for people
  std::string address; ///< where it listens
  uint16_t port = 0;
  std::string secret; ///< 32 hexadecimal digits
};

/// One line; `parseCard` gives nothing for any other text.
std::string spellCard(const Card &card);
std::optional<Card> parseCard(const std::string &text);

/// 128 random bits from the kernel, as hexadecimal digits.
std::string randomHex();

/// The name of this machine.
std::string hostName();

/// The address of network interface `name`, as digits; IPv4 before IPv6.
Result<std::string> interfaceAddress(const std::string &name);

/// "rank 3 on host alpha, rank 4 on host alpha and 17 others": of many the first few, lest a message be
/// longer than anybody reads.
std::string spellRanks(const std::vector<uint32_t> &ranks, const std::function<std::string(uint32_t)> &name);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_CARD_H
