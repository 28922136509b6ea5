//===- PlanDiff.cpp - What two plans do not share -------------------------------===//
//
// Both plans become lists of named figures; figures are paired by name, what is equal is counted and left
// out.
//
//===---------------------------------------------------------------------------===//

#include "ds/Report/PlanReport.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace ds::report {

namespace {

/// One figure of a plan.
struct Figure {
  enum class Kind : uint8_t { Bytes, Number, Text };
  std::string section, name;
  Kind kind = Kind::Bytes;
  double value = 0;
  int64_t bytes = 0;
  std::string text;
};

class Flattener {
public:
  std::vector<Figure> run(const PlanReport &report);

private:
  void bytes(const std::string &name, int64_t value) {
    add(name, Figure::Kind::Bytes, double(value), value, "");
  }
  void number(const std::string &name, double value) { add(name, Figure::Kind::Number, value, 0, ""); }
  void words(const std::string &name, std::string value) {
    add(name, Figure::Kind::Text, 0, 0, std::move(value));
  }
  void add(const std::string &name, Figure::Kind kind, double value, int64_t bytes, std::string text) {
    figures.push_back({section, name, kind, value, bytes, std::move(text)});
  }
  void rank(const RankPlan &rank);

  std::string section;
  std::vector<Figure> figures;
};

} // namespace

void Flattener::rank(const RankPlan &rank) {
  section = rank.firstRank == rank.lastRank
                ? "rank " + std::to_string(rank.firstRank)
                : "ranks " + std::to_string(rank.firstRank) + " to " + std::to_string(rank.lastRank);
  bytes("peak", rank.peakBytes);
  words("peak at", rank.peakAt);
  bytes("lower bound", rank.lowerBound);
  bytes("device arena", rank.deviceArena), bytes("host arena", rank.hostArena),
      bytes("nvme arena", rank.nvmeArena);
  bytes("states: parameters", rank.states.parameters), bytes("states: gradients", rank.states.gradients);
  bytes("states: optimizer", rank.states.optimizer), bytes("states: scalars", rank.states.scalars);
  bytes("states: padding", rank.states.padding);
  for (unsigned i = 0; i < kNumCategories; ++i)
    bytes(std::string("at peak: ") + spell(Category(i)), rank.atPeak[i]);
  for (const MemoryLine &line : rank.memory)
    bytes(line.where + ": " + line.name, line.bytes);
  for (const LayerBytes &layer : rank.byLayer)
    bytes("layer: " + (layer.layer.empty() ? "(none)" : layer.layer), layer.bytes);
}

std::vector<Figure> Flattener::run(const PlanReport &report) {
  section = "plan";
  words("model", report.model), words("target", report.target);
  words("program target", report.programTarget);
  number("world", report.world);
  number("dp", report.mesh.dp), number("tp", report.mesh.tp), number("pp", report.mesh.pp),
      number("sp", report.mesh.sp);
  number("parameters", double(report.parameters)), number("flops per step", report.flopsPerStep);
  bytes("memory limit", report.memoryLimit);
  words("fits", report.fits() ? "yes" : "no");
  const Prediction &predicted = report.predicted;
  for (auto [name, value] :
       {std::pair("predicted: step seconds", predicted.stepSeconds),
        std::pair("predicted: tflops per device", predicted.tflopsPerDevice),
        std::pair("predicted: compute seconds", predicted.computeSeconds),
        std::pair("predicted: exposed communication seconds", predicted.exposedCommunicationSeconds)})
    if (value)
      number(name, *value);
  for (const auto &[kind, sent] : predicted.communicationBytes)
    bytes("communication: " + kind, sent);
  for (const RankPlan &plan : report.ranks)
    rank(plan);
  return std::move(figures);
}

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
static std::string showChange(const Figure *before, const Figure *after) {
  Figure::Kind kind = (before ? before : after)->kind;
  if (kind == Figure::Kind::Text)
    return "";
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

/// The figures of both plans in the order of the first, each of the second behind what it follows there.
static std::vector<std::pair<const Figure *, const Figure *>> pairUp(const std::vector<Figure> &before,
                                                                     const std::vector<Figure> &after) {
  std::map<std::pair<std::string, std::string>, const Figure *> old;
  for (const Figure &figure : before)
    old.insert({{figure.section, figure.name}, &figure});
  std::vector<std::pair<const Figure *, const Figure *>> pairs;
  for (const Figure &figure : after) {
    auto found = old.find({figure.section, figure.name});
    pairs.push_back({found == old.end() ? nullptr : found->second, &figure});
    if (found != old.end())
      old.erase(found);
  }
  for (const Figure &figure : before)
    if (auto found = old.find({figure.section, figure.name}); found != old.end() && found->second == &figure)
      pairs.push_back({&figure, nullptr});
  std::map<std::string, size_t> sections; // by first appearance
  for (auto [a, b] : pairs)
    sections.insert({(b ? b : a)->section, sections.size()});
  std::vector<std::pair<size_t, size_t>> order;
  for (size_t i = 0; i < pairs.size(); ++i)
    order.push_back({sections[(pairs[i].second ? pairs[i].second : pairs[i].first)->section], i});
  std::sort(order.begin(), order.end());
  std::vector<std::pair<const Figure *, const Figure *>> sorted;
  for (auto [section, i] : order)
    sorted.push_back(pairs[i]);
  return sorted;
}

static bool equal(const Figure *a, const Figure *b) {
  return a && b && a->kind == b->kind && a->value == b->value && a->bytes == b->bytes && a->text == b->text;
}

std::string diffPlans(const PlanReport &before, const PlanReport &after, const std::string &beforeName,
                      const std::string &afterName) {
  std::vector<Figure> old = Flattener().run(before), now = Flattener().run(after);
  std::string out, section;
  size_t same = 0, changed = 0;
  for (auto [a, b] : pairUp(old, now)) {
    if (equal(a, b)) {
      ++same;
      continue;
    }
    ++changed;
    const Figure &any = b ? *b : *a;
    if (any.section != section)
      out += "\n" + (section = any.section) + "\n";
    std::string line;
    if (any.kind == Figure::Kind::Text) {
      line = "  " + any.name + ": " + show(a) + " -> " + show(b);
    } else {
      char text[256];
      std::snprintf(text, sizeof text, "  %-34.120s %12s %12s ", any.name.c_str(), show(a).c_str(),
                    show(b).c_str());
      line = text + showChange(a, b);
    }
    out += line + "\n";
  }
  std::string counted = std::to_string(same) + (same == 1 ? " figure is" : " figures are") + " equal\n";
  if (changed == 0)
    return "no difference: all " + counted;
  return "- " + beforeName + "\n+ " + afterName + "\n" + out + "\n" + counted;
}

} // namespace ds::report
