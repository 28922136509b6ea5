//===- VerifySchedule.cpp - What is done when, and whether it makes a step -----===//
//
// The schedule is played through: for each chunk and micro-batch a mask says what has been done. Its length
// is bounded before, so that whatever a file says is soon refused or accepted.
//
//===---------------------------------------------------------------------------===//
#include "Execution.h"
#include "Verify.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace ds::rt {
namespace {

constexpr uint32_t kMaxChunks = 256;
constexpr uint64_t kMaxExecutions = uint64_t(1) << 24;
constexpr WorkSet kBackwards{Work::Backward, Work::InputGradient, Work::WeightGradient};
constexpr WorkSet kMakesGradients{Work::Backward, Work::WeightGradient};

/// What must not have been done for a micro-batch when `work` is: itself, and what it is a part or a whole
/// of. Of a backward in parts the input's gradient comes first: that of the weights may wait.
WorkSet excludedBy(Work work) {
  if (work == Work::WeightGradient)
    return kMakesGradients;
  return work == Work::Forward ? WorkSet{Work::Forward} : kBackwards;
}

class SchedulePlayer {
public:
  SchedulePlayer(const Program &program, uint32_t stage)
      : program(program), stage(stage), schedule(program.stages[stage].schedule) {}

  Status run() {
    for (size_t i = 0; i < schedule.size(); ++i) {
      if (Status status = checkEntry(i); !status)
        return status;
      if (Status status = checkGradients(i); !status)
        return status;
      const ScheduleEntry &entry = schedule[i];
      for (uint32_t m = entry.firstMicroBatch; m < entry.firstMicroBatch + entry.count; ++m)
        if (Status status = play(i, m); !status)
          return status;
    }
    return checkEnd();
  }

private:
  /// What a step has done so far for the layers of one chunk.
  struct Chunk {
    std::vector<WorkSet> done; ///< by micro-batch
    bool hasGradients = false, leavesOut = false, isReduced = false;
  };

  const Segment &segmentOf(const ScheduleEntry &entry) const { return program.segments[entry.segment]; }
  Chunk &chunkOf(const Segment &segment) {
    Chunk &chunk = chunks[segment.chunk];
    chunk.done.resize(program.accumulation);
    return chunk;
  }

  Status checkEntry(size_t i) const {
    const ScheduleEntry &entry = schedule[i];
    if (entry.segment >= program.segments.size())
      return refuse("schedule[{}] runs segment {} of {}", i, entry.segment, program.segments.size());
    const Segment &segment = segmentOf(entry);
    if (segment.stage != stage)
      return refuse("schedule[{}] runs '{}' of stage {}", i, segment.name, segment.stage);
    if (segment.work.has(Work::Evaluation))
      return refuse("schedule[{}] runs '{}', which is for evaluation", i, segment.name);
    if (isUpdated)
      return refuse("schedule[{}] runs '{}' after the update", i, segment.name);
    if (entry.count < 1 || !inRange(entry.firstMicroBatch, entry.count, program.accumulation))
      return refuse("schedule[{}] runs '{}' {} times from micro-batch {} on, but there are {}", i,
                    segment.name, entry.count, entry.firstMicroBatch, program.accumulation);
    if (segment.work.has(Work::Update) && entry.count != 1)
      return refuse("schedule[{}] runs the update '{}' {} times, expected once", i, segment.name,
                    entry.count);
    return {};
  }

  /// A segment is one list of commands: it cannot do now this with gradients and now that.
  Status checkGradients(size_t i) {
    const ScheduleEntry &entry = schedule[i];
    const Segment &segment = segmentOf(entry);
    if (!isKnown(entry.gradients, Gradients::Add))
      return refuse("schedule[{}] does {} with gradients, the last known is {}", i, int(entry.gradients),
                    int(Gradients::Add));
    const bool makes = segment.work.hasAny(kMakesGradients);
    if (entry.gradients != Gradients::None && !makes)
      return refuse("schedule[{}] has gradients '{}', but '{}' makes none", i, spell(entry.gradients),
                    segment.name);
    if (entry.reduces && !makes && !segment.work.has(Work::Update))
      return refuse("schedule[{}] reduces gradients, but '{}' neither makes any nor updates", i,
                    segment.name);
    const auto [first, isNew] = firstEntries.emplace(entry.segment, i);
    const ScheduleEntry &before = schedule[first->second];
    if (before.gradients != entry.gradients || before.reduces != entry.reduces)
      return refuse("schedule[{}] and schedule[{}] run '{}', but do not do the same with gradients",
                    first->second, i, segment.name);
    return {};
  }

