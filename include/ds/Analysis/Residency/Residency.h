//===- Residency.h - What is kept, brought back, recomputed or made in pieces -----===//
//
// A value that is read long after it was made can be had in several ways that differ in what memory they hold
// while which commands run, and in the seconds that they cost which resource (compute, a link). All such
// choices of a step are one problem, for they share its memory and its time:
//
//   choose for each value that is read one of its homes, or to make it again from operands that are had too,
//   so that at no moment more bytes of a space are held than its budget, and the busiest resource is done
//   soonest. A step takes at least that long, whatever overlaps.
//
// What a home is the solver does not ask: an activation is kept; a gathered parameter is kept or gathered
// again; logits are made whole or in pieces of so many rows; a workspace is large or small. A copy on the
// host will be one more home, with bytes of another space and seconds of another resource, and making a whole
// layer again is `again` with more seconds and scratch.
//
// Example, one space, three moments (forward, the turn, backward), budget 10, of which 4 are taken:
//
//   h   home: keep, 4 bytes                 read by backward
//   g   home: keep, 4 bytes                 read by backward;  again: 1 s of compute, from h
//   w   homes: keep, 3 bytes | gather again, 2 s of the link
//
// All kept take 11 bytes at the turn of 6 that are free. Compute works 10 s whatever is chosen and the
// link 9. To drop g saves 4 bytes for 1 s: 11 s, and still holds 7. To drop w saves 3 bytes and ends with the
// link at 11 s as well. Both fit, and cost 1 s together where one after the other would have said 1 and 2.
//
// The solver puts prices on bytes at moments and on resources. At given prices values that share no operands
// are apart, and those that do are a closure of least weight (MinClosure.h), so that the cheapest choice is
// found exactly. Prices rise where a budget is exceeded, and resources are weighed so that none is busier
// than it need be. Every price gives a bound: no choice within the budgets is faster (Lagrange; Geoffrion
// 1974). What the search has seen of each part are the pieces from which slack is filled, most seconds per
// byte first; where the bound is not near then, some values at a time are decided anew, exactly. The price:
// the best choice may still lie between, and `bound` says by how much at most.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_ANALYSIS_RESIDENCY_RESIDENCY_H
#define DS_ANALYSIS_RESIDENCY_RESIDENCY_H

#include "ds/Analysis/Memory/StepMemory.h"
#include "ds/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::analysis {

using ResidencyHold = MemoryHold;

/// Time that a resource works.
struct ResidencyCharge {
  uint32_t resource = 0;
  double seconds = 0; ///< of a whole step; not negative
};

/// One way to have a value.
struct ResidencyWay {
  std::vector<ResidencyHold> holds;
  std::vector<ResidencyCharge> charges;
};

struct ResidencyValue {
  bool isRead = false;                   ///< it must be had; else only where another is recomputed from it
  std::vector<ResidencyWay> homes;       ///< ways that need no other value; of equals the first is taken
  std::optional<ResidencyWay> recompute; ///< by arithmetic on `operands`
  std::vector<uint32_t> operands;        ///< values that have to be had for that
};

struct ResidencySpace {
  int64_t budget = 0;
  std::vector<int64_t> liveBytes; ///< at each moment, without what is chosen
};

struct ResidencyProblem {
  std::vector<ResidencySpace> spaces;
  std::vector<double> resources; ///< seconds that each works whatever is chosen
  std::vector<ResidencyValue> values;
};

/// How a value is had: a number of a home, or one of these.
inline constexpr int32_t kNotHad = -1, kRecomputed = -2;

struct ResidencyPlan {
  std::vector<int32_t> ways;      ///< of each value
  bool fits = false;              ///< within every budget; if not, `ways` hold as little as was found
  double seconds = 0;             ///< of the busiest resource
  double bound = 0;               ///< what fits takes no less; meaningless where `fits` is false
  std::vector<double> work;       ///< seconds of each resource
  std::vector<int64_t> peakBytes; ///< of each space

  /// By how much of `bound` the plan may be slower than the best.
  double distance() const { return bound > 0 ? (seconds - bound) / bound : 0; }
};

/// The best plan found, or why the problem is malformed. Equal input, equal output. Where the fastest choice
/// fits it is taken, and nothing is given up for memory.
Result<ResidencyPlan> solveResidency(const ResidencyProblem &problem);

/// The same decided in two turns, as separate passes do: first without the values that `isLater` marks, which
/// are had in the last of their homes; then those, in the memory that is left. For comparison: it is never
/// the better choice but by the solver's own distance.
Result<ResidencyPlan> solveInTurn(const ResidencyProblem &problem, const std::vector<bool> &isLater);

/// What is wrong with `plan`, in one sentence, or nothing. Shares no code with the solver.
std::optional<std::string> check(const ResidencyPlan &plan, const ResidencyProblem &problem);

} // namespace ds::analysis

#endif // DS_ANALYSIS_RESIDENCY_RESIDENCY_H
