//===- BestLosses.cpp - The least held-out losses that a run has saved ---------------===//
#include "BestLosses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace ds::rt {

bool BestLosses::admits(std::span<const EvalLoss> losses) const {
  const std::optional<double> loss = rule.lossOf(losses);
  return rule.best > 0 && loss && (least.size() < rule.best || *loss < least.back());
}

void BestLosses::add(std::span<const EvalLoss> losses) {
  if (const std::optional<double> loss = rule.lossOf(losses))
    insert(*loss);
}

void BestLosses::insert(double loss) {
  least.insert(std::ranges::upper_bound(least, loss), loss);
  if (least.size() > rule.best)
    least.pop_back();
}

Result<std::string> BestLosses::pack(const std::string &root, std::optional<uint64_t> last) const {
  std::string text;
  if (rule.best == 0 || !last)
    return text;
  const Result<StoreListing> listing = listCheckpoints(root);
  if (!listing)
    return listing.error();
  for (const StoredCheckpoint &each : listing->checkpoints)
    if (each.isWholeHere() && each.step <= *last)
      if (const std::optional<double> loss = rule.lossOf(each.evaluations))
        text += fmt::format("{} ", *loss); // the shortest text that reads as this number
  return text;
}

void BestLosses::unpack(const std::string &text) {
  std::istringstream words(text);
  for (std::string word; words >> word;)
    insert(std::strtod(word.c_str(), nullptr));
}

} // namespace ds::rt
