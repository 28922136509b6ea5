//===- AnalyticTimeline.cpp - A plan by rules over time -------------------------------===//
#include "ds/Planner/AnalyticTimeline.h"

#include "AnalyticSimulation.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <numeric>

using namespace ds;
using namespace ds::planner;
using report::Category;
using report::PlanTimeline;

namespace {
/// Lays the buffers of one pipeline stage over its commands.
class StageTimeline {
public:
  StageTimeline(const AnalyticCase &what, const report::RankPlan &rank, StageSimulation simulation);
  PlanTimeline run(const report::PlanReport &report);

private:
  int64_t count() const { return static_cast<int64_t>(simulation.layers.size()); }
  int64_t at(Category category) const { return rank.atPeak[static_cast<size_t>(category)]; }
  uint32_t end() const { return static_cast<uint32_t>(out.commands.size()); }
  /// Where the forward and backward pass of a layer begin; beyond the last one, where they end.
  uint32_t forward(int64_t layer) const {
    return layer < count() ? simulation.layers[std::max<int64_t>(0, layer)].forward : simulation.logits;
  }
  uint32_t backward(int64_t layer) const {
    return layer >= 0 ? simulation.layers[layer].backward : simulation.passesEnd;
  }

  int64_t put(const std::string &name, const std::string &layer, Category category, int64_t bytes,
              int64_t offset, uint32_t begin, uint32_t end);
  void addStates();
  void addBuckets();
  void addActivations();
  void addRolling(const char *name, Category category, int64_t offset, const int64_t *slots,
                  int64_t forwardLead);
  void addKept(const std::vector<int64_t> &bytes);
  void addElsewhere(const std::string &space, int64_t total, const cost::MemoryEstimate::Offloaded &parts);
  void addPeak();

  const AnalyticCase &what;
  const report::RankPlan &rank;
  StageSimulation simulation;
  cost::MemoryEstimate memory;
  cost::StageActivations activations;
  PlanTimeline out;
  int64_t top = 0; ///< of the arena so far
};
} // namespace

/// `total` in the shares of `parts`, as whole numbers that add up to it: the first part that there is of any
/// gets what rounding leaves.
static std::vector<int64_t> split(int64_t total, const std::vector<double> &parts) {
  double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  std::vector<int64_t> result;
  int64_t rest = total;
  for (double part : parts) {
    double share = sum > 0 ? static_cast<double>(total) * (part / sum) : 0;
    result.push_back(std::min(rest, static_cast<int64_t>(share)));
    rest -= result.back();
  }
  auto first = std::find_if(parts.begin(), parts.end(), [](double part) { return part > 0; });
  result[first == parts.end() ? 0 : first - parts.begin()] += rest;
  return result;
}

StageTimeline::StageTimeline(const AnalyticCase &what, const report::RankPlan &rank,
                             StageSimulation simulation)
    : what(what), rank(rank), simulation(std::move(simulation)),
      memory(estimateStageMemory(what.shape, what.plan, what.rates.cluster(), rank.stage)),
      activations(stageActivations(what.shape, what.plan, rank.stage)) {
  out.commands = this->simulation.commands;
  out.streams = this->simulation.streams;
  out.busySeconds = this->simulation.busySeconds;
  out.seconds = this->simulation.seconds;
}

/// Adds a device buffer and returns where it ends.
int64_t StageTimeline::put(const std::string &name, const std::string &layer, Category category,
                           int64_t bytes, int64_t offset, uint32_t begin, uint32_t end) {
  if (bytes > 0 && begin < end) {
    PlanTimeline::Buffer buffer;
    buffer.name = name;
    buffer.layer = layer;
    buffer.category = category;
    buffer.offset = offset;
    buffer.bytes = bytes;
    buffer.begin = simulation.reached[begin];
    buffer.end = simulation.reached[end];
    buffer.beginCommand = begin;
    buffer.endCommand = end;
    out.buffers.push_back(std::move(buffer));
  }
  top = std::max(top, offset + bytes);
  return offset + bytes;
}

void StageTimeline::addStates() {
  int64_t next = put("parameters", "", Category::Parameters, at(Category::Parameters), 0, 0, end());
  next = put("gradients", "", Category::Gradients, at(Category::Gradients), next, 0, end());
  next = put("optimizer states", "", Category::Optimizer, at(Category::Optimizer), next, 0, end());
  put("workspace", "", Category::Workspace, at(Category::Workspace), next, 0, end());
}

/// What two layers have at a time: the one that computes, and the next or the one before. Each has one of two
/// places in turn. In the forward pass it comes `forwardLead` layers ahead; the last two stay for the
/// backward pass.
void StageTimeline::addRolling(const char *name, Category category, int64_t offset, const int64_t *slots,
                               int64_t forwardLead) {
  for (int64_t layer = 0; layer < count(); ++layer) {
    int64_t slot = layer % 2, place = offset + (slot == 0 ? 0 : slots[0]);
    uint32_t begin = forward(layer - forwardLead), backEnd = backward(layer - 1);
    if (layer + 2 >= count()) {
      put(name, simulation.layerName(layer), category, slots[slot], place, begin, backEnd);
      continue;
    }
    put(name, simulation.layerName(layer), category, slots[slot], place, begin,
        forward(layer + 2 - forwardLead));
    put(name, simulation.layerName(layer), category, slots[slot], place, backward(layer + 1), backEnd);
  }
}

