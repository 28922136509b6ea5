//===- Simulate.cpp - When the commands of a step run --------------------------------===//
//
// From one completion to the next. Whatever slows down together has a clock of its own that runs at its
// commands' common speed: a command is over when that clock has gone on by its duration, however often the
// speed changes, so a change touches a clock and not its commands.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/Simulate.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>

namespace ds::cost {

using Kind = SimCommand::Kind;

static constexpr uint32_t kNone = UINT32_MAX;

namespace {
/// Commands that run at one speed.
struct Clock {
  using Finish = std::pair<double, uint32_t>; ///< on this clock, and the command
  std::priority_queue<Finish, std::vector<Finish>, std::greater<>> running;
  double shows = 0, at = 0; ///< what it shows at time `at`
  double speed = 1;
  double next = 0; ///< time of its first finish, as `due` has it; only while something runs

  void advance(double time) {
    shows += (time - at) * speed;
    at = time;
  }
};

/// Which records waits are for, and who stands before them.
class Events {
public:
  explicit Events(const std::vector<SimCommand> &commands);

  /// Whether `stream` has to stand before its wait number `index`; if so `record` gives it back.
  bool holds(uint32_t index, uint32_t stream);
  /// The record number `index` is reached. Returns the streams that stood before it.
  const std::vector<uint32_t> &record(uint32_t index);

private:
  std::vector<uint32_t> recordOf;             ///< of each wait, the record that it is for
  std::vector<std::vector<uint32_t>> waiting; ///< for each record, streams that stand before it
  std::vector<bool> recorded;
};

class Player {
public:
  Player(const std::vector<SimCommand> &commands, uint32_t streams, double contention);
  Simulation run();

private:
  static constexpr uint32_t kAlone = 0, kCompute = 1, kFirstLink = 2;

  uint32_t clockOf(const SimCommand &command) const;
  void proceed(uint32_t stream);
  void start(uint32_t index);
  void finish(uint32_t index);
  void passTo(double time);
  void addExposedCopies(double seconds);
  void setSpeed(uint32_t clock);
  void schedule(uint32_t clock);