  Status play(size_t i, uint32_t microBatch) {
    const ScheduleEntry &entry = schedule[i];
    const Segment &segment = segmentOf(entry);
    for (Work work : {Work::Forward, Work::Backward, Work::InputGradient, Work::WeightGradient})
      if (segment.work.has(work))
        if (Status status = playWork(i, microBatch, work); !status)
          return status;
    if (segment.work.hasAny(kMakesGradients))
      if (Status status = playGradients(i, microBatch); !status)
        return status;
    if (segment.work.has(Work::Transfer) && !transferred.emplace(entry.segment, microBatch).second)
      return refuse("schedule[{}] runs '{}' for micro-batch {} a second time", i, segment.name, microBatch);
    if (!segment.work.has(Work::Update))
      return {};
    isUpdated = true;
    for (const auto &[number, chunk] : chunks)
      if (chunk.hasGradients && !chunk.isReduced && !entry.reduces)
        return refuse("schedule[{}] updates before the gradients of chunk {} are reduced", i, number);
    return {};
  }

  Status playWork(size_t i, uint32_t microBatch, Work work) {
    const Segment &segment = segmentOf(schedule[i]);
    WorkSet &done = chunkOf(segment).done[microBatch];
    if (done.hasAny(excludedBy(work)))
      return refuse("schedule[{}] runs the {} of chunk {} for micro-batch {}, but {} are done", i,
                    spell(work), segment.chunk, microBatch, spell(done));
    if (work != Work::Forward && !done.has(Work::Forward))
      return refuse("schedule[{}] runs the {} of chunk {} for micro-batch {} before its forward", i,
                    spell(work), segment.chunk, microBatch);
    done.add(work);
    return {};
  }

  Status playGradients(size_t i, uint32_t microBatch) {
    const ScheduleEntry &entry = schedule[i];
    const uint32_t number = segmentOf(entry).chunk;
    Chunk &chunk = chunkOf(segmentOf(entry));
    if (chunk.isReduced)
      return refuse("schedule[{}] makes gradients of chunk {} after they are reduced", i, number);
    if (entry.gradients == Gradients::Set && chunk.hasGradients)
      return refuse("schedule[{}] sets the gradients of chunk {} a second time, for micro-batch {}", i,
                    number, microBatch);
    if (entry.gradients == Gradients::Add && !chunk.hasGradients)
      return refuse("schedule[{}] adds to the gradients of chunk {} before they are set", i, number);
    (entry.gradients == Gradients::None ? chunk.leavesOut : chunk.hasGradients) = true;
    if (chunk.leavesOut && chunk.hasGradients)
      return refuse("schedule[{}]: the gradients of chunk {} have those of some micro-batches only", i,
                    number);
    chunk.isReduced = entry.reduces;
    return {};
  }

  Status checkEnd() const {
    if (!isUpdated)
      return refuse("the schedule of {} entries has no update", schedule.size());
    if (chunks.empty())
      return refuse("the schedule forwards no micro-batch");
    for (const auto &[number, chunk] : chunks)
      for (uint32_t m = 0; m < program.accumulation; ++m)
        if (!chunk.done[m].has(Work::Forward) || chunk.done[m] != chunk.done[0])
          return refuse(
              "the schedule runs {} of chunk {} for micro-batch {}, but {} for micro-batch 0, of {}",
              spell(chunk.done[m]), number, m, spell(chunk.done[0]), program.accumulation);
    return {};
  }

  const Program &program;
  const uint32_t stage;
  const std::vector<ScheduleEntry> &schedule;
  std::map<uint32_t, Chunk> chunks;
  std::map<uint32_t, size_t> firstEntries;             ///< by segment
  std::set<std::pair<uint32_t, uint32_t>> transferred; ///< segments, and micro-batches
  bool isUpdated = false;
};

Status verifyWork(const Program &p, size_t i) {
  const Segment &s = p.segments[i];
  constexpr uint32_t kKnown = (uint32_t(1) << (static_cast<unsigned>(kLastWork) + 1)) - 1;
  if (const uint32_t unknown = s.work.bits() & ~kKnown; unknown != 0)
    return refuse("segments[{}] '{}' does work {:#x} beside {}, but this ds-run knows no more than {}", i,
                  s.name, unknown, spell(s.work), spell(WorkSet::fromBits(kKnown)));
  const bool hasOne = (s.work.bits() & (s.work.bits() - 1)) == 0;
  if (s.work == WorkSet() || (s.work.hasAny({Work::Evaluation, Work::Transfer, Work::Move}) && !hasOne))
    return refuse("segments[{}] '{}' does {}, expected some work, and evaluation, transfer and move alone", i,
                  s.name, spell(s.work));
  if (s.stage >= p.stages.size())
    return refuse("segments[{}] '{}' belongs to stage {} of {}", i, s.name, s.stage, p.stages.size());
  if (s.chunk >= kMaxChunks)
    return refuse("segments[{}] '{}' belongs to chunk {}, the limit is {}", i, s.name, s.chunk, kMaxChunks);
  return {};
}

} // namespace

