//===- Execution.cpp - The executions that a schedule stands for ---------------===//
#include "Execution.h"

#include <algorithm>
#include <numeric>

namespace ds::rt {

/// Whether a segment computes with a micro-batch: an update alone does with what all of them have left.
static bool worksOnMicroBatch(const Segment &segment) {
  return segment.work != WorkSet{Work::Update} && laneOf(segment.work) == Lane::Compute;
}

std::vector<Execution> executionsOf(const Program &program) { return executionsOf(program, 0); }

std::vector<Execution> executionsOf(const Program &program, uint32_t stage) {
  std::vector<Execution> step;
  std::vector<bool> filled(program.accumulation, false);
  for (const ScheduleEntry &entry : program.stages[stage].schedule)
    for (uint32_t i = 0; i < entry.count; ++i) {
      Execution execution = executeAlone(program, entry.segment, entry.firstMicroBatch + i);
      execution.lane = laneOf(program.segments[entry.segment].work);
      if (i == 0)
        execution.after = entry.after;
      execution.fills = execution.fills && !filled[execution.microBatch];
      if (execution.fills)
        filled[execution.microBatch] = true;
      step.push_back(execution);
    }
  return step;
}

bool hasLanes(std::span<const Execution> step) {
  return std::ranges::any_of(step, [](const Execution &each) { return each.lane != Lane::Compute; });
}

LaneEvents::LaneEvents(std::span<const Execution> step) {
  for (const Execution &execution : step)
    for (unsigned lane = 0; lane < kNumLanes; ++lane)
      if (execution.after[lane] > 0)
        numbers.try_emplace({Lane(lane), execution.after[lane] - 1}, size());
}

std::optional<uint32_t> LaneEvents::of(Lane lane, uint32_t index) const {
  const auto found = numbers.find({lane, index});
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

LateSegments lateSegmentsOf(const Program &program) {
  std::vector<bool> isScheduled(program.segments.size());
  for (const Stage &stage : program.stages)
    for (const ScheduleEntry &entry : stage.schedule)
      isScheduled[entry.segment] = true;
  LateSegments late;
  for (uint32_t i = 0; i < program.segments.size(); ++i)
    if (const WorkSet work = program.segments[i].work; work.has(Work::Update) && !isScheduled[i])
      (worksOnMicroBatch(program.segments[i]) ? late.rotated : late.flushes).push_back(i);
  return late;
}

std::vector<Execution> lateExecutionsOf(const Program &program) {
  const LateSegments late = lateSegmentsOf(program);
  if (late.rotated.empty())
    return {};
  std::vector<Execution> step = executionsOf(program);
  step.front().segment = late.rotated.front();
  return step;
}

Execution executeAlone(const Program &program, uint32_t segment, uint32_t microBatch) {
  return {segment, microBatch, worksOnMicroBatch(program.segments[segment])};
}

/// The least common multiple, until it is known to be more than any program may ask for.
static uint64_t extendPeriod(uint64_t period, const Program &program, const Command &command) {
  const auto add = [&](uint32_t buffer) {
    if (period < UINT32_MAX)
      period = std::lcm(period, uint64_t(program.buffers[buffer].slots));
  };
  for (uint32_t k = 0; k < command.numOperands; ++k)
    add(program.operands[command.firstOperand + k]);
  if (command.workspace != UINT32_MAX)
    add(command.workspace);
  if (command.predicate != UINT32_MAX)
    add(command.predicate);
  return period;
}

uint64_t slotPeriod(const Program &program, const Command &command) {
  return extendPeriod(1, program, command);
}

uint64_t slotPeriod(const Program &program, Exchange exchange) {
  uint64_t period = 1;
  for (uint32_t i = exchange.first; i < exchange.end(); ++i)
    period = extendPeriod(period, program, program.commands[i]);
  return period;
}

uint32_t numBindings(const Program &program, uint32_t command) {
  Exchange bound{command, 1};
  if (isMessage(program, program.commands[command]))
    bound = exchangeOf(program, command);
  if (bound.first != command)
    return 1;
  return static_cast<uint32_t>(std::min<uint64_t>(slotPeriod(program, bound), program.accumulation));
}

} // namespace ds::rt