  const std::vector<SimCommand> &commands;
  double contention;
  std::vector<std::vector<uint32_t>> queues; ///< of each stream, the last command first
  Events events;
  std::map<uint32_t, uint32_t> links; ///< to clocks
  std::vector<Clock> clocks;
  std::set<std::pair<double, uint32_t>> due; ///< clocks by their first finish
  std::vector<uint32_t> ready;               ///< streams that may go on
  /// Commands under way, by kind.
  std::array<uint32_t, static_cast<size_t>(Kind::Wait) + 1> underWay{};
  uint32_t &count(Kind kind) { return underWay[static_cast<size_t>(kind)]; }
  uint32_t onHost = 0; ///< of those that compute
  double now = 0;
  Simulation result;
};
} // namespace

/// A wait is for the last record of its event before it.
Events::Events(const std::vector<SimCommand> &commands)
    : recordOf(commands.size(), kNone), waiting(commands.size()), recorded(commands.size()) {
  std::map<uint32_t, uint32_t> last;
  for (uint32_t index = 0; index < commands.size(); ++index)
    if (commands[index].kind == Kind::Record)
      last[commands[index].event] = index;
    else if (commands[index].kind == Kind::Wait)
      if (auto record = last.find(commands[index].event); record != last.end())
        recordOf[index] = record->second;
}

bool Events::holds(uint32_t index, uint32_t stream) {
  uint32_t record = recordOf[index];
  if (record == kNone || recorded[record])
    return false;
  waiting[record].push_back(stream);
  return true;
}

const std::vector<uint32_t> &Events::record(uint32_t index) {
  recorded[index] = true;
  return waiting[index];
}

Player::Player(const std::vector<SimCommand> &commands, uint32_t streams, double contention)
    : commands(commands), contention(contention), queues(streams), events(commands) {
  result.spans.resize(commands.size());
  result.busySeconds.resize(streams);
  for (uint32_t index = commands.size(); index-- > 0;) {
    assert(commands[index].stream < streams && "a stream that does not exist");
    queues[commands[index].stream].push_back(index);
    if (commands[index].link != 0)
      links.try_emplace(commands[index].link, 0);
  }
  clocks.resize(kFirstLink + links.size());
  uint32_t next = kFirstLink;
  for (auto &[link, clock] : links)
    clock = next++;
}

uint32_t Player::clockOf(const SimCommand &command) const {
  if (command.kind == Kind::Compute)
    return kCompute;
  return command.link == 0 ? kAlone : links.at(command.link);
}

/// Puts the clock's first finish where the next event is looked for.
void Player::schedule(uint32_t number) {
  Clock &clock = clocks[number];
  due.erase({clock.next, number});
  if (clock.running.empty())
    return;
  clock.next = std::max(now, clock.at + (clock.running.top().first - clock.shows) / clock.speed);
  due.insert({clock.next, number});
}

void Player::setSpeed(uint32_t number) {
  Clock &clock = clocks[number];
  clock.advance(now);
  if (number >= kFirstLink && !clock.running.empty())
    clock.speed = 1.0 / static_cast<double>(clock.running.size());
  if (number == kCompute)
    clock.speed = count(Kind::Collective) > 0 ? 1 - contention : 1;
  schedule(number);
}

void Player::start(uint32_t index) {
  const SimCommand &command = commands[index];
  assert(command.seconds >= 0 && command.seconds < std::numeric_limits<double>::infinity());
  uint32_t clock = clockOf(command);
  result.spans[index].begin = now;
  clocks[clock].advance(now);
  clocks[clock].running.push({clocks[clock].shows + command.seconds, index});
  ++count(command.kind);
  onHost += command.onHost ? 1 : 0;
  setSpeed(clock);
  if (command.kind == Kind::Collective)
    setSpeed(kCompute);
}

void Player::finish(uint32_t index) {
  const SimCommand &command = commands[index];
  result.spans[index].end = now;
  result.busySeconds[command.stream] += now - result.spans[index].begin;
  --count(command.kind);
  onHost -= command.onHost ? 1 : 0;
  if (command.kind == Kind::Collective)
    setSpeed(kCompute);
  ready.push_back(command.stream);
}

/// Goes on with a stream until it computes, transfers or stands.
void Player::proceed(uint32_t stream) {
  std::vector<uint32_t> &queue = queues[stream];
  while (!queue.empty()) {
    uint32_t index = queue.back();
    SimSpan &span = result.spans[index];
    switch (commands[index].kind) {
    case Kind::Record:
      span = {now, now};
      for (uint32_t other : events.record(index)) {
        result.spans[queues[other].back()].end = now;
        queues[other].pop_back();
        ready.push_back(other);
      }
      break;
    case Kind::Wait:
      span = {now, now};
      if (events.holds(index, stream))
        return;
      break;
    default:
      queue.pop_back();
      return start(index);
    }
    queue.pop_back();
  }
}

/// Copies alone are under way, or nothing is.
void Player::addExposedCopies(double seconds) {
  const bool toHost = count(Kind::ToHost) > 0, toDevice = count(Kind::ToDevice) > 0;
  const double each = toHost && toDevice ? seconds / 2 : seconds;
  result.exposedToHostSeconds += toHost ? each : 0;
  result.exposedToDeviceSeconds += toDevice ? each : 0;
}

/// Lets time pass, in which what is under way stays so.
void Player::passTo(double time) {
  if (count(Kind::Compute) > 0) {
    result.computeSeconds += time - now;
    result.exposedHostSeconds += count(Kind::Compute) == onHost ? time - now : 0;
  } else if (count(Kind::Collective) > 0)
    result.exposedCommunicationSeconds += time - now;
  else if (count(Kind::Storage) > 0)
    result.exposedStorageSeconds += time - now;
  else
    addExposedCopies(time - now);
  now = time;
}

Simulation Player::run() {
  for (uint32_t stream = queues.size(); stream-- > 0;)
    ready.push_back(stream);
  while (true) {
    while (!ready.empty()) {
      uint32_t stream = ready.back();
      ready.pop_back();
      proceed(stream);
    }
    if (due.empty())
      break;
    auto [time, number] = *due.begin();
    passTo(time);
    Clock &clock = clocks[number];
    auto [shows, index] = clock.running.top();
    clock.running.pop();
    clock.shows = shows;
    clock.at = now;
    setSpeed(number);
    finish(index);
  }
  result.seconds = now;
  return std::move(result);
}

Simulation simulate(const std::vector<SimCommand> &commands, uint32_t streams, double contention) {
  constexpr double kMost = 0.999; // compute that stood still for good would end no step
  return Player(commands, streams, std::min(contention, kMost)).run();
}

} // namespace ds::cost
