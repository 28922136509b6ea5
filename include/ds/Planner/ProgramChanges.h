//===- ProgramChanges.h - What would make a program's plan fit --------------------===//
//
// Only a plan says what another setting takes, and a plan that does not fit has cost as much as one that
// does: so one change is named, the cheapest, and one is planned to its end. Rules say which may fit and how
// long its step takes; the fastest of these is planned, and given up where what is chosen of it is far
// from fitting, after half the time of a plan; then the next, until one fits. Without rules it is the one
// that changes least: a stage more, half the samples, states elsewhere, more ranks.
//
// Example: Llama 3 8B on 8 ranks with ZeRO 3 lacks 3.1 of 16 GiB. Rules hold for the fastest that may fit 16
// ranks, 2.1 s a step, then the optimizer on the host, 4.6 s. The plan of 16 ranks fits and is named.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PLANNER_PROGRAMCHANGES_H
#define DS_PLANNER_PROGRAMCHANGES_H

#include "ds/Planner/AnalyticReport.h"
#include "ds/Planner/Proposal.h"

namespace ds::planner {

/// Seconds of a step of a proposal; nothing where it is not worth a plan.
using Expect = std::function<std::optional<double>(const Proposal &)>;

/// By rules, calibrated by the plan of `report` for `settings`: nothing of what they hold for a quarter too
/// large. `rules` outlives the answer.
Expect expectByRules(const AnalyticCase &rules, const report::PlanReport &report,
                     const PlanSettings &settings);

/// Where states may live beside the device.
struct Elsewhere {
  bool host = false; ///< memory that is not the device's own
  bool nvme = false;
};

/// The first change with which the plan fits, as `expect` ranks them, else the least: a higher ZeRO stage, a
/// smaller micro-batch, states elsewhere, more ranks, each alone, or where none suffices the highest stage
/// with the smallest micro-batch and with states elsewhere. All steps have the same number of samples. Eight
/// are tried at most, of those that may fit. `plan` may fail where what is chosen of the plan is far from
/// fitting.
std::optional<report::PlanChoice> changeOfProgram(const PlanSettings &settings, const config::Config &config,
                                                  const PlanFunction &plan, const Elsewhere &elsewhere = {},
                                                  const Expect &expect = {});

/// Of a plan that misses its limit by less than the gradients at its peak: what keeps those waiting
/// (clipping, a check of overflows, micro-steps), and what the plan takes without it, to the byte. An
/// example, of a limit of 20 MiB: "the plan lacks 3.1 MiB, less than the 12.0 MiB of gradients at its peak,
/// which wait: with gradient_clipping = 0 ... the plan takes 12.1 MiB (12,687,360 bytes), which fits". As
/// that trains otherwise it is no change of `changeOfProgram`. Nothing where nothing waits, or waiting takes
/// nothing. The plan without all of them is made, and one more for each of several, of which those that
/// change nothing are not named.
std::optional<std::string> noteEarlyUpdates(const PlanSettings &settings, const config::Config &config,
                                            const PlanFunction &plan, const report::PlanReport &report);

/// The longest half, quarter ... of a config.json's samples whose plan fits; none: not found in a few plans.
/// Longer ones than `longest` are not planned: what rules hold for the longest that keeps all of its forward,
/// since plans that have to make much of it again take their time. Of another job, so asked last.
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
