//===- GatherIssues.h - Two ways to issue all gathers ------------------------------===//
//
// Where a whole list of loads is issued, by one rule: as late as hiding allows, or as early as the bounds do.
// Of commands of 3, 3, 3 and 1 s, the third needs a load of 3 s and the fourth one of 1 s: issued late they
// are behind the first and the second command, as hidden as early, where both are in front of the first.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_GATHERS_GATHERISSUES_H
#define DS_LIB_ANALYSIS_GATHERS_GATHERISSUES_H

#include "GatherTimes.h"

namespace ds::analysis::detail {

/// Stream order: by issue, then by need.
void sortByIssue(const GatherTimes &times, Loads &loads);

/// Last need first: each as late as it may be and still be there in time, with the later ones in its way. A
/// gather joins the group behind it where that one then starts earlier by no more than an issue takes.
void issueLate(const GatherTimes &times, Loads &loads);

/// First need first: each as early as it may be.
void issueEarly(const GatherTimes &times, Loads &loads);

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_GATHERS_GATHERISSUES_H
