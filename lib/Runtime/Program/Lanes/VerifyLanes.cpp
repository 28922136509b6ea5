//===- VerifyLanes.cpp - What runs beside what else in a step -----------------------===//
//
// A lane other than the computing one is a single stream with collectives alone: one thread, or one queue,
// can run it, and the streams of the computing lane meet at the ends of segments without it.
//
//===---------------------------------------------------------------------------===//
#include "Program/Execution.h"
#include "Program/Verify.h"

#include <algorithm>

namespace ds::rt {
namespace {

StreamKind streamOf(Lane lane) { return lane == Lane::Transfer ? StreamKind::Transfer : StreamKind::Gather; }

/// All commands of a transfer are messages, all of a move collectives, on one stream of the lane's kind.
Status verifyCommands(const Program &p, const Segment &segment) {
  const Lane lane = laneOf(segment.work);
  if (lane == Lane::Compute)
    return {};
  for (uint32_t i = segment.firstCommand; i < segment.firstCommand + segment.numCommands; ++i) {
    const Command &c = p.commands[i];
    if (c.kind != CommandKind::Collective || isMessage(p, c) != (lane == Lane::Transfer))
      return refuse("{} of '{}', which is a {}, is no {}", describeCommand(p, i), segment.name, spell(lane),
                    lane == Lane::Transfer ? "message" : "collective");
    if (p.streams[c.stream] != streamOf(lane) || c.stream != p.commands[segment.firstCommand].stream)
      return refuse("{} of '{}', which is a {}, runs on stream {} of kind {}, expected one stream of kind {}",
                    describeCommand(p, i), segment.name, spell(lane), c.stream, spell(p.streams[c.stream]),
                    spell(streamOf(lane)));
  }
  return {};
}

/// Entries wait for executions that stand before them, of other lanes.
Status verifyWaits(const Program &p, uint32_t stage) {
  LaneCounts before = {};
  const std::vector<ScheduleEntry> &schedule = p.stages[stage].schedule;
  for (size_t i = 0; i < schedule.size(); ++i) {
    const Segment &segment = p.segments[schedule[i].segment];
    const auto own = static_cast<size_t>(laneOf(segment.work));
    for (size_t lane = 0; lane < kNumLanes; ++lane) {
      const uint32_t count = schedule[i].after[lane];
      if (lane == own && count != 0)
        return refuse("schedule[{}] '{}' waits for {} executions of its own lane", i, segment.name, count);
      if (count > before[lane])
        return refuse("schedule[{}] '{}' waits for {} executions of the {} lane, but {} stand before it", i,
                      segment.name, count, spell(Lane(lane)), before[lane]);
    }
    before[own] += schedule[i].count;
  }
  return {};
}

/// A stream runs in order: it belongs to one lane of a step.
Status verifyStreams(const Program &p, uint32_t stage) {
  std::vector<const Segment *> users(p.streams.size());
  std::vector<bool> seen(p.segments.size());
  for (const ScheduleEntry &entry : p.stages[stage].schedule) {
    const Segment &segment = p.segments[entry.segment];
    if (seen[entry.segment])
      continue;
    seen[entry.segment] = true;
    for (uint32_t i = segment.firstCommand; i < segment.firstCommand + segment.numCommands; ++i) {
      const Segment *&user = users[p.commands[i].stream];
      if (!user)
        user = &segment;
      if (laneOf(user->work) != laneOf(segment.work))
        return refuse("stream {} runs '{}' of the {} lane and '{}' of the {} lane, expected one lane",
                      p.commands[i].stream, user->name, spell(laneOf(user->work)), segment.name,
                      spell(laneOf(segment.work)));
    }
  }
  return {};
}

/// A lane other than the computing one is a single stream.
Status verifySingle(const Program &p, uint32_t stage) {
  const Segment *first[kNumLanes] = {};
  for (const ScheduleEntry &entry : p.stages[stage].schedule) {
    const Segment &segment = p.segments[entry.segment];
    const Lane lane = laneOf(segment.work);
    if (lane == Lane::Compute || segment.numCommands == 0)
      continue;
    const Segment *&other = first[static_cast<size_t>(lane)];
    if (!other)
      other = &segment;
    const uint32_t expected = p.commands[other->firstCommand].stream,
                   stream = p.commands[segment.firstCommand].stream;
    if (stream != expected)
      return refuse("'{}' of the {} lane runs on stream {}, but '{}' on stream {}", segment.name, spell(lane),
                    stream, other->name, expected);
  }
  return {};
}

Status verifyStage(const Program &p, uint32_t stage) {
  if (Status status = verifyWaits(p, stage); !status)
    return status;
  const bool hasLanes = std::ranges::any_of(p.stages[stage].schedule, [&](const ScheduleEntry &entry) {
    return laneOf(p.segments[entry.segment].work) != Lane::Compute;
  });
  if (!hasLanes)
    return {};
  if (Status status = verifyStreams(p, stage); !status)
    return status;
  if (Status status = verifySingle(p, stage); !status)
    return status;
  return verifyLaneAccesses(p, stage);
}

} // namespace

Status verifyLanes(const Program &p) {
  for (const Segment &segment : p.segments)
    if (Status status = verifyCommands(p, segment); !status)
      return status;
  for (uint32_t stage = 0; stage < p.stages.size(); ++stage)
    if (Status status = verifyStage(p, stage); !status)
      return refuse("{}{}", describeStage(p, stage), status.error().message);
  return {};
}

} // namespace ds::rt
