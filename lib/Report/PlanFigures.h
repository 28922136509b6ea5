//===- PlanFigures.h - Plans as lists of named figures ---------------------------===//
//
// What a comparison reads: every figure of a plan has a name by which it is found in the other one.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_REPORT_PLANFIGURES_H
#define DS_REPORT_PLANFIGURES_H

#include "ds/Report/PlanReport.h"

namespace ds::report {

/// One figure of a plan.
struct Figure {
  enum class Kind : uint8_t { Bytes, Number, Text };
  unsigned group = 0; ///< figures of a lower group are shown first, whatever they changed by
  std::string name;
  Kind kind = Kind::Bytes;
  double value = 0;
  int64_t bytes = 0;
  std::string text;
};

/// The same figure in two plans; null where a plan has none.
struct FigureChange {
  const Figure *before = nullptr, *after = nullptr;

  const Figure &any() const { return after ? *after : *before; }
};

/// What a plan was made from: model, target, ranks, limit, and `withInputs` its inputs by name. Texts
/// throughout.
std::vector<Figure> causesOf(const PlanReport &report, bool withInputs);

/// What came of it as a whole: whether it fits, its operations, the form of its losses.
std::vector<Figure> outcomesOf(const PlanReport &report);

/// What a rank keeps: the peak, its parts by category, by line of memory and by layer, then the rest.
std::vector<Figure> memoryOf(const RankPlan &rank);

/// The step and its terms; what ranks send, by kind.
std::vector<Figure> stepOf(const Prediction &predicted);
std::vector<Figure> trafficOf(const Prediction &predicted);

/// The figures that differ, by group and then by the size of the change; texts behind numbers. Counts the
/// equal ones in `same`. Figures of one name are paired in order.
std::vector<FigureChange> findChanges(const std::vector<Figure> &before, const std::vector<Figure> &after,
                                      size_t &same);

} // namespace ds::report

#endif // DS_REPORT_PLANFIGURES_H
