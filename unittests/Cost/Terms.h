//===- Terms.h - Parts of an estimated step -----------------------------------------===//
#ifndef DS_UNITTESTS_COST_TERMS_H
#define DS_UNITTESTS_COST_TERMS_H

#include "ds/Cost/Estimate.h"

namespace ds::cost {

/// Seconds of the step's terms of that name.
inline double termOf(const StepEstimate &step, std::string_view name) {
  double seconds = 0;
  for (const Term &term : step.terms)
    if (term.name == name)
      seconds += term.seconds;
  return seconds;
}

} // namespace ds::cost

#endif // DS_UNITTESTS_COST_TERMS_H
