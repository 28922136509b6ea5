//===- VerifyLifetimes.cpp - Who holds which byte, and in which order ----------===//
//
// One sweep over each segment's commands keeps the set of live intervals ordered by offset. They may not
// overlap, so a new one need only be compared with its neighbours, and an operand is safe exactly when the
// interval that starts at or before it holds all of it: the whole check is O(n log n), whatever the file
// says.
//
//===---------------------------------------------------------------------------===//
#include "Verify.h"
#include "ds/Runtime/Program/Messages.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace ds::rt {
namespace {

/// Live intervals of the three spaces: offset -> lifetime index.
class LiveSet {
public:
  explicit LiveSet(const Program &program) : program(program) {}

  /// A lifetime that overlaps lifetime `index`, or npos.
  size_t conflict(size_t index) const {
    const Lifetime &l = program.lifetimes[index];
    const Intervals &live = spaces[static_cast<size_t>(l.space)];
    auto next = live.lower_bound(l.offset);
    if (next != live.end() && next->first < l.offset + l.bytes)
      return next->second;
    if (next != live.begin() && endOf(*std::prev(next)) > l.offset)
      return std::prev(next)->second;
    return npos;
  }
  void insert(size_t index) {
    const Lifetime &l = program.lifetimes[index];
    spaces[static_cast<size_t>(l.space)].emplace(l.offset, index);
  }
  void erase(size_t index) {
    const Lifetime &l = program.lifetimes[index];
    spaces[static_cast<size_t>(l.space)].erase(l.offset);
  }
  /// Whether one live interval holds all bytes of `buffer`, on every rank and in every slot.
  bool holds(const Buffer &buffer) const { return holds(buffer, reachBytes(buffer, program.mesh)); }
  /// Whether one holds `bytes` bytes from where `buffer` begins.
  bool holds(const Buffer &buffer, uint64_t bytes) const {
    const Intervals &live = spaces[static_cast<size_t>(buffer.space)];
    auto next = live.upper_bound(buffer.offset);
    return next != live.begin() && endOf(*std::prev(next)) >= buffer.offset + bytes;
  }
  static constexpr size_t npos = SIZE_MAX;

private:
  using Intervals = std::map<uint64_t, size_t>;
  uint64_t endOf(const Intervals::value_type &entry) const {
    return entry.first + program.lifetimes[entry.second].bytes;
  }
  const Program &program;
  Intervals spaces[3];
};

Status verifyRanges(const Program &p) {
  for (size_t i = 0; i < p.lifetimes.size(); ++i) {
    const Lifetime &l = p.lifetimes[i];
    uint64_t end;
    if (static_cast<uint8_t>(l.space) > static_cast<uint8_t>(Space::Nvme))
      return refuse("lifetimes[{}] has space {}, the last known is {}", i, int(l.space), int(Space::Nvme));
    if (l.stage >= p.stages.size())
      return refuse("lifetimes[{}] belongs to stage {} of {}", i, l.stage, p.stages.size());
    const uint64_t arena = bytesOf(p.stages[l.stage].arenas, l.space);
    if (l.bytes == 0 || __builtin_add_overflow(l.offset, l.bytes, &end) || end > arena)
      return refuse("lifetimes[{}] holds {} bytes at offset {}, but the {} arena has {}", i, l.bytes,
                    l.offset, spell(l.space), arena);
    if (l.segment == Lifetime::kWholeStep)
      continue;
    if (l.segment >= p.segments.size())
      return refuse("lifetimes[{}] names segment {} of {}", i, l.segment, p.segments.size());
    if (p.segments[l.segment].stage != l.stage)
      return refuse("lifetimes[{}] belongs to stage {}, but its segment '{}' to stage {}", i, l.stage,
                    p.segments[l.segment].name, p.segments[l.segment].stage);
    if (l.begin >= l.end || l.end > p.segments[l.segment].numCommands)
      return refuse("lifetimes[{}] spans commands {} to {} of a segment of {}", i, l.begin, l.end,
                    p.segments[l.segment].numCommands);
  }
  return {};
}

/// An arena ends where the last of its lifetimes does, but for rounding: it is populated as a whole when the
/// program starts, whatever it is used for.
Status verifyArenas(const Program &p) {
  constexpr uint64_t kRounding = uint64_t(2) << 20; // a huge page
  std::vector<std::array<uint64_t, 3>> ends(p.stages.size());
  for (const Lifetime &l : p.lifetimes) {
    uint64_t &end = ends[l.stage][static_cast<size_t>(l.space)];
    end = std::max(end, l.offset + l.bytes);
  }
  for (size_t stage = 0; stage < p.stages.size(); ++stage)
    for (Space space : {Space::Device, Space::Host, Space::Nvme}) {
      const uint64_t bytes = bytesOf(p.stages[stage].arenas, space);
      const uint64_t end = ends[stage][static_cast<size_t>(space)];
      if (bytes - end > kRounding)
        return refuse("{}the {} arena has {} bytes, but all that lives in it ends at byte {}",
                      describeStage(p, stage), spell(space), bytes, end);
    }
  return {};
}

Status insertChecked(LiveSet &live, const LiveSet *permanent, size_t index) {
  size_t other = live.conflict(index);
  if (other == LiveSet::npos && permanent)
    other = permanent->conflict(index);
  if (other != LiveSet::npos)
    return refuse("lifetimes[{}] and lifetimes[{}] hold the same bytes at the same time", index, other);
  live.insert(index);
  return {};
}

/// The lifetimes of one segment, in order of their begin and of their end.
struct SegmentLifetimes {
  std::vector<size_t> byBegin, byEnd;
};

class Sweep {
public:
  Sweep(const Program &program, const LiveSet &permanent, const SegmentLifetimes &lifetimes)
      : program(program), permanent(permanent), lifetimes(lifetimes), live(program) {}

