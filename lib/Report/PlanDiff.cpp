//===- PlanDiff.cpp - What two plans do not share -------------------------------===//
//
// Causes before consequences: what the plans were made from, then whether they fit, what ranks of the same
// work keep, what a step takes, and what ranks send. What is equal is counted and left out.
//
//===---------------------------------------------------------------------------===//

#include "PlanFigures.h"
#include "ds/Report/RankPairs.h"

#include <algorithm>
#include <cstdio>

namespace ds::report {

static std::string show(const Figure *figure) {
  if (!figure)
    return "-";
  if (figure->kind == Figure::Kind::Text)
    return figure->text.empty() ? "(none)" : figure->text;
  if (figure->kind == Figure::Kind::Bytes)
    return formatBytes(figure->bytes);
  char text[48];
  std::snprintf(text, sizeof text, "%.6g", figure->value);
  return text;
}

/// "-172.4 MiB  -180,763,648 bytes  -21.2 %".
static std::string showSize(const Figure *before, const Figure *after) {
  Figure::Kind kind = (before ? before : after)->kind;
  double old = before ? before->value : 0, now = after ? after->value : 0;
  char text[128], exact[64] = "";
  if (kind == Figure::Kind::Bytes) {
    int64_t change = (after ? after->bytes : 0) - (before ? before->bytes : 0);
    std::snprintf(exact, sizeof exact, "%s%s bytes", change > 0 ? "+" : "", formatExact(change).c_str());
  } else {
    std::snprintf(exact, sizeof exact, "%+.6g", now - old);
  }
  if (old > 0)
    std::snprintf(text, sizeof text, "%24s %+9.2f %%", exact, (now - old) / old * 100);
  else
    std::snprintf(text, sizeof text, "%24s %11s", exact, "new");
  return text;
}

static std::string showLine(const FigureChange &change) {
  const Figure &any = change.any();
  if (any.kind == Figure::Kind::Text)
    return "  " + any.name + ": " + show(change.before) + " -> " + show(change.after) + "\n";
  char text[256];
  std::snprintf(text, sizeof text, "  %-34.120s %12s %12s ", any.name.c_str(), show(change.before).c_str(),
                show(change.after).c_str());
  return text + showSize(change.before, change.after) + "\n";
}

namespace {

/// The differences of some neighbouring pairs of ranks that have the same ones.
struct RankSection {
  RankPair pair; ///< of all their ranks; the rows are those of the first pair
  std::vector<Span> beforeStages, afterStages;
  std::string lines;
};

/// Puts a comparison together, section by section.
class Comparison {
public:
  Comparison(const PlanReport &before, const PlanReport &after, const std::string &beforeName,
             const std::string &afterName)
      : before(before), after(after), beforeName(beforeName), afterName(afterName) {}

  std::string print();

private:
  std::string compare(const std::vector<Figure> &old, const std::vector<Figure> &now);
  void addSection(const std::string &heading, const std::string &lines) {
    if (!lines.empty())
      text += "\n" + heading + "\n" + lines;
  }
  void addRanks();
  RankSection describe(const RankPair &pair);
  void addRanks(const RankSection &section);