/// Segments are disjoint windows of the commands.
Status verifySegments(const Program &p) {
  std::vector<std::pair<uint64_t, uint64_t>> windows;
  for (size_t i = 0; i < p.segments.size(); ++i) {
    const Segment &s = p.segments[i];
    if (!inRange(s.firstCommand, s.numCommands, p.commands.size()))
      return refuse("segments[{}] '{}' has commands {} to {} of {}", i, s.name, s.firstCommand,
                    uint64_t(s.firstCommand) + s.numCommands, p.commands.size());
    if (Status status = verifyWork(p, i); !status)
      return status;
    windows.emplace_back(s.firstCommand, uint64_t(s.firstCommand) + s.numCommands);
  }
  std::sort(windows.begin(), windows.end());
  for (size_t i = 1; i < windows.size(); ++i)
    if (windows[i].first < windows[i - 1].second)
      return refuse("two segments share command {}", windows[i].first);
  return {};
}

/// Of one stage, or nothing: held-out data go through all stages.
static Status verifyEvaluation(const Program &p, uint32_t stage) {
  const int32_t segment = p.stages[stage].evaluation;
  if ((segment == -1) != (p.stages[0].evaluation == -1))
    return refuse("has {} evaluation segment, but stage 0 has {}", segment == -1 ? "no" : "an",
                  segment == -1 ? "one" : "none");
  if (segment == -1)
    return {};
  if (segment < 0 || uint64_t(segment) >= p.segments.size() ||
      !p.segments[segment].work.has(Work::Evaluation) || p.segments[segment].stage != stage)
    return refuse("evaluation segment {} of {} does not exist, does other work or is another stage's",
                  segment, p.segments.size());
  return {};
}

/// Of programs of one stage: nobody else has a part in the rows that are asked for.
static Status verifyLogits(const Program &p, uint32_t stage) {
  const LogitsEntry &entry = p.stages[stage].logits;
  if (entry.segment == -1)
    return {};
  if (p.stages.size() > 1)
    return refuse("has an entry for logits, but the program has {} stages", p.stages.size());
  if (entry.segment < 0 || uint64_t(entry.segment) >= p.segments.size() ||
      entry.segment == p.stages[stage].evaluation ||
      !p.segments[static_cast<size_t>(entry.segment)].work.has(Work::Evaluation))
    return refuse("the segment {} of {} for logits does not exist, does other work or is the evaluation",
                  entry.segment, p.segments.size());
  for (const auto &[buffer, name, dtype, rank] :
       {std::tuple(entry.rows, "rows", DType::I64, 1U), {entry.logits, "logits", DType::F32, 2U}}) {
    if (buffer >= p.buffers.size())
      return refuse("the {} of the entry for logits are buffer {} of {}", name, buffer, p.buffers.size());
    const Buffer &b = p.buffers[buffer];
    if (b.dtype != dtype || b.shape.size() != rank || b.shape[0] != int64_t(p.microBatch) ||
        b.space != Space::Device || !isContiguous(b) || !b.axisStrides.empty() || b.slots != 1)
      return refuse("the {} of the entry for logits are buffers[{}], expected packed {} of rank {} on the "
                    "device, one row for each of {} samples",
                    name, buffer, spell(dtype), rank, p.microBatch);
  }
  return {};
}

/// Segments that update and are not scheduled make what a step has left: none or two, of programs of one
/// stage. One does what the first of the schedule does, for one micro-batch, the other nothing else.
static Status verifyLate(const Program &p) {
  const auto &[rotated, flushes] = lateSegmentsOf(p);
  if (rotated.empty() && flushes.empty())
    return {};
  const Segment &late = p.segments[rotated.empty() ? flushes[0] : rotated[0]];
  if (p.stages.size() > 1)
    return refuse("'{}' updates and is not scheduled, but the program has {} stages", late.name,
                  p.stages.size());
  if (rotated.size() != 1 || flushes.size() != 1)
    return refuse("{} segments that update among else are not scheduled, and {} that do nothing else, "
                  "expected one of each where '{}' is there",
                  rotated.size(), flushes.size(), late.name);
  const ScheduleEntry &first = p.stages[0].schedule.front();
  const Segment &replaced = p.segments[first.segment];
  WorkSet works = replaced.work;
  works.add(Work::Update);
  if (late.work != works || late.chunk != replaced.chunk || first.count != 1)
    return refuse("'{}', which is not scheduled, does {} in the place of {} runs of '{}', which does {}",
                  late.name, spell(late.work), first.count, replaced.name, spell(replaced.work));
  return {};
}

Status verifySchedules(const Program &p) {
  uint64_t executions = 0;
  for (const Stage &stage : p.stages)
    for (const ScheduleEntry &entry : stage.schedule)
      executions += entry.count;
  if (executions > kMaxExecutions)
    return refuse("the schedule has {} executions, the limit is {}", executions, kMaxExecutions);
  for (uint32_t stage = 0; stage < p.stages.size(); ++stage) {
    Status status = SchedulePlayer(p, stage).run();
    if (status)
      status = verifyEvaluation(p, stage);
    if (status)
      status = verifyLogits(p, stage);
    if (!status)
      return refuse("{}{}", describeStage(p, stage), status.error().message);
  }
  return verifyLate(p);
}

} // namespace ds::rt
