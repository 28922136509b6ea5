//===- VerifyMeetings.cpp - What stages have with each other --------------------===//
//
// Stages run programs of their own, so that they meet is no matter of course. All of them are played through
// a step together, each doing one command after another: a stage stands at an exchange until all of its
// messages have met their other ends, and at a collective of several stages until all of these stand at it.
// Whatever order that gives is one in which ranks can run, and streams only take order away.
//
// The length of the play is bounded before, so that whatever a file says is soon refused or accepted.
//
//===---------------------------------------------------------------------------===//
#include "Stages.h"
#include "Verify.h"
#include "ds/Runtime/Program/Messages.h"

#include <deque>
#include <map>
#include <set>
#include <tuple>

namespace ds::rt {
namespace {

constexpr uint64_t kMaxMeetings = uint64_t(1) << 22;

/// Commands at which a segment's stage may stand: those of an exchange, or a collective.
struct Meeting {
  Exchange commands;
  bool isExchange;
};
using Meetings = std::vector<std::vector<Meeting>>; ///< by segment, in order

/// What the stages do in one go: a schedule for each, or one segment.
using Runs = std::vector<std::vector<ScheduleEntry>>; ///< by stage

/// The micro-batch that a transfer is for; segments of other work have messages of any.
std::optional<uint32_t> transferredBy(const Program &p, const ScheduleEntry &run, uint32_t round) {
  if (laneOf(p.segments[run.segment].work) != Lane::Transfer)
    return {};
  return run.firstMicroBatch + round;
}

const Collective &collectiveOf(const Program &p, uint32_t command) {
  return p.collectives[p.commands[command].callee];
}

/// "sends 'h' to rank 0", or what else a stage meets others for.
std::string describeMeeting(const Program &p, const StageGrid &grid, uint32_t stage, uint32_t command) {
  const Collective &c = collectiveOf(p, command);
  if (!traitsOf(c.kind).isMessage)
    return fmt::format("runs {} '{}'", spell(c.kind), c.name);
  const uint32_t partner = grid.meeting(stage, c.axes, partnerOf(p, p.commands[command]));
  return fmt::format("{} '{}' {} rank {}", c.kind == CollectiveKind::Send ? "sends" : "receives", c.name,
                     c.kind == CollectiveKind::Send ? "to" : "from", grid.firstRank(partner));
}

/// ", 32 of f32 along pp"
std::string sizeOf(const Program &p, uint32_t command) {
  const Collective &c = collectiveOf(p, command);
  return fmt::format(", {} of {} along {}", c.elements, spell(c.dtype), p.mesh.spell(c.axes));
}

/// What becomes of a meeting to which stage `missing` does not come.
std::string neverMet(const Program &p, const StageGrid &grid, uint32_t command, uint32_t missing) {
  const Collective &c = collectiveOf(p, command);
  if (!traitsOf(c.kind).isMessage)
    return fmt::format(", in which rank {} never takes part", grid.firstRank(missing));
  return c.kind == CollectiveKind::Send ? ", which never receives it" : ", which never sends it";
}

/// All stages in one play.
class StagePlayer {
public:
  StagePlayer(const Program &program, const StageGrid &grid, const Meetings &meetings, const Runs &runs)
      : p(program), grid(grid), meetings(meetings), runs(runs), places(grid.size()) {}

  std::optional<Mismeeting> run() {
    for (uint32_t stage = 0; stage < grid.size(); ++stage)
      ready.push_back(stage);
    while (!ready.empty()) {
      const uint32_t stage = ready.front();
      ready.pop_front();
      if (!skipToMeeting(stage))
        continue;
      const Meeting &meeting = frontOf(stage);
      if (auto mistake = meeting.isExchange ? post(stage, meeting) : arrive(stage, meeting))
        return mistake;
    }
    return checkEnd();
  }

private:
  /// Where a stage stands: the next meeting of a run, and what it lacks to go on.
  struct Place {
    size_t run = 0, meeting = 0;
    uint32_t round = 0;
    uint32_t lacks = 0; ///< messages of the exchange that have not met, or 1 at a collective
  };
  /// An end of a message that has not met the other one.
  struct End {
    uint32_t stage, command;
    std::optional<uint32_t> microBatch = {}; ///< that a transfer is for
  };
  using Way = std::tuple<uint32_t, uint32_t, uint32_t>;      ///< stream, sender, receiver
  using Together = std::tuple<uint32_t, uint32_t, uint32_t>; ///< stream, axes, first stage