  Status run(const Segment &segment) {
    for (uint32_t t = 0; t < segment.numCommands; ++t) {
      for (; ended < lifetimes.byEnd.size() && program.lifetimes[lifetimes.byEnd[ended]].end <= t; ++ended)
        live.erase(lifetimes.byEnd[ended]);
      for (; begun < lifetimes.byBegin.size() && program.lifetimes[lifetimes.byBegin[begun]].begin <= t;
           ++begun)
        if (Status status = insertChecked(live, &permanent, lifetimes.byBegin[begun]); !status)
          return status;
      if (Status status = checkOperands(uint64_t(segment.firstCommand) + t); !status)
        return status;
    }
    return {};
  }

private:
  /// While a message is under way all buffers of its exchange are in use.
  Status checkOperands(uint64_t index) {
    const Command &c = program.commands[index];
    Exchange with{static_cast<uint32_t>(index), 1};
    if (isMessage(program, c))
      with = exchangeOf(program, with.first);
    for (uint32_t i = with.first; i < with.end(); ++i)
      for (uint32_t k = 0; k < program.commands[i].numOperands; ++k)
        if (Status status = checkHeld(index, program.operands[program.commands[i].firstOperand + k]); !status)
          return status;
    for (uint32_t buffer : {c.workspace, c.predicate})
      if (Status status = buffer == UINT32_MAX ? Status() : checkHeld(index, buffer); !status)
        return status;
    return {};
  }
  Status checkHeld(uint64_t command, uint32_t buffer) {
    const Buffer &b = program.buffers[buffer];
    const uint64_t extent = extentBytes(b), more = paddingBytes(program.commands[command], extent);
    const uint64_t reach = reachBytes(b, program.mesh) + more;
    if (extent == 0 || live.holds(b, reach) || permanent.holds(b, reach))
      return {};
    return refuse("{} uses buffers[{}] ({} bytes at {} offset {}), which no lifetime holds then",
                  describeCommand(program, command), buffer, extent + more, spell(b.space), b.offset);
  }
  const Program &program;
  const LiveSet &permanent;
  const SegmentLifetimes &lifetimes;
  LiveSet live;
  size_t begun = 0, ended = 0;
};

/// States, inputs, outputs and what the entry for logits has are seen by the host between segments: they live
/// through the whole step.
Status verifyHostVisible(const Program &p, const std::vector<LiveSet> &permanent) {
  auto check = [&](const char *list, size_t i, const auto &entry) -> Status {
    const Buffer &b = p.buffers[entry.buffer];
    if (extentBytes(b) == 0 || permanent[entry.stage].holds(b))
      return {};
    return refuse("{}[{}] '{}' at {} offset {} lies in no lifetime of the whole step", list, i, entry.name,
                  spell(b.space), b.offset);
  };
  for (size_t i = 0; i < p.states.size(); ++i)
    if (Status status = check("states", i, p.states[i]); !status)
      return status;
  for (size_t i = 0; i < p.inputs.size(); ++i)
    if (Status status = check("inputs", i, p.inputs[i]); !status)
      return status;
  for (size_t i = 0; i < p.outputs.size(); ++i)
    if (Status status = check("outputs", i, p.outputs[i]); !status)
      return status;
  if (const LogitsEntry &entry = p.stages.front().logits; entry.segment >= 0)
    for (const auto &[i, name] : {std::pair<size_t, const char *>(0, "rows"), {1, "logits"}})
      if (Status status =
              check("the buffers of the entry for logits", i, Output{name, i ? entry.logits : entry.rows});
          !status)
        return status;
  return {};
}

/// What a state holds: bytes of an arena, and elements of the bucket that lies there if the ranks share it.
struct Holding {
  uint32_t stage;
  int space;
  uint64_t begin, end;   ///< bytes
  uint64_t first, count; ///< elements of the bucket; count 0: all of the bytes
  AxisSet bucket;        ///< of the ranks that hold it together
  size_t state;
};

/// Whether two holdings, of which `a` does not begin after `b`, name one element: windows of one bucket may
/// share bytes, but no element.
bool collide(const Holding &a, const Holding &b) {
  if (a.stage != b.stage || a.space != b.space || b.begin >= a.end)
    return false;
  const bool sameBucket =
      a.count > 0 && b.count > 0 && a.begin == b.begin && a.end == b.end && a.bucket == b.bucket;
  return !sameBucket || b.first < a.first + a.count;
}

/// No two states share an element (a tied parameter is one state with aliases).
Status verifyStatesDisjoint(const Program &p) {
  std::vector<Holding> order;
  for (size_t i = 0; i < p.states.size(); ++i) {
    const State &state = p.states[i];
    const Buffer &b = p.buffers[state.buffer];
    const bool isBucketed = state.layout.isBucketed();
    const uint64_t elements = isBucketed ? localElements(p.mesh, state.layout, state.logicalShape) : 0;
    if (extentBytes(b) > 0 && (elements > 0 || !isBucketed))
      order.push_back({state.stage, int(b.space), b.offset, b.offset + extentBytes(b), state.layout.offset,
                       elements, state.layout.bucket, i});
  }
  std::sort(order.begin(), order.end(), [](const Holding &a, const Holding &b) {
    return std::tie(a.stage, a.space, a.begin, a.first, a.state) <
           std::tie(b.stage, b.space, b.begin, b.first, b.state);
  });
  for (size_t i = 1; i < order.size(); ++i)
    if (collide(order[i - 1], order[i]))
      return refuse("states '{}' and '{}' share {} byte {}", p.states[order[i - 1].state].name,
                    p.states[order[i].state].name, spell(Space(order[i].space)), order[i].begin);
  return {};
}

} // namespace

