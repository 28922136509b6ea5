//===- AnalyticSimulation.cpp - One micro-batch of a pipeline stage, command by command ------===//
//
// Durations are the rules' own, of a layer and of the terms that end a step; what runs beside what follows
// from streams and events, as in a program. Two layers' parameters are gathered at a time, the one that
// computes and the next, and the reductions are those of the last micro-batch.
//
//===---------------------------------------------------------------------------===//
#include "AnalyticSimulation.h"

#include "ds/Cost/Simulate.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>

using namespace ds;
using namespace ds::planner;
using cost::SimCommand;
using Command = report::PlanTimeline::Command;

namespace {
/// The end of a command, for which other streams can wait; event 0 is none.
struct SchedulePoint {
  uint32_t stream = 0, event = 0;
};

/// The streams of one pipeline stage, as they are filled.
class StageStreams {
public:
  uint32_t streamOf(llvm::StringRef name);
  /// A command that begins when what came before it on its stream and all of `after` have ended.
  SchedulePoint add(llvm::StringRef stream, const char *kind, const std::string &name,
                    const std::string &layer, double seconds, std::initializer_list<SchedulePoint> after,
                    double flops = 0);
  /// The first stream waits for what all streams have been given so far.
  void join();
  /// The end of what its stream has been given so far.
  SchedulePoint record(uint32_t stream);
  uint32_t now() const { return static_cast<uint32_t>(out.commands.size()); }
  /// The same with the times at which it all runs.
  StageSimulation finish();

  StageSimulation out;
  const char *segment = "forward"; ///< of commands from here on

private:
  void push(Command command, SimCommand::Kind kind, double seconds, uint32_t event);
  void wait(uint32_t stream, SchedulePoint point);

  std::vector<SimCommand> commands; ///< those of `out`, for the simulation
  std::vector<SchedulePoint> last;  ///< of each stream
  uint32_t events = 0;
};

/// What a stage does, by the figures of its layers.
class StageSimulator {
public:
  StageSimulator(const AnalyticCase &what, const cost::StepEstimate &step, int64_t stage);
  StageSimulation run();

private:
  void addForward();
  void addBackward();
  SchedulePoint addGather(int64_t layer, SchedulePoint slotFree);
  void addReduction(int64_t layer);
  void addTransfer(bool hasNeighbour, const char *name);
  void addEnd();

  const AnalyticCase &what;
  const cost::ParallelPlan &plan;
  const cost::StepEstimate &step;
  int64_t stage;
  int64_t dataRanks;      ///< that ZeRO shards over
  double layerParameters; ///< on one tensor-parallel rank
  double forwardFlops;    ///< of a layer on one rank
  StageStreams streams;
  StageSimulation &out = streams.out;
  std::vector<SchedulePoint> forward, backward;
  SchedulePoint chain; ///< what the next command of the pass follows
};
} // namespace

/// Operations of one layer's forward pass on one rank.
static double layerFlops(const AnalyticCase &what) {
  cost::ModelShape layersAlone = what.shape;
  layersAlone.vocab = 0;
  const cost::ParallelPlan &plan = what.plan;
  return stepWork(layersAlone, plan) / 3 /
         static_cast<double>(what.shape.layers * plan.accumulation * plan.dp * plan.tp * plan.sp);
}

StageSimulator::StageSimulator(const AnalyticCase &what, const cost::StepEstimate &step, int64_t stage)
    : what(what), plan(what.plan), step(step), stage(stage), dataRanks(plan.dp * plan.sp),
      layerParameters(static_cast<double>(what.shape.layerParameters()) / static_cast<double>(plan.tp)),
      forwardFlops(layerFlops(what)) {
  for (int64_t before = 0; before < stage; ++before)
    out.firstLayer += layersOfStage(what.shape, plan, before);
  int64_t layers = std::max<int64_t>(1, layersOfStage(what.shape, plan, stage) / plan.interleave);
  out.layers.resize(layers);
  forward.resize(layers);
  backward.resize(layers);
}

uint32_t StageStreams::streamOf(llvm::StringRef name) {
  auto at = llvm::find(out.streams, name);
  uint32_t index = at - out.streams.begin();
  if (at == out.streams.end()) {
    out.streams.push_back(name.str());
    last.emplace_back();
  }
  return index;
}

