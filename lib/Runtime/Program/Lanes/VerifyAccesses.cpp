//===- VerifyAccesses.cpp - What executions of a step share with each other ------===//
//
// Lanes take order away from the schedule, so whatever touches what another lane writes has to wait for it.
// What is over when an execution begins is a count for each lane: that of the execution before it in its
// lane, joined with what is known of those that it waits for. All that another lane has listed beyond that
// count may run beside it:
//
//   F0 | S0 after F0 | F1 | R1 | B0 after R1      at B0 one transfer is over by count, so S0 is as well;
//                                                 nothing of the transfer lane is beside it
//
// What is left is the order of the schedule, in which a slot has to be done with one micro-batch before it
// serves the next. The program does not say what a kernel writes, so all that computes is taken to write.
//
//===---------------------------------------------------------------------------===//
#include "Program/Execution.h"
#include "Program/Verify.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace ds::rt {
namespace {

constexpr size_t kMaxExecutions = size_t(1) << 20;
constexpr uint64_t kMaxWork = uint64_t(1) << 26; ///< comparisons, and accesses that are played
constexpr size_t kMaxWindows = size_t(1) << 22;

/// What an execution does with a buffer.
enum class Use : uint8_t { Read, Write, Send, Receive };
bool mayWrite(Use use) { return use == Use::Write || use == Use::Receive; }

struct Access {
  uint32_t buffer;
  Use use;
};

/// Bytes of an arena.
struct Window {
  Space space;
  uint64_t begin, end;
  bool meets(const Window &other) const {
    return space == other.space && begin < other.end && other.begin < end;
  }
};

/// On all ranks of the stage, in all slots.
Window reachOf(const Program &p, uint32_t buffer) {
  const Buffer &b = p.buffers[buffer];
  return {b.space, b.offset, b.offset + reachBytes(b, p.mesh)};
}
/// On all ranks of the stage, for one micro-batch.
Window windowOf(const Program &p, uint32_t buffer, uint32_t microBatch) {
  const Buffer &b = p.buffers[buffer];
  const uint64_t reach = reachBytes(b, p.mesh), others = (b.slots - 1) * b.slotStride;
  const uint64_t begin = b.offset + microBatch % b.slots * b.slotStride;
  return {b.space, begin, begin + (reach > others ? reach - others : 0)};
}

/// What the executions of a stage's step touch, and in which words that is said.
class Accesses {
public:
  Accesses(const Program &program, uint32_t stage) : p(program), stage(stage) {}

  /// What `execution` touches; inputs that the host fills for it are written.
  const std::vector<Access> &of(const Execution &execution) {
    const auto [found, isNew] = lists.try_emplace({execution.segment, execution.fills});
    if (isNew)
      found->second = collect(execution);
    return found->second;
  }
  std::string describe(const Execution &execution) const {
    return fmt::format("'{}' for micro-batch {}", p.segments[execution.segment].name, execution.microBatch);
  }

private:
  std::vector<Access> collect(const Execution &execution) const {
    std::map<uint32_t, Use> uses;
    const auto add = [&](uint32_t buffer, Use use) {
      const auto [found, isNew] = uses.try_emplace(buffer, use);
      if (!isNew && found->second != use)
        found->second = Use::Write;
    };
    const Segment &segment = p.segments[execution.segment];
    for (uint32_t i = segment.firstCommand; i < segment.firstCommand + segment.numCommands; ++i) {
      const Command &c = p.commands[i];
      for (uint32_t k = 0; k < c.numOperands; ++k)
        add(p.operands[c.firstOperand + k], useOf(c, k));
      for (uint32_t buffer : {c.workspace, c.predicate})
        if (buffer != UINT32_MAX)
          add(buffer, Use::Write);
    }
    for (const Input &input : p.inputs)
      if (execution.fills && input.stage == stage)
        add(input.buffer, Use::Write);
    std::vector<Access> list;
    for (const auto &[buffer, use] : uses)
      if (extentBytes(p.buffers[buffer]) > 0)
        list.push_back({buffer, use});
    return list;
  }
  Use useOf(const Command &c, uint32_t operand) const {
    if (c.kind != CommandKind::Collective)
      return Use::Write;
    const CollectiveKind kind = p.collectives[c.callee].kind;
    if (traitsOf(kind).isMessage)
      return kind == CollectiveKind::Send ? Use::Send : Use::Receive;
    return c.numOperands > 1 && operand == 0 ? Use::Read : Use::Write;
  }