  const Meeting &frontOf(uint32_t stage) const {
    const Place &at = places[stage];
    return meetings[runs[stage][at.run].segment][at.meeting];
  }
  bool isOver(uint32_t stage) const { return places[stage].run == runs[stage].size(); }

  /// Moves on to the next meeting where there is none; false at the end.
  bool skipToMeeting(uint32_t stage) {
    for (Place &at = places[stage]; !isOver(stage);) {
      const ScheduleEntry &run = runs[stage][at.run];
      if (at.meeting < meetings[run.segment].size())
        return true;
      at.meeting = 0;
      if (++at.round == run.count || meetings[run.segment].empty())
        ++at.run, at.round = 0;
    }
    return false;
  }

  /// One thing less that `stage` waits for.
  void settle(uint32_t stage) {
    if (--places[stage].lacks > 0)
      return;
    ++places[stage].meeting;
    ready.push_back(stage);
  }

  std::optional<Mismeeting> post(uint32_t stage, const Meeting &meeting) {
    places[stage].lacks = meeting.commands.count;
    const std::optional<uint32_t> microBatch =
        transferredBy(p, runs[stage][places[stage].run], places[stage].round);
    for (uint32_t command = meeting.commands.first; command < meeting.commands.end(); ++command)
      if (auto mistake = post({stage, command, microBatch}))
        return mistake;
    return {};
  }
  std::optional<Mismeeting> post(End end) {
    std::deque<End> &others = posted[wayOf(end)];
    if (others.empty() || isSend(others.front()) == isSend(end)) {
      others.push_back(end);
      return {};
    }
    const End other = others.front();
    others.pop_front();
    if (auto mistake = isSend(end) ? checkEnds(end, other) : checkEnds(other, end))
      return mistake;
    settle(other.stage);
    settle(end.stage);
    return {};
  }
  bool isSend(End end) const { return collectiveOf(p, end.command).kind == CollectiveKind::Send; }
  uint32_t partner(End end) const {
    return grid.meeting(end.stage, collectiveOf(p, end.command).axes, partnerOf(p, p.commands[end.command]));
  }
  Way wayOf(End end) const {
    const uint32_t other = partner(end), stream = p.commands[end.command].stream;
    return isSend(end) ? Way{stream, end.stage, other} : Way{stream, other, end.stage};
  }

  Mismeeting mistake(End end, const std::string &what) const {
    return {end.command, grid.firstRank(end.stage), describe(end) + what, std::nullopt, 0, ""};
  }
  Mismeeting mistake(End end, const std::string &what, End other, const std::string &ofOther) const {
    return {end.command,   grid.firstRank(end.stage),   describe(end) + what,
            other.command, grid.firstRank(other.stage), describe(other) + ofOther};
  }
  std::string describe(End end) const { return describeMeeting(p, grid, end.stage, end.command); }

  /// The two ends of a message say the same of it.
  std::optional<Mismeeting> checkEnds(End send, End receive) const {
    const Collective &given = collectiveOf(p, send.command), &wanted = collectiveOf(p, receive.command);
    if (given.name == wanted.name && given.elements == wanted.elements && given.dtype == wanted.dtype &&
        given.axes == wanted.axes)
      return send.microBatch && receive.microBatch && send.microBatch != receive.microBatch
                 ? std::optional(mistake(send, fmt::format(" for micro-batch {}", *send.microBatch), receive,
                                         fmt::format(" for micro-batch {}", *receive.microBatch)))
                 : std::nullopt;
    return mistake(send, sizeOf(p, send.command), receive, sizeOf(p, receive.command));
  }