void StageStreams::push(Command command, SimCommand::Kind kind, double seconds, uint32_t event) {
  command.segment = segment;
  commands.push_back({kind, command.stream, seconds, 0, event});
  out.commands.push_back(std::move(command));
}

void StageStreams::wait(uint32_t stream, SchedulePoint point) {
  if (point.event != 0 && point.stream != stream)
    push({"wait", "", "", stream, "wait"}, SimCommand::Kind::Wait, 0, point.event);
}

SchedulePoint StageStreams::record(uint32_t stream) {
  push({"record", "", "", stream, "record"}, SimCommand::Kind::Record, 0, ++events);
  return last[stream] = {stream, events};
}

SchedulePoint StageStreams::add(llvm::StringRef stream, const char *kind, const std::string &name,
                                const std::string &layer, double seconds,
                                std::initializer_list<SchedulePoint> after, double flops) {
  using Kind = SimCommand::Kind;
  Command command{name, layer, "", streamOf(stream), kind};
  command.flops = flops;
  for (SchedulePoint point : after)
    wait(command.stream, point);
  push(command,
       llvm::StringSwitch<Kind>(kind)
           .Case("collective", Kind::Collective)
           .Case("copy", stream == "to_host" ? Kind::ToHost : Kind::ToDevice)
           .Case("storage", Kind::Storage)
           .Default(Kind::Compute),
       seconds, 0);
  return record(command.stream);
}

void StageStreams::join() {
  for (SchedulePoint point : std::vector<SchedulePoint>(last))
    wait(0, point);
}

StageSimulation StageStreams::finish() {
  // Compute stands still for what ends the step, and the picture ends when all has.
  join();
  cost::Simulation simulation = simulate(commands, static_cast<uint32_t>(out.streams.size()));
  out.seconds = simulation.seconds;
  out.busySeconds = simulation.busySeconds;
  out.reached.assign(commands.size() + 1, simulation.seconds);
  for (size_t index = commands.size(); index-- > 0;) {
    out.commands[index].begin = simulation.spans[index].begin;
    out.commands[index].end = simulation.spans[index].end;
    out.reached[index] =
        out.commands[index].stream == 0 ? simulation.spans[index].begin : out.reached[index + 1];
  }
  return std::move(out);
}

/// A layer's parameters come from the ranks that share them out, or from the host or storage. Nothing where
/// the rank has them.
SchedulePoint StageSimulator::addGather(int64_t layer, SchedulePoint slotFree) {
  bool device = plan.parameterHome == config::Home::Device;
  if (plan.zeroStage < 3 || (dataRanks == 1 && device))
    return {};
  double own =
      layerParameters * static_cast<double>(cost::bytesOf(plan.dtype)) / static_cast<double>(dataRanks);
  const cost::Rates &rates = what.rates;
  double seconds = rates.collectiveSeconds(cost::Collective::AllGather, own, rates.group(dataRanks, plan.tp));
  int64_t sharing = std::min(plan.ranks(), rates.cluster().devicesPerNode);
  if (!device)
    seconds = std::max(seconds, rates.hostCopySeconds(own, sharing));
  if (plan.parameterHome == config::Home::Nvme)
    seconds = std::max(seconds, rates.storageReadSeconds(own, sharing));
  return dataRanks > 1
             ? streams.add("gather", "collective", "all_gather", out.layerName(layer), seconds, {slotFree})
             : streams.add("gather", "copy", "parameters to the device", out.layerName(layer), seconds,
                           {slotFree});
}

void StageSimulator::addForward() {
  for (int64_t layer = 0; layer < static_cast<int64_t>(out.layers.size()); ++layer) {
    out.layers[layer].forward = streams.now();
    SchedulePoint here = addGather(layer, layer >= 2 ? forward[layer - 2] : SchedulePoint());
    forward[layer] = chain = streams.add("compute", "compute", "forward", out.layerName(layer),
                                         step.layer.forward, {here, chain}, forwardFlops);
    if (step.layer.forwardExchange > 0)
      chain = streams.add("exchange", "collective", "tensor exchange", out.layerName(layer),
                          step.layer.forwardExchange, {chain});
  }
  addTransfer(stage + 1 < plan.pp, "activations to the next stage");
}

