//===- Roster.h - The ranks of a job, and which of them this is -----------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_ROSTER_H
#define DS_LIB_RUNTIME_COMM_CONTROL_ROSTER_H

#include "Card.h"

#include <vector>

namespace ds::rt {

struct Roster {
  std::vector<Card> cards; ///< by rank
  uint32_t rank = 0;       ///< this one

  uint32_t world() const { return static_cast<uint32_t>(cards.size()); }
  /// "rank 2 on host alpha"; several as spellRanks has them.
  std::string name(const std::vector<uint32_t> &ranks) const;
  /// All but this one.
  std::vector<uint32_t> others() const;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_ROSTER_H
