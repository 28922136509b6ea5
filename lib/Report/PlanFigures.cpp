//===- PlanFigures.cpp - Plans as lists of named figures -------------------------===//

#include "PlanFigures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace ds::report {

namespace {

/// Collects figures, in groups of rising numbers.
class FigureList {
public:
  void nextGroup() { ++group; }
  void bytes(const std::string &name, int64_t value) {
    add(name, Figure::Kind::Bytes, double(value), value, "");
  }
  void number(const std::string &name, double value) { add(name, Figure::Kind::Number, value, 0, ""); }
  void words(const std::string &name, std::string value) {
    add(name, Figure::Kind::Text, 0, 0, std::move(value));
  }
  std::vector<Figure> take() { return std::move(figures); }

private:
  void add(const std::string &name, Figure::Kind kind, double value, int64_t bytes, std::string text) {
    figures.push_back({group, name, kind, value, bytes, std::move(text)});
  }

  unsigned group = 0;
  std::vector<Figure> figures;
};

} // namespace

/// A JSON text without its quotes, where they are all that it has around it.
static std::string unquoted(const std::string &json) {
  bool isPlain = json.size() >= 2 && json.front() == '"' && json.back() == '"' &&
                 json.find_first_of("\"\\", 1) == json.size() - 1;
  return isPlain ? json.substr(1, json.size() - 2) : json;
}

std::vector<Figure> causesOf(const PlanReport &report, bool withInputs) {
  FigureList list;
  auto add = [&](const char *name, std::string value) {
    list.words(name, value.empty() ? "(none)" : std::move(value));
  };
  add("model", report.model);
  add("parameters", formatExact(report.parameters));
  add("of them trained", report.trainedParameters ? formatExact(*report.trainedParameters) : "all");
  if (report.activeParameters)
    add("of them active for a token", formatExact(*report.activeParameters));
  add("basis", report.basis);
  add("target", report.target);
  add("program target", report.programTarget);
  add("products in tf32", report.tf32 ? "yes" : "no");
  add("memory limit", report.memoryLimit > 0 ? formatBytes(report.memoryLimit) + " (" +
                                                   formatExact(report.memoryLimit) + " bytes)"
                                             : "");
  add("ranks", std::to_string(report.world));
  for (auto [axis, size] : {std::pair("dp", report.mesh.dp), std::pair("tp", report.mesh.tp),
                            std::pair("pp", report.mesh.pp), std::pair("sp", report.mesh.sp)})
    add(axis, std::to_string(size));
  if (withInputs)
    for (const PlanInput &input : report.inputs)
      list.words(input.name, unquoted(input.value));
  return list.take();
}

std::vector<Figure> outcomesOf(const PlanReport &report) {
  FigureList list;
  list.words("fits", report.fits() ? "yes" : "no");
  list.words("loss", report.lossChunks ? std::to_string(report.lossChunks->chunks) + " chunks of " +
                                             formatExact(report.lossChunks->rows) + " rows"
                                       : "whole");
  list.nextGroup();
  list.number("flops per step", report.flopsPerStep);
  return list.take();
}

std::vector<Figure> memoryOf(const RankPlan &rank) {
  FigureList list;
  list.bytes("peak", rank.peakBytes), list.words("peak at", rank.peakAt);
  list.nextGroup();
  for (unsigned i = 0; i < kNumCategories; ++i)
    list.bytes(std::string("at peak: ") + spell(Category(i)), rank.atPeak[i]);
  list.nextGroup();
  for (const MemoryLine &line : rank.memory)
    list.bytes(line.where + ": " + line.name, line.bytes);
  list.nextGroup();
  for (const LayerBytes &layer : rank.byLayer)
    list.bytes("layer: " + (layer.layer.empty() ? "(none)" : layer.layer), layer.bytes);
  list.nextGroup();
  list.bytes("lower bound", rank.lowerBound);
  list.bytes("device arena", rank.deviceArena), list.bytes("host arena", rank.hostArena);
  list.bytes("nvme arena", rank.nvmeArena);
  for (const StorageDirectory &each : rank.nvmePaths)
    list.bytes("nvme arena, in " + each.path, each.bytes);
  list.bytes("states: parameters", rank.states.parameters),
      list.bytes("states: gradients", rank.states.gradients);
  list.bytes("states: optimizer", rank.states.optimizer), list.bytes("states: scalars", rank.states.scalars);
  list.bytes("states: padding", rank.states.padding);
  return list.take();
}

std::vector<Figure> stepOf(const Prediction &predicted) {
  FigureList list;
  auto add = [&](const char *name, const std::optional<double> &value) {
    if (value)
      list.number(name, *value);
  };
  add("step seconds", predicted.stepSeconds);
  list.nextGroup();
  for (const TimeTerm &term : predicted.terms)
    list.number("term: " + term.name, term.seconds);
  list.nextGroup();
  add("compute seconds", predicted.computeSeconds);
  add("exposed communication seconds", predicted.exposedCommunicationSeconds);
  add("exposed copy seconds", predicted.exposedCopySeconds);
  add("exposed copy seconds: to the host", predicted.exposedToHostSeconds);
  add("exposed copy seconds: to the device", predicted.exposedToDeviceSeconds);
  add("exposed storage seconds", predicted.exposedStorageSeconds);
  list.nextGroup();
  add("tflops per device", predicted.tflopsPerDevice);
  return list.take();
}

std::vector<Figure> trafficOf(const Prediction &predicted) {
  FigureList list;
  for (const auto &[kind, sent] : predicted.communicationBytes)
    list.bytes(kind, sent);
  return list.take();
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

static bool isEqual(const Figure *a, const Figure *b) {
  return a && b && a->kind == b->kind && a->value == b->value && a->bytes == b->bytes && a->text == b->text;
}

/// By how much a figure changed; what is missing counts as zero.
static double sizeOf(const FigureChange &change) {
  return std::fabs((change.after ? change.after->value : 0) - (change.before ? change.before->value : 0));
}

std::vector<FigureChange> findChanges(const std::vector<Figure> &before, const std::vector<Figure> &after,
                                      size_t &same) {
  std::map<std::string, std::vector<const Figure *>> old; // of each name, the first one last
  for (size_t i = before.size(); i-- > 0;)
    old[before[i].name].push_back(&before[i]);
  std::vector<FigureChange> changes;
  auto add = [&](const Figure *a, const Figure *b) {
    if (isEqual(a, b))
      ++same;
    else
      changes.push_back({a, b});
  };
  for (const Figure &figure : after) {
    auto found = old.find(figure.name);
    bool isThere = found != old.end() && !found->second.empty();
    add(isThere ? found->second.back() : nullptr, &figure);
    if (isThere)
      found->second.pop_back();
  }
  for (const Figure &figure : before)
    if (std::vector<const Figure *> &left = old[figure.name]; !left.empty() && left.back() == &figure) {
      add(&figure, nullptr);
      left.pop_back();
    }
  std::vector<std::tuple<unsigned, bool, double, size_t>> order;
  for (size_t i = 0; i < changes.size(); ++i)
    order.push_back(
        {changes[i].any().group, changes[i].any().kind == Figure::Kind::Text, -sizeOf(changes[i]), i});
  std::sort(order.begin(), order.end());
  std::vector<FigureChange> sorted;
  for (const auto &[group, isText, size, i] : order)
    sorted.push_back(changes[i]);
  return sorted;
}

} // namespace ds::report
