//===- RankPairs.h - Which ranks of two plans are compared ----------------------===//
//
// A rank's number says nothing of its work: rank 4 of eight may be the fifth shard of the data or the second
// stage of a pipeline. Ranks are compared that do the same work, and a row that stands for many ranks is
// compared once:
//
//   one rank          beside ranks 0 to 3 alike:        rank 0 -> ranks 0 to 3
//   ranks 0 to 3      beside two stages of two ranks:   each stage beside all, for each had its layers there
//   stages 0 and 1    beside stages 0, 1 and 2:         by stage; stage 2 has no partner
//   rows of dp 2 x tp 2 beside rows of dp 4:            dp 0 and 1 by coordinate; dp 2 and 3 have no partner
//
//===---------------------------------------------------------------------------===//
#ifndef DS_REPORT_RANKPAIRS_H
#define DS_REPORT_RANKPAIRS_H

#include "ds/Report/PlanReport.h"

namespace ds::report {

/// Numbers from `first` to `last`, both included.
struct Span {
  uint32_t first = 0, last = 0;

  bool operator==(const Span &) const = default;
};

/// Ranks of two plans that do the same work; or ranks of one plan whose work no rank of the other does.
struct RankPair {
  const RankPlan *before = nullptr, *after = nullptr; ///< the rows of the two reports; null: no partner
  std::vector<Span> beforeRanks, afterRanks;          ///< of these rows; ascending, apart from each other
};

/// Every rank of both plans, in pairs: stage by stage, in the order of the ranks of `after`, behind them what
/// only `before` has. Neither report may go before the pairs do.
std::vector<RankPair> pairRanks(const PlanReport &before, const PlanReport &after);

/// Sorts `spans`, and joins those that touch or overlap.
void joinSpans(std::vector<Span> &spans);

/// "rank 0", "ranks 0 to 3", "stages 1, 4 to 7"; of more than eight spans the last ones are counted. Requires
/// joined spans, at least one.
std::string spellSpans(const std::string &noun, const std::vector<Span> &spans);

} // namespace ds::report

#endif // DS_REPORT_RANKPAIRS_H
