//===- Roster.cpp - The ranks of a job, and which of them this is ---------------------===//
#include "Roster.h"

#include <fmt/format.h>

namespace ds::rt {

void RankPlaces::set(std::vector<std::string> all) {
  const std::lock_guard lock(mutex);
  places = std::move(all);
}

std::string RankPlaces::of(uint32_t rank) const {
  const std::lock_guard lock(mutex);
  return rank < places.size() ? fmt::format(" ({})", places[rank]) : "";
}

std::string Roster::name(const std::vector<uint32_t> &ranks) const {
  return spellRanks(ranks, [&](uint32_t peer) {
    return fmt::format("rank {} on host {}{}", peer, cards[peer].host, places->of(peer));
  });
}

std::vector<uint32_t> Roster::others() const {
  std::vector<uint32_t> ranks;
  for (uint32_t peer = 0; peer < world(); ++peer)
    if (peer != rank)
      ranks.push_back(peer);
  return ranks;
}

} // namespace ds::rt