Status verifyLifetimes(const Program &p) {
  if (Status status = verifyRanges(p); !status)
    return status;
  if (Status status = verifyArenas(p); !status)
    return status;
  std::vector<LiveSet> permanent(p.stages.size(), LiveSet(p));
  std::vector<SegmentLifetimes> bySegment(p.segments.size());
  for (size_t i = 0; i < p.lifetimes.size(); ++i) {
    const uint32_t segment = p.lifetimes[i].segment;
    if (segment != Lifetime::kWholeStep) {
      bySegment[segment].byBegin.push_back(i);
      bySegment[segment].byEnd.push_back(i);
    } else if (Status status = insertChecked(permanent[p.lifetimes[i].stage], nullptr, i); !status) {
      return status;
    }
  }
  if (Status status = verifyHostVisible(p, permanent); !status)
    return status;
  if (Status status = verifyStatesDisjoint(p); !status)
    return status;
  for (size_t s = 0; s < p.segments.size(); ++s) {
    auto &[byBegin, byEnd] = bySegment[s];
    auto key = [&](uint32_t Lifetime::*when) {
      return [&p, when](size_t a, size_t b) {
        return std::pair(p.lifetimes[a].*when, a) < std::pair(p.lifetimes[b].*when, b);
      };
    };
    std::sort(byBegin.begin(), byBegin.end(), key(&Lifetime::begin));
    std::sort(byEnd.begin(), byEnd.end(), key(&Lifetime::end));
    if (Status status = Sweep(p, permanent[p.segments[s].stage], bySegment[s]).run(p.segments[s]); !status)
      return status;
  }
  return {};
}

Status verifyEvents(const Program &p) {
  std::vector<size_t> recordedIn(p.numEvents, 0); // segment index + 1 of the last record
  for (size_t s = 0; s < p.segments.size(); ++s) {
    const Segment &segment = p.segments[s];
    for (uint64_t i = segment.firstCommand; i < uint64_t(segment.firstCommand) + segment.numCommands; ++i) {
      const Command &c = p.commands[i];
      if (c.kind == CommandKind::WaitEvent && recordedIn[c.callee] != s + 1)
        return refuse("{} waits for event {}, which no earlier command of the segment records",
                      describeCommand(p, i), c.callee);
      if (c.kind != CommandKind::RecordEvent)
        continue;
      if (recordedIn[c.callee] == s + 1)
        return refuse("{} records event {} a second time in its segment", describeCommand(p, i), c.callee);
      recordedIn[c.callee] = s + 1;
    }
  }
  return {};
}

} // namespace ds::rt
