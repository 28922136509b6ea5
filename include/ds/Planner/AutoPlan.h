//===- AutoPlan.h - The fastest plan of a model on a cluster ------------------------===//
//
// Rules know ten thousand plans in a moment, and are off by some percent; a program is what runs, and takes
// seconds to plan. So rules say in which order programs are worth making, a few are made, and the fastest is
// the answer: a configuration that compiles. A faster plan of which no program can be made yet is named
// beside it, held to the answer by rules alone.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PLANNER_AUTOPLAN_H
#define DS_PLANNER_AUTOPLAN_H

#include "ds/Planner/AnalyticReport.h"

#include <functional>
#include <optional>

namespace ds::planner {

/// What is searched, and who may answer.
struct AutoQuestion {
  const AnalyticCase &what;
  cost::SearchSpace space;
  const std::vector<config::Setting> &asked; ///< of the configuration, for what no plan changes
  bool asksPrograms = true;                  ///< not with --basis rules
  bool asksRules = true;                     ///< not with --basis program
};

/// The report of the program that the text of a ds_config.json asks for, its micro-batch being `microBatch`.
using ConfigPlanner = std::function<Result<report::PlanReport>(const std::string &text, int64_t microBatch)>;

struct AutoAnswer {
  cost::Candidate chosen;                      ///< `seconds` are those of rules
  std::optional<cost::ProgramFigures> program; ///< none: rules alone say so
  bool isPlanningOnly = false;                 ///< its devices run nothing that is generated
  std::optional<cost::Candidate> faster;       ///< by rules, and no program can be made of it yet
  int programs = 0;                            ///< that were planned
  std::string refusal;                         ///< why no program was made, where rules answer
};

/// Programs that are planned for an answer about a model of `layers` layers: at most eight, and of very deep
/// models, whose plans take seconds each, three.
int mostAutoPrograms(int64_t layers);

/// The fastest program that fits: those that rules hold for the fastest are planned, three at least, for
/// rules are off by some percent, and then until none that is left should be faster. Where none fits or can
/// be made, and rules may answer, their fastest plan. Fails where nothing fits (DoesNotFit), or where nothing
/// divides ranks and batch (Invalid).
Result<AutoAnswer> findAutoPlan(const AutoQuestion &question, const ConfigPlanner &planner);

/// The ds_config.json of an answer.
std::string configOf(const AutoQuestion &question, const AutoAnswer &answer);

/// An answer in one line, without its end: the plan, its time and peak, what says so, and what would be
/// faster.
std::string spellAnswer(const AutoQuestion &question, const AutoAnswer &answer);

} // namespace ds::planner

#endif // DS_PLANNER_AUTOPLAN_H