  const Program &p;
  const uint32_t stage;
  std::map<std::pair<uint32_t, bool>, std::vector<Access>> lists; ///< by segment, and whether it fills
};

/// Looks for bytes that two lanes touch at a time, of which one may write them.
class RaceCheck {
public:
  RaceCheck(const Program &program, std::span<const Execution> step, Accesses &accesses)
      : p(program), step(step), accesses(accesses) {}

  Status run() {
    for (size_t i = 0; i < step.size(); ++i) {
      const auto own = static_cast<size_t>(step[i].lane);
      const LaneCounts over = overBefore(i);
      for (size_t lane = 0; lane < kNumLanes; ++lane)
        for (size_t k = over[lane]; lane != own && k < lanes[lane].size(); ++k)
          if (Status status = checkPair(step[lanes[lane][k]], step[i]); !status)
            return status;
      lanes[own].push_back(i);
      after.push_back(over);
      ++after.back()[own];
    }
    return {};
  }

private:
  using Pairs = std::vector<std::pair<uint32_t, uint32_t>>; ///< of buffers

  /// How many executions of each lane are over when number `i` begins, at least.
  LaneCounts overBefore(size_t i) const {
    LaneCounts over = {};
    const auto join = [&](size_t other) {
      for (size_t lane = 0; lane < kNumLanes; ++lane)
        over[lane] = std::max(over[lane], after[other][lane]);
    };
    if (const std::vector<size_t> &own = lanes[static_cast<size_t>(step[i].lane)]; !own.empty())
      join(own.back());
    for (size_t lane = 0; lane < kNumLanes; ++lane)
      if (step[i].after[lane] > 0)
        join(lanes[lane][step[i].after[lane] - 1]);
    return over;
  }

  Status checkPair(const Execution &first, const Execution &second) {
    for (const auto &[a, b] : pairsOf(first, second)) {
      if (++work > kMaxWork)
        return refuse("what lanes share takes more than {} comparisons", kMaxWork);
      if (windowOf(p, a, first.microBatch).meets(windowOf(p, b, second.microBatch)))
        return refuse(
            "{} may run beside {} of the {} lane, and both touch {} byte {} (buffers[{}] and [{}]): "
            "one of them has to wait for the other",
            accesses.describe(second), accesses.describe(first), spell(first.lane), spell(p.buffers[b].space),
            std::max(windowOf(p, a, first.microBatch).begin, windowOf(p, b, second.microBatch).begin), a, b);
    }
    return {};
  }

  /// Buffers of the two that may meet for some micro-batches.
  const Pairs &pairsOf(const Execution &first, const Execution &second) {
    const auto [found, isNew] = pairs.try_emplace({first.segment, first.fills, second.segment, second.fills});
    if (!isNew)
      return found->second;
    const std::vector<Access> &others = accesses.of(first), &own = accesses.of(second);
    work += others.size() * own.size();
    for (const Access &a : others)
      for (const Access &b : own)
        if ((mayWrite(a.use) || mayWrite(b.use)) && reachOf(p, a.buffer).meets(reachOf(p, b.buffer)))
          found->second.emplace_back(a.buffer, b.buffer);
    return found->second;
  }

  const Program &p;
  const std::span<const Execution> step;
  Accesses &accesses;
  std::vector<size_t> lanes[kNumLanes]; ///< executions so far, in order
  std::vector<LaneCounts> after;        ///< by execution: how many are over when it is
  std::map<std::tuple<uint32_t, bool, uint32_t, bool>, Pairs> pairs;
  uint64_t work = 0;
};

/// Follows slots, and what is sent or received, through the order of the schedule.
class SlotCheck {
public:
  SlotCheck(const Program &program, uint32_t stage, std::span<const Execution> step, Accesses &accesses)
      : p(program), stage(stage), step(step), accesses(accesses) {}

  Status run() {
    if (Status status = findPlaces(); !status)
      return status;
    for (const Execution &execution : step) {
      if (p.segments[execution.segment].work == WorkSet{Work::Update})
        continue;
      for (const Access &access : accesses.of(execution)) {
        if (++work > kMaxWork)
          return refuse("what slots hold takes more than {} accesses", kMaxWork);
        if (firstPlace.count(access.buffer) == 0)
          continue;
        if (Status status = use(execution, access); !status)
          return status;
      }
    }
    for (const Place &place : places)
      if (place.unread)
        return refuse("{} receives what nothing reads", accesses.describe(*place.unread));
    return {};
  }

private:
  /// Bytes that hold a value of one micro-batch at a time.
  struct Place {
    std::optional<uint32_t> microBatch;
    const Execution *unread = nullptr; ///< that has received what nothing has read since
    std::set<uint32_t> past;           ///< micro-batches that it has held before
  };
  struct Slot {
    Window window;
    uint32_t buffer, slot;
  };

