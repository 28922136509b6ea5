//===- PlanTimeline.cpp - The planned module over the time of a step -------------===//
//
// The segments of the step one behind the other, as often as a step runs them, each as StepSimulation has it.
// What the arena has beyond the bytes that are live at the peak is one buffer of its own, so that the curve's
// peak is the plan's.
//
//===---------------------------------------------------------------------------===//
#include "PlanBuffers.h"
#include "StepSimulation.h"
#include "ds/Dialect/Work.h"
#include "ds/Planner/PlanSummary.h"

using namespace mlir;
using namespace mlir::ds;
namespace report = ::ds::report;
namespace cost = ::ds::cost;
using Buffer = report::PlanTimeline::Buffer;

/// A timeline that would have more commands shows micro-steps in the middle once.
static constexpr int64_t kMostCommands = 20000;

namespace {
class TimelineBuilder {
public:
  TimelineBuilder(ModuleOp module, const cost::Rates &rates)
      : module(module), symbols(module), step(simulateStep(module, rates)) {}
  report::PlanTimeline build();

private:
  int64_t shownRuns(const SegmentSimulation &segment);
  void addSegment(const SegmentSimulation &segment, const std::string &name);
  void addCommands(const SegmentSimulation &segment, const std::string &name);
  void addBuffers(const SegmentSimulation &segment);
  void addWhole();
  void addTotals();
  void addPeak();

  ModuleOp module;
  SymbolTable symbols;
  StepSimulation step;
  report::PlanTimeline timeline;
};
} // namespace

/// How many of the segment's runs are shown.
int64_t TimelineBuilder::shownRuns(const SegmentSimulation &segment) {
  auto commands = static_cast<int64_t>(segment.scheduled.commands.size());
  if (segment.runs <= 1 || segment.runs * commands <= kMostCommands)
    return segment.runs;
  func::FuncOp func = segment.scheduled.func;
  timeline.notes.push_back("@" + func.getSymName().str() + " is shown once of " +
                           std::to_string(segment.runs) + " times");
  return 1;
}

void TimelineBuilder::addCommands(const SegmentSimulation &segment, const std::string &name) {
  for (auto [each, span] : llvm::zip_equal(segment.scheduled.commands, segment.simulation.spans)) {
    ScheduledOpInterface op = each;
    report::PlanTimeline::Command command;
    command.name = op.getLabel(symbols);
    command.layer = layerOf(op);
    command.segment = name;
    command.stream = llvm::find(step.streams, op.getStream()) - step.streams.begin();
    command.kind = op.getCommandTraits().name;
    command.begin = timeline.seconds + span.begin;
    command.end = timeline.seconds + span.end;
    command.flops = static_cast<double>(op.getCountedFlops());
    command.bytes = static_cast<double>(op.getTraffic());
    if (op.isEvent())
      command.event = op.getRecordedEvent() ? *op.getRecordedEvent() : *op.getAwaitedEvent();
    timeline.commands.push_back(std::move(command));
  }
}

/// The allocations of a segment whose commands come next.
void TimelineBuilder::addBuffers(const SegmentSimulation &segment) {
  auto base = static_cast<uint32_t>(timeline.commands.size());
  for (const AllocLifetime &lifetime : segment.scheduled.lifetimes) {
    AllocOp alloc = lifetime.alloc;
    Buffer buffer;
    buffer.name = ScheduledOpInterface(lifetime.writer).getLabel(symbols);
    buffer.layer = layerOf(alloc);
    buffer.category = categoryOf(alloc);
    buffer.space = stringifySpace(alloc.getBuffer().getType().getSpace()).str();
    buffer.offset = alloc.getOffset().value_or(0);
    buffer.bytes = alloc.getBuffer().getType().getSizeInBytes();
    buffer.begin = timeline.seconds + segment.reached[lifetime.begin];
    buffer.end = timeline.seconds + segment.reached[lifetime.end];
    buffer.beginCommand = base + lifetime.begin;
    buffer.endCommand = base + lifetime.end;
    buffer.type = spellType(alloc.getBuffer().getType());
    timeline.buffers.push_back(std::move(buffer));
  }
}

void TimelineBuilder::addSegment(const SegmentSimulation &segment, const std::string &name) {
  addBuffers(segment);
  addCommands(segment, name);
  timeline.seconds += segment.simulation.seconds;
}

/// States, inputs, and what alignment and packing cost, all for the whole step.
void TimelineBuilder::addWhole() {
  std::vector<Buffer> whole;
  for (const WholeBuffer &each : findWholeBuffers(module)) {
    Buffer &buffer = whole.emplace_back();
    buffer.name = each.name;
    buffer.category = categoryOf(each.part);
    buffer.space = stringifySpace(each.type.getSpace()).str();
    buffer.offset = each.offset;
    buffer.bytes = each.type.getSizeInBytes();
    buffer.type = spellType(each.type);
  }
  Buffer &rest = whole.emplace_back();
  rest.name = "alignment and gaps";
  rest.category = report::Category::Workspace;
  rest.offset = -1;
  for (Buffer &buffer : whole) {
    buffer.end = timeline.seconds;
    buffer.endCommand = timeline.commands.size();
  }
  timeline.buffers.insert(timeline.buffers.begin(), whole.begin(), whole.end());
  addPeak();
  int64_t &gaps = timeline.buffers[whole.size() - 1].bytes;
  gaps = std::max<int64_t>(0, timeline.arenaBytes - timeline.peakBytes);
  timeline.peakBytes += gaps;
}

/// Finds the fullest moment of what is shown.
void TimelineBuilder::addPeak() {
  for (const report::LivePoint &point : liveCurve(timeline))
    if (point.total() > timeline.peakBytes) {
      timeline.peakBytes = point.total();
      timeline.peakTime = point.time;
      timeline.peakCommand = point.command;
    }
  if (timeline.peakCommand < timeline.commands.size()) {
    const report::PlanTimeline::Command &command = timeline.commands[timeline.peakCommand];
    timeline.peakAt =
        command.name + (command.layer.empty() ? "" : " " + command.layer) + " (" + command.segment + ")";
  }
}

/// The figures of the whole step, however much of it is shown.
void TimelineBuilder::addTotals() {
  timeline.stepSeconds = step.sum([](const SegmentSimulation &each) { return each.simulation.seconds; });
  timeline.computeSeconds =
      step.sum([](const SegmentSimulation &each) { return each.simulation.computeSeconds; });
  timeline.exposedCommunicationSeconds =
      step.sum([](const SegmentSimulation &each) { return each.simulation.exposedCommunicationSeconds; });
  for (auto [index, stream] : llvm::enumerate(step.streams)) {
    timeline.streams.push_back(stringifyStreamKind(stream).str());
    timeline.busySeconds.push_back(step.sum(
        [index = index](const SegmentSimulation &each) { return each.simulation.busySeconds[index]; }));
  }
  if (ArenaOp arena = ArenaOp::lookup(module, Space::Device))
    timeline.arenaBytes = arena.getBytes();
}

report::PlanTimeline TimelineBuilder::build() {
  addTotals();
  for (const SegmentSimulation &segment : step.segments) {
    func::FuncOp func = segment.scheduled.func;
    int64_t shown = shownRuns(segment);
    for (int64_t run = 0; run < shown; ++run)
      addSegment(segment, func.getSymName().str());
  }
  addWhole();
  return std::move(timeline);
}

report::PlanTimeline mlir::ds::timelineOfPlan(ModuleOp module, const cost::Rates &rates) {
  return TimelineBuilder(module, rates).build();
}
