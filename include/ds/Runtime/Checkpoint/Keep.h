//===- Keep.h - Which checkpoints of a directory stay --------------------------------===//
//
// Three sets stay, and what is in none of them goes when a newer checkpoint is there:
//
//   the newest ones         --keep 2
//   the best ones           --keep-best 1: of the least held-out losses, as manifests have them
//   those of some steps     --keep-every 1000: of steps that are multiples of it
//
// With steps 1000, 1500, 2000, 2500, 3000 of losses 4.0, 3.1, 3.3, 3.2, 3.4 these three keep 3000 and 2500,
// then 1500, then 1000 and 2000 (3000 is there already): all of them.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINT_KEEP_H
#define DS_RUNTIME_CHECKPOINT_KEEP_H

#include "ds/Runtime/Formats/EvalLoss.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>

namespace ds::rt {

struct StoreListing;
struct StoredCheckpoint;

struct KeepRule {
  static constexpr uint32_t kLeast = 2; ///< the newest one may turn out to be damaged

  uint32_t newest = kLeast; ///< fewer than kLeast count as that
  uint32_t best = 0;
  std::optional<std::string> bestOf =
      {};                             ///< name of the evaluation that `best` compares; none: each one's first
  std::optional<uint64_t> every = {}; ///< steps

  /// How many of the newest ones stay.
  uint32_t atLeast() const { return newest < kLeast ? kLeast : newest; }
  /// Whether `step` is one of those that `every` keeps.
  bool isMilestone(uint64_t step) const { return every && step % *every == 0; }
  /// The loss that `best` compares; nothing where it was not evaluated, or is not finite.
  std::optional<double> lossOf(std::span<const EvalLoss> losses) const;
};

/// Names of the checkpoints that `rule` keeps whatever newer ones there are: the best ones and those of its
/// steps. Whole ones count that are no links, and of which `counts` says so. Of equal losses the earlier step
/// is the better.
std::set<std::string> keptForGood(const StoreListing &listing, const KeepRule &rule,
                                  const std::function<bool(const StoredCheckpoint &)> &counts);

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINT_KEEP_H