static double termSeconds(const cost::StepEstimate &step, llvm::StringRef name) {
  double seconds = 0;
  for (const cost::Term &term : step.terms)
    seconds += term.name == name ? term.seconds : 0;
  return seconds;
}

void StageSimulator::addTransfer(bool hasNeighbour, const char *name) {
  double seconds =
      termSeconds(step, "pipeline transfers") / static_cast<double>(2 * plan.accumulation * plan.interleave);
  if (hasNeighbour && seconds > 0)
    streams.add("pipeline", "collective", name, "", seconds, {chain});
}

/// The layer's gradients go to the ranks that keep them.
void StageSimulator::addReduction(int64_t layer) {
  if (dataRanks == 1)
    return;
  double bytes = layerParameters * static_cast<double>(cost::bytesOf(plan.gradientDtype));
  bool scatter = plan.zeroStage >= 1;
  double seconds = what.rates.collectiveSeconds(
      scatter ? cost::Collective::ReduceScatter : cost::Collective::AllReduce,
      scatter ? bytes / static_cast<double>(dataRanks) : bytes, what.rates.group(dataRanks, plan.tp));
  streams.add("reduce", "collective", scatter ? "reduce_scatter" : "all_reduce", out.layerName(layer),
              seconds, {backward[layer]});
}

void StageSimulator::addBackward() {
  streams.segment = "backward";
  out.logits = streams.now();
  double logits = termSeconds(step, "logits") / static_cast<double>(plan.accumulation);
  if (stage == plan.pp - 1 && logits > 0)
    chain = streams.add("compute", "compute", "logits and loss", "", logits, {chain});
  auto layers = static_cast<int64_t>(out.layers.size());
  for (int64_t layer = layers; layer-- > 0;) {
    out.layers[layer].backward = streams.now();
    // The forward pass leaves the last two gathered.
    SchedulePoint here = layer + 2 < layers ? addGather(layer, backward[layer + 2]) : SchedulePoint();
    if (step.layer.recompute > 0)
      chain = streams.add("compute", "compute", "recompute", out.layerName(layer), step.layer.recompute,
                          {here, chain});
    backward[layer] = chain = streams.add("compute", "compute", "backward", out.layerName(layer),
                                          step.layer.backward, {here, chain}, 2 * forwardFlops);
    out.layers[layer].end = streams.now();
    addReduction(layer);
    if (step.layer.backwardExchange > 0)
      chain = streams.add("exchange", "collective", "tensor exchange", out.layerName(layer),
                          step.layer.backwardExchange, {chain});
  }
  addTransfer(stage > 0, "gradients to the stage before");
}

/// Whether the passes show a term already, or no picture of one micro-batch can.
static bool isInPasses(llvm::StringRef term, int64_t zeroStage) {
  if (term == "parameter gathers")
    return zeroStage == 3;
  return llvm::is_contained({"forward", "backward", "recompute", "framework's launches", "tensor exchange",
                             "logits", "pipeline transfers", "pipeline bubble", "gradient reduction",
                             "gathers and reductions of the backward pass"},
                            term);
}

/// The terms that end the step, one after the other, when all of the passes is done.
void StageSimulator::addEnd() {
  streams.segment = "end of the step";
  out.passesEnd = streams.now();
  streams.join();
  chain = streams.record(0);
  for (const cost::Term &term : step.terms) {
    llvm::StringRef name = term.name;
    if (isInPasses(name, plan.zeroStage) || term.seconds <= 0)
      continue;
    bool exchanges = name.contains("gather") || name.contains("reduction") || name.contains("exchange");
    auto [stream, kind] = name.starts_with("update")       ? std::pair("compute", "compute")
                          : name.contains("storage")       ? std::pair("storage", "storage")
                          : exchanges                      ? std::pair("gather", "collective")
                          : name.contains("to the device") ? std::pair("to_device", "copy")
                                                           : std::pair("to_host", "copy");
    chain = streams.add(stream, kind, term.name, "", term.seconds, {chain});
  }
}

StageSimulation StageSimulator::run() {
  streams.streamOf("compute");
  addForward();
  addBackward();
  addEnd();
  return streams.finish();
}

StageSimulation ds::planner::simulateStage(const AnalyticCase &what, const cost::StepEstimate &step,
                                           int64_t stage) {
  return StageSimulator(what, step, stage).run();
}
