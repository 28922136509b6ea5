//===- Roster.h - The ranks of a job, and which of them this is -----------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_ROSTER_H
#define DS_LIB_RUNTIME_COMM_CONTROL_ROSTER_H

#include "Card.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ds::rt {

/// Where ranks stand in what they run, for messages. From any thread.
class RankPlaces {
public:
  /// "pp 1, dp 0" for each rank.
  void set(std::vector<std::string> all);
  /// " (pp 1, dp 0)"; empty while that is not known.
  std::string of(uint32_t rank) const;

private:
  mutable std::mutex mutex; ///< guards places
  std::vector<std::string> places;
};

struct Roster {
  std::vector<Card> cards; ///< by rank
  uint32_t rank = 0;       ///< this one
  std::shared_ptr<RankPlaces> places = std::make_shared<RankPlaces>();

  uint32_t world() const { return static_cast<uint32_t>(cards.size()); }
  /// "rank 2 on host alpha", with its place where that is known; several as spellRanks has them.
  std::string name(const std::vector<uint32_t> &ranks) const;
  /// All but this one.
  std::vector<uint32_t> others() const;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_ROSTER_H
