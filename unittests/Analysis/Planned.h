//===- Planned.h - A memory plan that was judged ----------------------------------===//
#ifndef DS_UNITTESTS_ANALYSIS_PLANNED_H
#define DS_UNITTESTS_ANALYSIS_PLANNED_H

#include "ds/Analysis/Packing/MemoryPlan.h"

#include "gtest/gtest.h"

namespace ds::analysis::testing {

/// Plans `problem`, has the plan judged, and returns it.
inline MemoryPlan planned(const PackProblem &problem, PackOptions options = {}) {
  ds::Result<MemoryPlan> plan = planMemory(problem, options);
  EXPECT_TRUE(plan) << plan.error().message;
  if (!plan)
    return {};
  std::optional<Conflict> conflict = check(*plan, problem);
  EXPECT_FALSE(conflict) << conflict->message;
  return *plan;
}

} // namespace ds::analysis::testing

#endif // DS_UNITTESTS_ANALYSIS_PLANNED_H