/// Gathered parameters, and gradients on their way.
void StageTimeline::addBuckets() {
  double half = memory.gathered / 2;
  std::vector<int64_t> bytes = split(at(Category::Communication), {half, half, memory.reduced});
  int64_t base = top;
  if (count() >= 2)
    addRolling("gathered parameters", Category::Communication, base, bytes.data(), 1);
  else
    put("gathered parameters", "", Category::Communication, bytes[0] + bytes[1], base, 0,
        simulation.passesEnd);
  put("gradient buckets", "", Category::Communication, bytes[2], base + bytes[0] + bytes[1],
      simulation.logits, simulation.passesEnd);
}

/// The layers of micro-batches in flight: the oldest leaves layer by layer in this backward pass, the newest
/// comes in this forward pass, those between stay.
void StageTimeline::addKept(const std::vector<int64_t> &bytes) {
  const int64_t flights = std::max<int64_t>(1, static_cast<int64_t>(bytes.size()) / count());
  for (int64_t flight = 0; flight < flights; ++flight) {
    bool oldest = flight == 0, newest = flight + 1 == flights;
    auto first = bytes.begin() + flight * count();
    if (!oldest && !newest) {
      put("activations of a micro-batch in flight", "", Category::Activations,
          std::accumulate(first, first + count(), int64_t{0}), top, 0, end());
      continue;
    }
    for (int64_t layer = 0; layer < count(); ++layer)
      put("activations", simulation.layerName(layer), Category::Activations, first[layer], top,
          newest ? forward(layer) : 0, oldest ? simulation.layers[layer].end : simulation.passesEnd);
  }
}

void StageTimeline::addActivations() {
  bool leave = activations.onHost > 0 && count() >= 2; // two layers' are on the device
  int64_t kept = leave ? 2 : count() * std::max<int64_t>(1, activations.inFlight);
  double perLayer = activations.layers * activations.perLayer / static_cast<double>(kept);
  std::vector<double> parts{activations.outside, activations.again};
  parts.insert(parts.end(), kept, perLayer);
  std::vector<int64_t> bytes = split(at(Category::Activations), parts);
  bool isLast = rank.stage + 1 == what.plan.pp;
  put(isLast ? "logits" : "masks of the embedding", "", Category::Activations, bytes[0], top,
      isLast ? simulation.logits : 0, isLast ? simulation.layers.back().end : end());
  int64_t again = top;
  top += bytes[1];
  for (int64_t layer = count(); layer-- > 0;)
    put("recomputed", simulation.layerName(layer), Category::Activations, bytes[1], again,
        simulation.layers[layer].backward, simulation.layers[layer].end);
  if (leave)
    addRolling("activations", Category::Activations, top, &bytes[2], 0);
  else
    addKept({bytes.begin() + 2, bytes.end()});
}

/// What is kept on the host or on storage, for the whole step.
void StageTimeline::addElsewhere(const std::string &space, int64_t total,
                                 const cost::MemoryEstimate::Offloaded &parts) {
  std::vector<int64_t> bytes =
      split(total, {parts.parameters, parts.gradients, parts.optimizer, parts.checkpoints, parts.staging});
  const std::pair<const char *, Category> kinds[] = {{"parameters", Category::Parameters},
                                                     {"gradients", Category::Gradients},
                                                     {"optimizer states", Category::Optimizer},
                                                     {"activations", Category::Activations},
                                                     {"staging buffers", Category::Communication}};
  int64_t device = top, next = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    size_t before = out.buffers.size();
    next = put(kinds[i].first, "", kinds[i].second, bytes[i], next, 0, end());
    if (out.buffers.size() > before)
      out.buffers.back().space = space;
  }
  top = device;
}

void StageTimeline::addPeak() {
  for (const report::LivePoint &point : liveCurve(out))
    if (point.total() > out.peakBytes) {
      out.peakBytes = point.total();
      out.peakTime = point.time;
      out.peakCommand = point.command;
    }
  out.peakAt = rank.peakAt;
  out.arenaBytes = top;
}

/// What the picture leaves out.
static void addNotes(const AnalyticCase &what, const cost::StepEstimate &step, PlanTimeline &timeline) {
  const cost::ParallelPlan &plan = what.plan;
  std::string shown = plan.interleave > 1 ? "one chunk of layers of one micro-batch" : "one micro-batch";
  timeline.notes.push_back(
      llvm::formatv("drawn by rules: {0} of {1} in a step, with the reductions of the last, then what ends "
                    "the step",
                    shown, plan.accumulation));
  for (const cost::Term &term : step.terms)
    if (term.name == "pipeline bubble")
      timeline.notes.push_back(
          llvm::formatv("the pipeline's bubble, {0:F3} s a step, is not drawn", term.seconds));
}

PlanTimeline StageTimeline::run(const report::PlanReport &report) {
  out.title = report.model + " for " + report.target;
  if (what.plan.pp > 1)
    out.title += ", stage " + std::to_string(rank.stage);
  addStates();
  addBuckets();
  addActivations();
  addElsewhere("host", rank.hostArena, memory.host);
  addElsewhere("nvme", rank.nvmeArena, memory.storage);
  addPeak();
  out.stepSeconds = report.predicted.stepSeconds.value_or(0);
  out.computeSeconds = report.predicted.computeSeconds.value_or(0);
  out.exposedCommunicationSeconds = report.predicted.exposedCommunicationSeconds.value_or(0);
  return std::move(out);
}

std::vector<PlanTimeline> ds::planner::makeAnalyticTimelines(const AnalyticCase &what,
                                                             const report::PlanReport &report) {
  cost::StepEstimate step = estimateStep(what.shape, what.plan, what.rates);
  std::vector<PlanTimeline> timelines;
  for (const report::RankPlan &rank : report.ranks) {
    StageTimeline stage(what, rank, simulateStage(what, step, rank.stage));
    timelines.push_back(stage.run(report));
    addNotes(what, step, timelines.back());
  }
  return timelines;
}
