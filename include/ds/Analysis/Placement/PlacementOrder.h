//===- PlacementOrder.h - An order of ops in which few values are held -------------===//
#ifndef DS_ANALYSIS_PLACEMENT_PLACEMENTORDER_H
#define DS_ANALYSIS_PLACEMENT_PLACEMENTORDER_H

#include "ds/Analysis/Placement/Placement.h"

namespace ds::analysis {

/// The numbers of `problem`'s ops in an order that placeValues gets through with few states: it keeps a state
/// for each way in which values that are still read can be held, so that fewer values at a time are fewer
/// states. Ops stay in their order but for two kinds:
///
///   what ends at least as many values as it makes runs as soon as it can, as the sum of a gradient and what
///   was accumulated before, which a step has at its end;
///   what reads nothing but values that are given, or little that is made of them, runs when it is needed, as
///   the conversion of a parameter.
///
///   g0 = f(..), g1 = f(g0), g2 = f(g1), r0 = sum(g0, a0), r1 = sum(g1, a1), r2 = sum(g2, a2) holds three g
///   behind the third op; as g0, g1, r0, g2, r1, r2 it holds two.
std::vector<uint32_t> orderOps(const PlacementProblem &problem);

} // namespace ds::analysis

#endif // DS_ANALYSIS_PLACEMENT_PLACEMENTORDER_H
