//===- Keep.cpp - Which checkpoints of a directory stay ------------------------------===//

#include "ds/Runtime/Checkpoint/Keep.h"

#include "ds/Runtime/Checkpoint/Store.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

namespace ds::rt {

std::optional<double> KeepRule::lossOf(std::span<const EvalLoss> losses) const {
  const auto found = bestOf ? std::ranges::find(losses, *bestOf, &EvalLoss::name) : losses.begin();
  return found == losses.end() || !std::isfinite(found->loss) ? std::nullopt : std::optional(found->loss);
}

std::set<std::string> keptForGood(const StoreListing &listing, const KeepRule &rule,
                                  const std::function<bool(const StoredCheckpoint &)> &counts) {
  std::set<std::string> kept;
  std::vector<std::tuple<double, uint64_t, std::string>> evaluated; // the best first, once sorted
  for (const StoredCheckpoint &each : listing.checkpoints) {
    if (!each.isWholeHere() || !counts(each))
      continue;
    if (rule.isMilestone(each.step))
      kept.insert(each.name);
    if (const std::optional<double> loss = rule.lossOf(each.evaluations))
      evaluated.emplace_back(*loss, each.step, each.name);
  }
  std::ranges::sort(evaluated);
  for (size_t i = 0; i < std::min<size_t>(rule.best, evaluated.size()); ++i)
    kept.insert(std::get<std::string>(evaluated[i]));
  return kept;
}

} // namespace ds::rt