  Together togetherOf(End end) const {
    const AxisSet axes = collectiveOf(p, end.command).axes;
    return {p.commands[end.command].stream, axes.bits(), grid.meeting(end.stage, axes, 0)};
  }
  std::optional<Mismeeting> arrive(uint32_t stage, const Meeting &meeting) {
    places[stage].lacks = 1;
    const End own{stage, meeting.commands.first};
    std::vector<End> &here = arrived[togetherOf(own)];
    if (!here.empty())
      if (auto mistake = checkSame(here.front(), own))
        return mistake;
    here.push_back(own);
    if (here.size() < grid.numMeeting(collectiveOf(p, own.command).axes))
      return {};
    for (const End &each : std::exchange(here, {}))
      settle(each.stage);
    return {};
  }
  /// Stages that meet run one collective.
  std::optional<Mismeeting> checkSame(End first, End other) const {
    const Collective &a = collectiveOf(p, first.command), &b = collectiveOf(p, other.command);
    const Command &left = p.commands[first.command], &right = p.commands[other.command];
    if (a.kind == b.kind && a.reduction == b.reduction && a.dtype == b.dtype && a.elements == b.elements &&
        (left.numParams == 0 || p.params[left.firstParam] == p.params[right.firstParam]))
      return {};
    return mistake(first, sizeOf(p, first.command), other, sizeOf(p, other.command));
  }

  /// What keeps `stage`, which is not over, from going on: its own end, and the stage that does not come.
  std::pair<End, uint32_t> obstacleOf(uint32_t stage) const {
    const Meeting &meeting = frontOf(stage);
    const End own{stage, meeting.commands.first};
    if (!meeting.isExchange) {
      const AxisSet axes = collectiveOf(p, own.command).axes;
      std::set<uint32_t> here;
      for (const End &each : arrived.at(togetherOf(own)))
        here.insert(each.stage);
      uint32_t missing = 0;
      while (here.count(grid.meeting(stage, axes, missing)) > 0)
        ++missing;
      return {own, grid.meeting(stage, axes, missing)};
    }
    for (uint32_t command = meeting.commands.first; command < meeting.commands.end(); ++command)
      for (const End &open : posted.at(wayOf({stage, command})))
        if (open.stage == stage && open.command == command)
          return {open, partner(open)};
    return {own, stage}; // not reached: an exchange lacks a message as long as it is not over
  }

  /// Follows who waits for whom from the first stage that is not over: to one that nobody will ever meet, or
  /// to one that waits for itself.
  std::optional<Mismeeting> checkEnd() const {
    uint32_t stage = 0;
    while (stage < grid.size() && isOver(stage))
      ++stage;
    if (stage == grid.size())
      return {};
    for (std::set<uint32_t> seen; seen.insert(stage).second;) {
      const auto [own, missing] = obstacleOf(stage);
      if (isOver(missing))
        return mistake(own, neverMet(p, grid, own.command, missing));
      stage = missing;
    }
    const auto [own, missing] = obstacleOf(stage);
    return mistake(own, " and never goes on", obstacleOf(missing).first, " before that");
  }

