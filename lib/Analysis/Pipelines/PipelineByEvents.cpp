//===- PipelineByEvents.cpp - Pipelines made as they run ----------------------------------===//
//
// Time goes from one end of an entry to the next. A stage that is free takes, of what can begin, a backward
// before a forward, a chunk nearer to the loss before one that is farther, the oldest micro-batch first, and
// gradients of weights when there is nothing else. A forward begins only where memory is left for what one
// micro-batch needs on the stage until it is over: so the oldest that a stage keeps can always go on, and
// what it leaves behind serves the next.
//
//===---------------------------------------------------------------------------===//
#include "PipelineProgress.h"

#include <algorithm>

namespace ds::analysis {

namespace {

class EventSchedule {
public:
  EventSchedule(const PipelineProblem &problem, bool splits);
  /// Empty where a stage cannot keep one micro-batch.
  PipelineTable run();

private:
  /// What a stage has begun and keeps.
  struct Stage {
    std::vector<uint32_t> chunks; ///< the nearest to the loss first
    double free = 0;
    int64_t kept = 0, forOne = 0; ///< bytes: now, and that one micro-batch needs in all
  };
  /// Micro-batches of a chunk whose work is next.
  struct Next {
    uint32_t forward = 0, inputs = 0, weights = 0;
  };

  std::vector<PipelineEntry> offersOf(const Stage &stage) const;
  bool hasMemory(uint32_t number, const PipelineEntry &entry) const;
  bool begin(uint32_t number, double now);
  double nextEvent(double now) const;

  const PipelineProblem &problem;
  const bool splits;
  std::vector<Stage> stages;
  std::vector<Next> next;
  PipelineProgress progress;
  PipelineTable table;
};

} // namespace

EventSchedule::EventSchedule(const PipelineProblem &problem, bool splits)
    : problem(problem), splits(splits), stages(problem.stages), next(problem.chunks.size()),
      progress(problem), table(problem.stages) {
  for (uint32_t number = 0; number < problem.stages; ++number) {
    Stage &stage = stages[number];
    stage.chunks = problem.chunksOf(number);
    std::reverse(stage.chunks.begin(), stage.chunks.end());
    for (uint32_t chunk : stage.chunks)
      stage.forOne += problem.chunks[chunk].bytes;
  }
}

/// What `stage` could do next, the most urgent first.
std::vector<PipelineEntry> EventSchedule::offersOf(const Stage &stage) const {
  std::vector<PipelineEntry> offers;
  const auto offer = [&](PipelineWork work, uint32_t chunk, uint32_t microBatch) {
    if (microBatch < problem.microBatches)
      offers.push_back({work, chunk, microBatch});
  };
  for (uint32_t chunk : stage.chunks)
    offer(splits ? PipelineWork::InputGradient : PipelineWork::Backward, chunk, next[chunk].inputs);
  for (uint32_t chunk : stage.chunks)
    offer(PipelineWork::Forward, chunk, next[chunk].forward);
  if (splits)
    for (uint32_t chunk : stage.chunks)
      offer(PipelineWork::WeightGradient, chunk, next[chunk].weights);
  return offers;
}

/// Whether a forward may begin: with what the micro-batch may still need on this stage, unless it is the
/// oldest one here.
bool EventSchedule::hasMemory(uint32_t number, const PipelineEntry &entry) const {
  if (entry.work != PipelineWork::Forward || problem.budgetBytes.empty())
    return true;
  const Stage &stage = stages[number];
  bool isOldest = true;
  for (uint32_t chunk : stage.chunks)
    isOldest &= splits ? next[chunk].weights >= entry.microBatch : next[chunk].inputs >= entry.microBatch;
  const int64_t bytes = problem.chunks[entry.chunk].bytes;
  int64_t after = 0; // of the chunks behind this one
  for (uint32_t chunk : stage.chunks)
    after += chunk > entry.chunk ? problem.chunks[chunk].bytes : 0;
  return stage.kept + bytes + (isOldest ? 0 : after) <= problem.budgetOf(number);
}

/// Has a stage that is free begin what can begin now.
bool EventSchedule::begin(uint32_t number, double now) {
  Stage &stage = stages[number];
  for (const PipelineEntry &entry : offersOf(stage)) {
    if (progress.missingFor(entry) || progress.readyAt(entry) > now || !hasMemory(number, entry))
      continue;
    const PipelineChunk &chunk = problem.chunks[entry.chunk];
    Next &own = next[entry.chunk];
    own.forward += entry.work == PipelineWork::Forward;
    own.inputs += makesInputs(entry.work);
    own.weights += makesWeights(entry.work);
    stage.kept += entry.work == PipelineWork::Forward ? chunk.bytes
                  : makesWeights(entry.work)          ? -chunk.bytes
                                                      : 0;
    stage.free = now + secondsOf(chunk, entry.work);
    progress.finish(entry, stage.free);
    table[number].push_back(entry);
    return true;
  }
  return false;
}

/// The next time at which a stage is free or something arrives; `now` where nothing is under way.
double EventSchedule::nextEvent(double now) const {
  double event = now;
  const auto offer = [&](double at) {
    if (at > now && (event == now || at < event))
      event = at;
  };
  for (const Stage &stage : stages) {
    offer(stage.free);
    for (const PipelineEntry &entry : offersOf(stage))
      if (!progress.missingFor(entry))
        offer(progress.readyAt(entry));
  }
  return event;
}

PipelineTable EventSchedule::run() {
  for (uint32_t number = 0; number < problem.stages; ++number)
    if (stages[number].forOne > problem.budgetOf(number))
      return {};
  for (double now = 0, event = 0;; now = event) {
    for (bool isMoving = true; isMoving;) { // work that takes no time lets others begin
      isMoving = false;
      for (uint32_t number = 0; number < problem.stages; ++number)
        while (stages[number].free <= now && begin(number, now))
          isMoving = true;
    }
    event = nextEvent(now);
    if (event == now)
      return std::move(table);
  }
}

PipelineTable makeByEvents(const PipelineProblem &problem, bool splits) {
  return EventSchedule(problem, splits).run();
}

PipelineTable makeFastest(const PipelineProblem &problem) {
  bool isInOrder = true; // chunk c on stage c modulo the stages
  for (uint32_t chunk = 0; chunk < problem.chunks.size(); ++chunk)
    isInOrder &= problem.chunks[chunk].stage == chunk % problem.stages;
  std::vector<PipelineTable> all;
  if (isInOrder && problem.chunks.size() == problem.stages)
    all = {makeOneForwardOneBackward(problem), makeZeroBubble(problem)};
  else if (isInOrder)
    all = {makeInterleaved(problem)};
  all.push_back(makeByEvents(problem, false));
  all.push_back(makeByEvents(problem, true));
  all.push_back(makeGPipe(problem));
  PipelineTable fastest;
  double seconds = 0;
  for (PipelineTable &table : all) {
    if (!findMistake(problem, table).empty())
      continue;
    const double own = simulate(problem, table).seconds;
    if (fastest.empty() || own < seconds)
      seconds = own, fastest = std::move(table);
  }
  return fastest;
}

} // namespace ds::analysis
