//===- AutoPlan.cpp - The fastest plan of a model on a cluster ----------------------===//
#include "ds/Planner/AutoPlan.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <set>

using namespace ds;
using namespace ds::planner;

static constexpr int kFewest = 3;

int ds::planner::mostAutoPrograms(int64_t layers) {
  constexpr int64_t kMost = 8, kLayers = 320; // of all programs together
  return static_cast<int>(std::clamp(kLayers / std::max<int64_t>(1, layers), int64_t{kFewest}, kMost));
}

namespace {
/// The search for the fastest program.
class ProgramSearch {
public:
  ProgramSearch(const AutoQuestion &question, const ConfigPlanner &planner)
      : question(question), planner(planner) {}

  /// Plans programs, in the order of rules, until none that is left should be faster than the fastest.
  void run() {
    const AnalyticCase &what = question.what;
    for (const cost::Candidate &candidate : plansForPrograms(what.shape, question.space, what.rates)) {
      const bool isSlower = answer.programs >= kFewest && candidate.seconds * share >= seconds;
      if (answer.programs == mostAutoPrograms(what.shape.layers) || isSlower)
        break;
      // One that does not fit leaves out all that rules say need as much.
      const Degrees degrees = {candidate.plan.tp, candidate.plan.sp};
      if (refused.contains(degrees) || candidate.memory.deviceBytes() >= least)
        continue;
      if (take(candidate))
        continue;
      refused.insert(degrees);
      if (degrees == Degrees(1, 1))
        break;
    }
  }

  bool hasFound() const { return answer.program.has_value(); }
  AutoAnswer answer;
  /// Of a program that could not be made, where none could.
  std::optional<Error> refusal() const { return hasMade ? std::nullopt : first; }

private:
  /// Of tensor and of sequence parallelism.
  using Degrees = std::pair<int64_t, int64_t>;

  /// Plans one. False where it cannot be made, and so none of its degrees can; where nothing is cut, none at
  /// all.
  bool take(const cost::Candidate &candidate);

  const AutoQuestion &question;
  const ConfigPlanner &planner;
  std::optional<Error> first; ///< of a program that could not be made
  bool hasMade = false;       ///< one could, whether or not it fits
  std::set<Degrees> refused;
  double seconds = std::numeric_limits<double>::infinity(); ///< of the fastest program
  double share =
      1; ///< of its time by rules that the fastest program takes, at most 1: others may gain as much
  double least = std::numeric_limits<double>::infinity(); ///< bytes of a plan that does not fit
};
} // namespace

bool ProgramSearch::take(const cost::Candidate &candidate) {
  const AnalyticCase &what = question.what;
  Result<report::PlanReport> report = planner(
      configForPlan(what.shape, candidate, what.rates.cluster(), question.asked, cost::ProgramFigures()),
      candidate.plan.microBatch);
  ++answer.programs;
  if (!report) {
    if (!first)
      first = report.error();
    return report.error().code == ExitCode::DoesNotFit;
  }
  hasMade = true;
  if (!report->fits()) {
    least = candidate.memory.deviceBytes();
    return true;
  }
  const double planned = report->predicted.stepSeconds.value_or(candidate.seconds);
  if (planned >= seconds)
    return true;
  seconds = planned;
  share = std::min(1.0, planned / candidate.seconds);
  answer.chosen = candidate;
  answer.program = cost::ProgramFigures{planned, report->ranks.front().deviceArena};
  answer.isPlanningOnly = report->isPlanningOnly;
  return true;
}

/// What rules say where no program is the answer.
static Result<AutoAnswer> answerByRules(const AutoQuestion &question, AutoAnswer answer = {}) {
  Result<cost::Candidate> best = fastestPlan(question.what.shape, question.space, question.what.rates);
  if (!best)
    return best.error();
  answer.chosen = *best;
  return answer;
}

/// The answer where programs can be made and none fits: of the others the fastest by rules, where they may
/// answer.
static Result<AutoAnswer> answerBeyondPrograms(const AutoQuestion &question, AutoAnswer answer) {
  AutoQuestion others = question;
  others.space.programs = false;
  if (Result<AutoAnswer> found = answerByRules(others, answer); found && question.asksRules)
    return found;
  Result<cost::Candidate> any = fastestPlan(question.what.shape, question.space, question.what.rates);
  if (!any)
    return any.error();
  return Error{ExitCode::DoesNotFit,
               "no program fits: of " + std::to_string(answer.programs) +
                   " that rules hold for the fastest none has a peak within " +
                   spellLimit(question.what.rates.cluster()),
               "use more ranks, or devices with more memory"};
}

/// The fastest plan of which no program can be made yet, where rules may name it and it is faster by them
/// than `chosen` is.
static std::optional<cost::Candidate> findFaster(const AutoQuestion &question,
                                                 const cost::Candidate &chosen) {
  cost::SearchSpace others = question.space;
  others.programs = false;
  if (!question.asksRules)
    return std::nullopt;
  Result<cost::Candidate> other = fastestPlan(question.what.shape, others, question.what.rates);
  return other && other->seconds < chosen.seconds ? std::optional(*other) : std::nullopt;
}

Result<AutoAnswer> ds::planner::findAutoPlan(const AutoQuestion &question, const ConfigPlanner &planner) {
  if (!question.asksPrograms)
    return answerByRules(question);
  ProgramSearch search(question, planner);
  search.run();
  if (search.hasFound()) {
    search.answer.faster = findFaster(question, search.answer.chosen);
    return std::move(search.answer);
  }
  const std::optional<Error> refusal = search.refusal();
  if (!refusal)
    return answerBeyondPrograms(question, std::move(search.answer));
  if (!question.asksRules)
    return *refusal;
  search.answer.refusal = refusal->message;
  return answerByRules(question, std::move(search.answer));
}

std::string ds::planner::configOf(const AutoQuestion &question, const AutoAnswer &answer) {
  return configForPlan(question.what.shape, answer.chosen, question.what.rates.cluster(), question.asked,
                       answer.program);
}

/// With three digits.
static std::string spellSeconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", seconds);
  return text;
}

std::string ds::planner::spellAnswer(const AutoQuestion &question, const AutoAnswer &answer) {
  const double seconds = answer.program ? answer.program->seconds : answer.chosen.seconds;
  const int64_t peak = answer.program ? answer.program->peakBytes : whole(answer.chosen.memory.peakBytes());
  std::string text = llvm::formatv("{0}: {1} s a step, peak {2} of {3}, ", spellPlan(answer.chosen.plan),
                                   spellSeconds(seconds), formatBytes(peak),
                                   formatBytes(cost::peakLimit(question.what.rates.cluster())));
  if (answer.program)
    text += answer.programs == 1
                ? "as its program is planned"
                : "the fastest of " + std::to_string(answer.programs) + " programs that were planned";
  else
    text += "by rules";
  if (answer.isPlanningOnly)
    text += ", planning only";
  if (!answer.program && !hasPass(answer.chosen.plan))
    text += ": no program of it was planned";
  if (!answer.refusal.empty())
    text += ": no program was made: " + answer.refusal;
  if (answer.faster)
    text +=
        llvm::formatv("; by rules {0} takes {1} s where this takes {2} s, and no program of it was planned",
                      spellPlan(answer.faster->plan), spellSeconds(answer.faster->seconds),
                      spellSeconds(answer.chosen.seconds));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}