  const Program &p;
  const StageGrid &grid;
  const Meetings &meetings;
  const Runs &runs;
  std::vector<Place> places; ///< by stage
  std::deque<uint32_t> ready;
  std::map<Way, std::deque<End>> posted; ///< sends, or receives, in order
  std::map<Together, std::vector<End>> arrived;
};

std::vector<Meeting> meetingsOf(const Program &p, const StageGrid &grid, const Segment &segment) {
  std::vector<Meeting> found;
  for (uint32_t i = segment.firstCommand; i < segment.firstCommand + segment.numCommands; ++i) {
    if (p.commands[i].kind != CommandKind::Collective)
      continue;
    const bool isExchange = isMessage(p, p.commands[i]);
    if (!isExchange && grid.numMeeting(collectiveOf(p, i).axes) == 1)
      continue;
    found.push_back({isExchange ? exchangeOf(p, i) : Exchange{i, 1}, isExchange});
    i = found.back().commands.end() - 1;
  }
  return found;
}

/// A message that a stage would have with itself.
std::optional<Mismeeting> findOwnMessage(const Program &p, const StageGrid &grid, const Segment &segment) {
  for (uint32_t i = segment.firstCommand; i < segment.firstCommand + segment.numCommands; ++i)
    if (isMessage(p, p.commands[i]) &&
        grid.meeting(segment.stage, collectiveOf(p, i).axes, partnerOf(p, p.commands[i])) == segment.stage)
      return Mismeeting{i,
                        grid.firstRank(segment.stage),
                        describeMeeting(p, grid, segment.stage, i) + ", which is itself",
                        std::nullopt,
                        0,
                        ""};
  return {};
}

/// The command with which the stages come to too many meetings.
std::optional<Mismeeting> findTooMany(const StageGrid &grid, const Meetings &meetings, const Runs &runs) {
  uint64_t count = 0;
  for (uint32_t stage = 0; stage < grid.size(); ++stage)
    for (const ScheduleEntry &run : runs[stage])
      for (const Meeting &meeting : meetings[run.segment])
        if ((count += uint64_t(run.count) * meeting.commands.count) > kMaxMeetings)
          return Mismeeting{meeting.commands.first,
                            grid.firstRank(stage),
                            fmt::format("is the end of {} meetings of stages in one go, the limit is {}",
                                        count, kMaxMeetings),
                            std::nullopt,
                            0,
                            ""};
  return {};
}

/// Steps, and evaluations.
std::pair<Runs, Runs> runsOf(const Program &p) {
  Runs step(p.stages.size()), evaluation(p.stages.size());
  for (size_t stage = 0; stage < p.stages.size(); ++stage) {
    step[stage] = p.stages[stage].schedule;
    if (p.stages[stage].evaluation >= 0)
      evaluation[stage].push_back({static_cast<uint32_t>(p.stages[stage].evaluation)});
  }
  return {std::move(step), std::move(evaluation)};
}

Status verifyWhole(const Program &p, const Segment &segment) {
  for (uint32_t i = segment.firstCommand; i < segment.firstCommand + segment.numCommands; ++i) {
    if (!isMessage(p, p.commands[i]))
      continue;
    const Exchange exchange = exchangeOf(p, i);
    if (exchange.first < segment.firstCommand ||
        exchange.end() > uint64_t(segment.firstCommand) + segment.numCommands)
      return refuse("{} belongs to an exchange that is not wholly in segment '{}'", describeCommand(p, i),
                    segment.name);
    i = exchange.end() - 1;
  }
  return {};
}

} // namespace

std::optional<Mismeeting> findMismeeting(const Program &p) {
  const StageGrid grid(p);
  Meetings meetings;
  for (const Segment &segment : p.segments) {
    if (auto mistake = findOwnMessage(p, grid, segment))
      return mistake;
    meetings.push_back(meetingsOf(p, grid, segment));
  }
  const auto [step, evaluation] = runsOf(p);
  for (const Runs *runs : {&step, &evaluation}) {
    if (auto mistake = findTooMany(grid, meetings, *runs))
      return mistake;
    if (auto mistake = StagePlayer(p, grid, meetings, *runs).run())
      return mistake;
  }
  return {};
}

Status verifyMeetings(const Program &p) {
  if (p.stages.size() == 1)
    return {};
  for (const Segment &segment : p.segments)
    if (Status status = verifyWhole(p, segment); !status)
      return status;
  const std::optional<Mismeeting> mistake = findMismeeting(p);
  if (!mistake)
    return {};
  if (!mistake->other)
    return refuse("rank {}: {} {}", mistake->rank, describeCommand(p, mistake->command), mistake->what);
  return refuse("rank {}: {} {}, but rank {}: {} {}", mistake->rank, describeCommand(p, mistake->command),
                mistake->what, mistake->otherRank, describeCommand(p, *mistake->other), mistake->ofOther);
}

} // namespace ds::rt
