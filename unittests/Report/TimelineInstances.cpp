//===- TimelineInstances.cpp - Steps to draw -----------------------------------------===//
#include "TimelineInstances.h"

#include <algorithm>

namespace ds::report::test {

static constexpr int64_t kMiB = 1 << 20;
using Buffer = PlanTimeline::Buffer;

namespace {
class Step {
public:
  Step(unsigned layers, unsigned perLayer, int64_t gaps) : layers(layers), perLayer(perLayer) {
    step.title = "gpt.pt";
    step.streams = {"compute", "gather"};
    addStates(gaps);
    addForward();
    addBackward();
    finish();
  }
  PlanTimeline step;

private:
  void addStates(int64_t gaps);
  void addForward();
  void addBackward();
  void finish();
  uint32_t now() const { return static_cast<uint32_t>(step.commands.size()); }
  std::string layer(unsigned i) const { return "h." + std::to_string(i / perLayer) + ".mlp"; }
  void command(const std::string &name, const std::string &where, const char *segment, double seconds) {
    step.commands.push_back(
        {name, where, segment, 0, "compute", clock, clock + seconds, 2e9 * seconds / 1e-3, 1e6});
    clock += seconds;
  }

  unsigned layers, perLayer;
  double clock = 0;
  int64_t top = 0; ///< of the arena so far
};
} // namespace

void Step::addStates(int64_t gaps) {
  auto state = [&](const char *name, Category category, int64_t bytes) {
    Buffer buffer{name, "", category, "device", top, bytes};
    buffer.endCommand = 2 * layers * perLayer + 1;
    step.buffers.push_back(buffer);
    top += bytes;
  };
  state("parameters", Category::Parameters, 4 * layers * kMiB);
  state("gradients", Category::Gradients, 4 * layers * kMiB);
  state("exp_avg", Category::Optimizer, 8 * layers * kMiB);
  if (gaps > 0) {
    Buffer buffer{"alignment and gaps", "", Category::Workspace, "device", -1, gaps};
    buffer.endCommand = 2 * layers * perLayer + 1;
    step.buffers.push_back(buffer);
  }
}

void Step::addForward() {
  for (unsigned i = 0; i < layers * perLayer; ++i) {
    Buffer made{"matmul", layer(i), Category::Activations, "device", top, (1 + i % 3) * kMiB};
    made.beginCommand = now();
    made.endCommand = 2 * layers * perLayer - now();
    made.type = "4x64x1024xf32";
    top += made.bytes;
    step.buffers.push_back(made);
    command("matmul", layer(i), "forward", 1e-3 * (1 + i % 2));
  }
}

void Step::addBackward() {
  for (unsigned i = layers * perLayer; i-- > 0;) {
    Buffer work{"workspace", layer(i), Category::Workspace, "device", top, kMiB};
    work.beginCommand = now();
    work.endCommand = now() + 1;
    step.buffers.push_back(work);
    command("matmul_backward", layer(i), "backward", 2e-3);
  }
  top += kMiB;
  command("adamw", "", "update", 3e-3);
}

void Step::finish() {
  step.seconds = step.stepSeconds = clock;
  step.arenaBytes = top;
  auto time = [&](uint32_t command) {
    return command < step.commands.size() ? step.commands[command].begin : clock;
  };
  for (Buffer &buffer : step.buffers) {
    buffer.begin = time(buffer.beginCommand);
    buffer.end = time(buffer.endCommand);
    if (buffer.offset < 0)
      step.arenaBytes += buffer.bytes;
  }
  for (const LivePoint &point : liveCurve(step))
    if (point.total() > step.peakBytes) {
      step.peakBytes = point.total();
      step.peakTime = point.time;
      step.peakCommand = point.command;
    }
  step.peakAt = step.commands[step.peakCommand].name + " " + step.commands[step.peakCommand].layer;
  for (uint32_t stream = 0; stream < step.streams.size(); ++stream)
    step.busySeconds.push_back(0);
  for (const PlanTimeline::Command &command : step.commands)
    step.busySeconds[command.stream] += command.end - command.begin;
}

PlanTimeline stepOf(unsigned layers, unsigned perLayer, int64_t gaps) {
  return Step(layers, perLayer, gaps).step;
}

PlanReport reportOf(const PlanTimeline &timeline, int64_t limit) {
  PlanReport report;
  report.model = timeline.title;
  report.target = "cpu";
  report.memoryLimit = limit;
  report.parameters = 124439808;
  report.flopsPerStep = 1.25e12;
  report.predicted.stepSeconds = timeline.seconds;
  report.notes = {"a note"};
  RankPlan rank;
  rank.peakBytes = rank.deviceArena = rank.lowerBound = timeline.peakBytes;
  rank.peakAt = timeline.peakAt;
  const LivePoint *highest = nullptr;
  std::vector<LivePoint> curve = liveCurve(timeline);
  for (const LivePoint &point : curve)
    if (!highest || point.total() > highest->total())
      highest = &point;
  rank.atPeak = highest->bytes;
  for (const Buffer &buffer : timeline.buffers)
    if (buffer.begin <= timeline.peakTime && timeline.peakTime < buffer.end)
      rank.largest.push_back({buffer.name, buffer.layer, buffer.bytes, buffer.category});
  std::sort(rank.largest.begin(), rank.largest.end(), [](const LiveValue &a, const LiveValue &b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.layer < b.layer;
  });
  report.ranks = {rank};
  return report;
}

} // namespace ds::report::test
