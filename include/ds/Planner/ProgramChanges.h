//===- ProgramChanges.h - What would make a program's plan fit --------------------===//
//
// Only a plan says what another setting takes: each change is planned anew, with the same passes. That costs
// as much as the first plan did, so that few are tried: those that take most memory away first.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PLANNER_PROGRAMCHANGES_H
#define DS_PLANNER_PROGRAMCHANGES_H

#include "ds/Planner/AnalyticReport.h"
#include "ds/Planner/Proposal.h"

namespace ds::planner {

/// Whether a proposal is worth a plan.
using MayFit = std::function<bool(const Proposal &)>;

/// By rules, calibrated by the plan of `report` for `settings`: false of what they hold for a quarter too
/// large. `rules` outlives the answer.
MayFit mayFitByRules(const AnalyticCase &rules, const report::PlanReport &report,
                     const PlanSettings &settings);

/// Where states may live beside the device.
struct Elsewhere {
  bool host = false; ///< memory that is not the device's own
  bool nvme = false;
};

/// At most three changes with which the plan fits, the fastest step first: a smaller micro-batch, a higher
/// ZeRO stage, states elsewhere, more ranks, each alone, or where none suffices the highest stage with the
/// smallest micro-batch and with states elsewhere. All steps have the same number of samples. Eight are
/// planned at most, of those that may fit.
std::vector<report::PlanChoice> changesOfProgram(const PlanSettings &settings, const config::Config &config,
                                                 const PlanFunction &plan, const Elsewhere &elsewhere = {},
                                                 const MayFit &mayFit = {});

/// Of a plan that misses its limit by less than the gradients at its peak: what keeps those waiting
/// (clipping, a check of overflows, micro-steps), and what the plan takes without it, to the byte. An
/// example, of a limit of 20 MiB: "the plan lacks 3.1 MiB, less than the 12.0 MiB of gradients at its peak,
/// which wait: with gradient_clipping = 0 ... the plan takes 12.1 MiB (12,687,360 bytes), which fits". As
/// that trains otherwise it is no change of `changesOfProgram`. Nothing where nothing waits, or waiting takes
/// nothing. The plan without all of them is made, and one more for each of several, of which those that
/// change nothing are not named.
std::optional<std::string> noteEarlyUpdates(const PlanSettings &settings, const config::Config &config,
                                            const PlanFunction &plan, const report::PlanReport &report);

/// The longest half, quarter ... of a config.json's samples whose plan fits; none: not found in a few plans.
/// Longer ones than `longest` are not planned: what rules hold for the longest that keeps all of its forward,
/// since plans that have to make much of it again take their time.
std::optional<report::PlanChoice> shorterSamples(PlanSettings settings, const config::Config &config,
                                                 const PlanFunction &plan, std::optional<int64_t> longest);

/// At most two more of which no program can be made yet, as rules, calibrated by the plan of `report`, say.
std::vector<report::PlanChoice> changesWithoutPass(const AnalyticCase &rules,
                                                   const report::PlanReport &report);

/// At most three single changes whose plans have a smaller peak than `peak` bytes on the device, the smallest
/// first; the samples of a step stay as many.
std::vector<report::PlanChoice> smallerPlansOfProgram(const PlanSettings &settings,
                                                      const config::Config &config, const PlanFunction &plan,
                                                      int64_t peak, const Elsewhere &elsewhere = {});

} // namespace ds::planner

#endif // DS_PLANNER_PROGRAMCHANGES_H