  const PlanReport &before, &after;
  const std::string &beforeName, &afterName;
  std::string text;
  size_t same = 0;
};

} // namespace

std::string Comparison::compare(const std::vector<Figure> &old, const std::vector<Figure> &now) {
  std::string lines;
  for (const FigureChange &change : findChanges(old, now, same))
    lines += showLine(change);
  return lines;
}

/// Of ranks without a partner the peak is enough to know them by.
RankSection Comparison::describe(const RankPair &pair) {
  RankSection section{pair, {}, {}, ""};
  if (pair.before)
    section.beforeStages.push_back({pair.before->stage, pair.before->stage});
  if (pair.after)
    section.afterStages.push_back({pair.after->stage, pair.after->stage});
  if (pair.before && pair.after) {
    section.lines = compare(memoryOf(*pair.before), memoryOf(*pair.after));
    return section;
  }
  std::vector<Figure> peak = memoryOf(pair.before ? *pair.before : *pair.after);
  std::erase_if(peak, [](const Figure &figure) {
    return figure.group > 1 || figure.kind == Figure::Kind::Text || (figure.group == 1 && figure.bytes == 0);
  });
  section.lines = pair.before ? compare(peak, {}) : compare({}, peak);
  return section;
}

/// Whether the ranks of a report are in more than one pipeline stage.
static bool hasStages(const PlanReport &report) {
  return std::any_of(report.ranks.begin(), report.ranks.end(),
                     [&](const RankPlan &rank) { return rank.stage != report.ranks.front().stage; });
}

/// "ranks 0 to 3 (stage 0)"; empty of no ranks.
static std::string nameRanks(const PlanReport &report, const std::vector<Span> &ranks,
                             const std::vector<Span> &stages) {
  if (ranks.empty())
    return "";
  return spellSpans("rank", ranks) + (hasStages(report) ? " (" + spellSpans("stage", stages) + ")" : "");
}

/// "rank 0 -> ranks 0 to 3"; once what both plans call the same, and then only what differs is worth a
/// section.
void Comparison::addRanks(const RankSection &section) {
  std::string old = nameRanks(before, section.pair.beforeRanks, section.beforeStages);
  std::string now = nameRanks(after, section.pair.afterRanks, section.afterStages);
  if (old == now)
    addSection(now, section.lines);
  else if (old.empty() || now.empty())
    addSection(old + now + ": only in " + (now.empty() ? beforeName : afterName), section.lines);
  else
    addSection(old + " -> " + now, section.lines.empty() ? "  the same\n" : section.lines);
}

static void append(std::vector<Span> &spans, const std::vector<Span> &more) {
  spans.insert(spans.end(), more.begin(), more.end());
  joinSpans(spans);
}

/// A section for each run of pairs that differ in the same.
void Comparison::addRanks() {
  std::vector<RankSection> sections;
  for (const RankPair &pair : pairRanks(before, after)) {
    RankSection section = describe(pair);
    RankSection *last = sections.empty() ? nullptr : &sections.back();
    if (!last || last->lines != section.lines || !last->pair.before != !pair.before ||
        !last->pair.after != !pair.after) {
      sections.push_back(std::move(section));
      continue;
    }
    append(last->pair.beforeRanks, pair.beforeRanks), append(last->pair.afterRanks, pair.afterRanks);
    append(last->beforeStages, section.beforeStages), append(last->afterStages, section.afterStages);
  }
  for (const RankSection &section : sections)
    addRanks(section);
}

std::string Comparison::print() {
  // What an old plan does not say is no difference.
  bool isSaid = !before.inputs.empty() && !after.inputs.empty();
  std::string causes = compare(causesOf(before, isSaid), causesOf(after, isSaid));
  addSection("plan", compare(outcomesOf(before), outcomesOf(after)));
  addRanks();
  addSection("step", compare(stepOf(before.predicted), stepOf(after.predicted)));
  addSection("communication", compare(trafficOf(before.predicted), trafficOf(after.predicted)));
  std::string counted = std::to_string(same) + (same == 1 ? " figure is" : " figures are") + " equal\n";
  if (causes.empty() && text.empty())
    return "no difference: all " + counted;
  if (causes.empty())
    causes = "  none that both plans name\n";
  for (const auto &[report, name] : {std::pair(&before, &beforeName), std::pair(&after, &afterName)})
    if (report->inputs.empty())
      causes += "  " + *name + " does not say its configuration: an older ds-opt wrote it\n";
  return "- " + beforeName + "\n+ " + afterName + "\n\ninputs\n" + causes + text + "\n" + counted;
}

std::string diffPlans(const PlanReport &before, const PlanReport &after, const std::string &beforeName,
                      const std::string &afterName) {
  return Comparison(before, after, beforeName, afterName).print();
}

} // namespace ds::report
