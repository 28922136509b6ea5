//===- Roster.cpp - The ranks of a job, and which of them this is ---------------------===//
#include "Roster.h"

#include <fmt/format.h>

namespace ds::rt {

std::string Roster::name(const std::vector<uint32_t> &ranks) const {
  return spellRanks(ranks,
                    [&](uint32_t peer) { return fmt::format("rank {} on host {}", peer, cards[peer].host); });
}

std::vector<uint32_t> Roster::others() const {
  std::vector<uint32_t> ranks;
  for (uint32_t peer = 0; peer < world(); ++peer)
    if (peer != rank)
      ranks.push_back(peer);
  return ranks;
}

} // namespace ds::rt
