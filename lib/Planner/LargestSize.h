//===- LargestSize.h - The largest size that fits, by few plans --------------------===//
#ifndef DS_LIB_PLANNER_LARGESTSIZE_H
#define DS_LIB_PLANNER_LARGESTSIZE_H

#include "ds/Report/PlanReport.h"
#include "ds/Support/Error.h"

#include <functional>
#include <optional>
#include <vector>

namespace ds::planner {

/// Looks for the largest size that fits. Peaks grow about linearly with it, so that the next size to try
/// follows from two peaks. Not from one that fills the limit: there plans were pressed until they fit, and
/// say nothing of the next size; what does not fit is pressed as far as it goes, and two of these say where
/// the bound lies. Plans that all hold as little as can be are on one line from the first, and take less
/// time; they fit at most where others do.
class LargestSize {
public:
  using Plan = std::function<Status(int64_t size, report::PlanChoice &choice)>;

  /// `plan` says what a size takes of `limit` bytes.
  LargestSize(Plan plan, int64_t limit) : plan(std::move(plan)), limit(limit) {}

  /// In whole units, 0 where one unit does not fit. Fails where already one cannot be planned.
  Result<int64_t> find(int64_t start);
  /// What is known before a search by plans that hold as little as can be.
  struct Start {
    int64_t present = 1; ///< a size whose plan, which may hold more, was made
    bool fits = false;   ///< that plan
    int64_t guess = 1;
    int64_t fixedBytes = 0; ///< that all sizes take
  };
  /// The largest that was found to fit with at most `most` plans, first of those that `least` makes, which
  /// hold as little as can be.
  Result<int64_t> findByLeast(const Start &start, const Plan &least, unsigned most);
  /// Why the model takes no more than was found; empty: memory is the reason.
  const std::string &refusal() const { return refused; }
  /// The least size that was planned and does not fit, where others between it and the answer were not: some
  /// may. With least held, or as plans are made; beyond all sizes where none was.
  std::optional<int64_t> gap() const;

private:
  struct Point {
    int64_t size = 0;
    double peak = 0;
  };
  /// Whether `size` fits, and moves the bound on its side there.
  bool probe(int64_t size);
  /// The same of a plan that holds as little as can be: it fits, or says nothing.
  void probeLeast(int64_t size, const Plan &least);
  bool isOpen() const { return !high || high->size - low.size > 1; }
  /// Whether the largest that fits was pressed under the limit, as far as its peak tells.
  bool isPressed() const;
  int64_t between(unsigned round) const;
  int64_t onLine(int64_t fixedBytes) const;
  Result<int64_t> answer() const;

  Plan plan;
  int64_t limit;
  unsigned plans = 0;         ///< that were made
  std::vector<Point> made;    ///< of those, the ones that hold least
  Point low;                  ///< fits; size 0: none known
  std::optional<Point> high;  ///< does not
  std::optional<Point> above; ///< nor does this, larger than `high`
  std::optional<Error> error;
  std::string refused;
};

} // namespace ds::planner

#endif // DS_LIB_PLANNER_LARGESTSIZE_H
