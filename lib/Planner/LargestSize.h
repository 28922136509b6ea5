//===- LargestSize.h - The largest size that fits, by few plans --------------------===//
#ifndef DS_LIB_PLANNER_LARGESTSIZE_H
#define DS_LIB_PLANNER_LARGESTSIZE_H

#include "ds/Report/PlanReport.h"
#include "ds/Support/Error.h"

#include <functional>
#include <optional>

namespace ds::planner {

/// Looks for the largest size that fits. Peaks grow about linearly with it, so that the next size to try
/// follows from two peaks. Not from one that fills the limit: there plans were pressed until they fit, and
/// say nothing of the next size; what does not fit is pressed as far as it goes, and two of these say where
/// the bound lies.
class LargestSize {
public:
  using Plan = std::function<Status(int64_t size, report::PlanChoice &choice)>;

  /// `plan` says what a size takes of `limit` bytes.
  LargestSize(Plan plan, int64_t limit) : plan(std::move(plan)), limit(limit) {}

  /// In whole units, 0 where one unit does not fit. Fails where already one cannot be planned.
  Result<int64_t> find(int64_t start);
  /// The same from `present`, whose plan costs nothing, and a guess, with at most `most` other plans: the
  /// largest that was found to fit.
  Result<int64_t> findNear(int64_t present, int64_t guess, unsigned most);
  /// Why the model takes no more than was found; empty: memory is the reason.
  const std::string &refusal() const { return refused; }
  /// The least size that is known not to fit, where others between it and the answer were not planned.
  std::optional<int64_t> gap() const;

private:
  struct Point {
    int64_t size = 0;
    double peak = 0;
  };
  /// Whether `size` fits, and moves the bound on its side there.
  bool probe(int64_t size);
  bool isOpen() const { return !high || high->size - low.size > 1; }
  /// Whether the largest that fits was pressed under the limit, as far as its peak tells.
  bool isPressed() const;
  int64_t between(unsigned round) const;
  int64_t beyond() const;
  Result<int64_t> answer() const;

  Plan plan;
  int64_t limit;
  Point low, before;          ///< fit, `before` the smaller; size 0: none known
  std::optional<Point> high;  ///< does not
  std::optional<Point> above; ///< nor does this, larger than `high`
  std::optional<Error> error;
  std::string refused;
};

} // namespace ds::planner

#endif // DS_LIB_PLANNER_LARGESTSIZE_H
