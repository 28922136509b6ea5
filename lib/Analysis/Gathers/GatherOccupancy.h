//===- GatherOccupancy.h - What gathers take while each command runs ---------------===//
//
// Bytes and elements of gathered values by command, and what of them is ahead: issued and not yet needed. It
// says whether one more may be. Two values of 10 bytes beside 100 that are live anyway, under a budget of
// 110: while the third of four commands uses the first value, the second may not be ahead, though the fourth
// command needs it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_GATHERS_GATHEROCCUPANCY_H
#define DS_LIB_ANALYSIS_GATHERS_GATHEROCCUPANCY_H

#include "GatherTimes.h"

namespace ds::analysis::detail {

class GatherOccupancy {
public:
  /// Of all of `loads`, without what number `without` takes before it is needed, if there is one of that
  /// number.
  GatherOccupancy(const GatherTimes &times, const Loads &loads, size_t without);
  GatherOccupancy(const GatherTimes &times, const Loads &loads)
      : GatherOccupancy(times, loads, loads.size()) {}

  const std::vector<int64_t> &bytes() const { return liveBytes; }
  const std::vector<int64_t> &elements() const { return liveElements; }

  /// Counts `load` as under way while commands [from, to) run.
  void addAhead(const GatherLoad &load, int64_t from, int64_t to);
  /// Whether `load` may be under way, not yet needed, while `command` runs. One gather may always be ahead,
  /// as long as any may: a bound below the largest value would otherwise forbid it to be hidden at all.
  bool allows(int64_t command, const GatherLoad &load) const;
  /// The first command before which `load` may be issued and be under way until it is needed.
  int64_t earliestIssue(const GatherLoad &load) const;

private:
  const GatherTimes *times; ///< never null; a copy may take another's place
  std::vector<int64_t> liveBytes, liveElements;
  std::vector<int64_t> ahead; ///< elements of gathers that were issued and are not yet needed
  std::vector<int64_t> last;  ///< those of the one among them that is needed last
  std::vector<int64_t> lastNeed;
};

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_GATHERS_GATHEROCCUPANCY_H
