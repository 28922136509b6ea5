//===- Stages.cpp - Which part of a program a rank runs, and whom it meets -----===//
#include "Stages.h"
#include "ds/Runtime/Program/Groups.h"
#include "ds/Runtime/Program/Messages.h"

#include <algorithm>
#include <utility>

namespace ds::rt {

uint32_t numStages(const Program &program) { return program.mesh.size(program.stageAxes); }

uint32_t stageOf(const Program &program, uint32_t rank) {
  return program.mesh.position(rank, program.stageAxes);
}

uint32_t stageWithin(const Program &program, uint32_t rank) {
  return program.stages.size() > 1 ? stageOf(program, rank) : 0;
}

StageGrid::StageGrid(const Program &program) : mesh(program.mesh) {
  std::vector<MeshAxis> list;
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
    if (program.stageAxes.has(axis)) {
      axes.push_back(axis);
      list.push_back(mesh.axes()[axis]);
    }
  grid = Mesh(std::move(list));
}

AxisSet StageGrid::along(AxisSet given) const {
  AxisSet set;
  for (unsigned i = 0; i < axes.size(); ++i)
    if (given.has(axes[i]))
      set.add(i);
  return set;
}

uint32_t StageGrid::meeting(uint32_t stage, AxisSet given, uint32_t position) const {
  const AxisSet set = along(given);
  std::vector<uint32_t> coordinates = grid.coordinates(stage);
  for (unsigned axis = 0; axis < grid.numAxes(); ++axis)
    if (set.has(axis))
      coordinates[axis] = position / grid.stride(axis, set) % grid.axes()[axis].size;
  return grid.rankAt(coordinates);
}

uint32_t StageGrid::firstRank(uint32_t stage) const {
  std::vector<uint32_t> coordinates(mesh.numAxes());
  for (unsigned i = 0; i < axes.size(); ++i)
    coordinates[axes[i]] = grid.coordinate(stage, i);
  return mesh.rankAt(coordinates);
}

namespace {

/// Drops the entries of other stages.
template <class Entry>
void keepStage(std::vector<Entry> &entries, uint32_t stage) {
  std::erase_if(entries, [stage](const Entry &entry) { return entry.stage != stage; });
  for (Entry &entry : entries)
    entry.stage = 0;
}

/// Drops the segments of other stages with their commands; returns the new numbers of those that stay.
std::vector<uint32_t> keepSegments(Program &program, uint32_t stage) {
  std::vector<uint32_t> numbers(program.segments.size());
  std::vector<Segment> segments;
  std::vector<Command> commands;
  for (size_t i = 0; i < program.segments.size(); ++i) {
    Segment &segment = program.segments[i];
    numbers[i] = static_cast<uint32_t>(segments.size());
    if (segment.stage != stage)
      continue;
    const auto first = program.commands.begin() + segment.firstCommand;
    segment.firstCommand = static_cast<uint32_t>(commands.size());
    commands.insert(commands.end(), first, first + segment.numCommands);
    segments.push_back(std::move(segment));
  }
  program.segments = std::move(segments);
  program.commands = std::move(commands);
  return numbers;
}

} // namespace

Program takeStage(Program program, uint32_t stage) {
  if (program.stages.size() == 1)
    return program;
  const std::vector<uint32_t> numbers = keepSegments(program, stage);
  keepStage(program.segments, stage);
  keepStage(program.states, stage);
  keepStage(program.inputs, stage);
  keepStage(program.outputs, stage);
  keepStage(program.lifetimes, stage);
  for (Lifetime &lifetime : program.lifetimes)
    if (lifetime.segment != Lifetime::kWholeStep)
      lifetime.segment = numbers[lifetime.segment];
  Stage own = std::move(program.stages[stage]);
  for (ScheduleEntry &entry : own.schedule)
    entry.segment = numbers[entry.segment];
  if (own.evaluation >= 0)
    own.evaluation = static_cast<int32_t>(numbers[static_cast<size_t>(own.evaluation)]);
  program.stages.assign(1, std::move(own));
  return program;
}

bool isMessage(const Program &program, const Command &command) {
  return command.kind == CommandKind::Collective &&
         traitsOf(program.collectives[command.callee].kind).isMessage;
}

/// Counts down to 0 from the first message on: a command belongs to the one before that counts one more.
Exchange exchangeOf(const Program &program, uint32_t index) {
  const auto behind = [&](uint32_t command) { return behindOf(program, program.commands[command]); };
  uint32_t first = index;
  while (first > 0 && isMessage(program, program.commands[first - 1]) &&
         behind(first - 1) == behind(first) + 1)
    --first;
  return {first, behind(first) + 1};
}

std::vector<std::optional<uint32_t>> channelsOf(const Program &program) {
  std::vector<std::optional<uint32_t>> channels(program.streams.size());
  uint32_t count = 1;
  for (const GroupUse &use : groupsOf(program)) {
    std::optional<uint32_t> &channel = channels[use.stream];
    if (!channel)
      channel = program.streams[use.stream] == StreamKind::Compute ? 0 : count++;
  }
  return channels;
}

uint32_t numChannels(const Program &program) {
  uint32_t count = 1;
  for (const std::optional<uint32_t> &channel : channelsOf(program))
    count = std::max(count, channel.value_or(0) + 1);
  return count;
}

} // namespace ds::rt