  uint32_t slotsOf(uint32_t buffer) const { return std::min(p.buffers[buffer].slots, p.accumulation); }

  /// Values with slots, inputs, what is sent or received, and all that shares bytes with these two.
  std::set<uint32_t> followed() {
    std::set<uint32_t> passed, found;
    for (const Input &input : p.inputs)
      if (input.stage == stage)
        passed.insert(input.buffer);
    std::map<std::pair<uint32_t, bool>, const Execution *> kinds; // each once
    for (const Execution &execution : step)
      kinds.try_emplace({execution.segment, execution.fills}, &execution);
    for (const auto &[kind, execution] : kinds)
      for (const Access &access : accesses.of(*execution))
        if (execution->lane == Lane::Transfer)
          passed.insert(access.buffer);
    for (const auto &[kind, execution] : kinds)
      for (const Access &access : accesses.of(*execution))
        if (p.buffers[access.buffer].slots > 1 || std::ranges::any_of(passed, [&](uint32_t buffer) {
              return reachOf(p, buffer).meets(reachOf(p, access.buffer));
            }))
          found.insert(access.buffer);
    return found;
  }

  /// Slots that share bytes are one place.
  Status findPlaces() {
    std::vector<Slot> slots;
    for (const uint32_t buffer : followed()) {
      firstPlace[buffer] = slots.size();
      if (slots.size() > kMaxWindows)
        return refuse("values have more than {} slots", kMaxWindows);
      for (uint32_t slot = 0; slot < slotsOf(buffer); ++slot)
        slots.push_back({windowOf(p, buffer, slot), buffer, slot});
    }
    placeOf.resize(slots.size());
    std::ranges::sort(slots, {}, [](const Slot &slot) {
      return std::tuple(slot.window.space, slot.window.begin, slot.window.end, slot.buffer);
    });
    Window last{};
    for (const Slot &slot : slots) {
      if (places.empty() || !last.meets(slot.window)) {
        places.emplace_back();
        last = slot.window;
      }
      last.end = std::max(last.end, slot.window.end);
      placeOf[firstPlace[slot.buffer] + slot.slot] = places.size() - 1;
    }
    return {};
  }

  Status use(const Execution &execution, const Access &access) {
    const uint32_t m = execution.microBatch, slot = m % p.buffers[access.buffer].slots;
    Place &place = places[placeOf[firstPlace[access.buffer] + slot]];
    if (place.microBatch != m) {
      if (place.unread)
        return refuse("{} receives into slot {} of buffers[{}] what nothing reads before {}",
                      accesses.describe(*place.unread), slot, access.buffer, accesses.describe(execution));
      if (place.past.count(m) > 0)
        return refuse("{} uses slot {} of buffers[{}], which has served micro-batch {} since",
                      accesses.describe(execution), slot, access.buffer, *place.microBatch);
      if (access.use == Use::Send)
        return refuse(
            "{} sends slot {} of buffers[{}], which {}", accesses.describe(execution), slot, access.buffer,
            place.microBatch ? fmt::format("is micro-batch {}'s", *place.microBatch) : "nothing has made");
      if (place.microBatch)
        place.past.insert(*place.microBatch);
      place.microBatch = m;
    }
    place.unread = access.use == Use::Receive ? &execution : nullptr;
    return {};
  }

  const Program &p;
  const uint32_t stage;
  const std::span<const Execution> step;
  Accesses &accesses;
  std::vector<Place> places;
  std::map<uint32_t, size_t> firstPlace; ///< by buffer: into placeOf, a slot after the other
  std::vector<size_t> placeOf;           ///< into places
  uint64_t work = 0;
};

} // namespace

Status verifyLaneAccesses(const Program &p, uint32_t stage) {
  const std::vector<Execution> step = executionsOf(p, stage);
  if (step.size() > kMaxExecutions)
    return refuse("the schedule has {} executions on several lanes, the limit is {}", step.size(),
                  kMaxExecutions);
  Accesses accesses(p, stage);
  if (Status status = RaceCheck(p, step, accesses).run(); !status)
    return status;
  return SlotCheck(p, stage, step, accesses).run();
}

} // namespace ds::rt
