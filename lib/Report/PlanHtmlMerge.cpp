//===- PlanHtmlMerge.cpp - So much of a plan as can be seen ---------------------------===//
//
// A screen has some thousand columns; what is narrower than one needs no rectangle of its own. Each function
// keeps what is large and says how much of the rest it drew together.
//
//===---------------------------------------------------------------------------===//
#include "ds/Report/PlanHtml.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

namespace ds::report {

using Command = PlanTimeline::Command;
using Buffer = PlanTimeline::Buffer;

/// Whether there is anything of `command` to be seen.
static bool isDrawn(const Command &command) {
  return command.kind != "record" && (command.kind != "wait" || command.end > command.begin);
}

/// For each command the first of the group that it is drawn with: a run of a stream that spans at most
/// `seconds`. What is not drawn is alone.
static std::vector<uint32_t> groupRuns(const std::vector<Command> &commands, double seconds) {
  std::vector<uint32_t> leader(commands.size());
  std::map<uint32_t, uint32_t> open; // stream -> first command of its run
  for (uint32_t index = 0; index < commands.size(); ++index) {
    leader[index] = index;
    const Command &command = commands[index];
    if (!isDrawn(command))
      continue;
    auto [run, isNew] = open.try_emplace(command.stream, index);
    if (!isNew && command.end - commands[run->second].begin <= seconds)
      leader[index] = run->second;
    else
      run->second = index;
  }
  return leader;
}

/// How many rectangles the groups are.
static size_t countGroups(const std::vector<Command> &commands, const std::vector<uint32_t> &leader) {
  size_t count = 0;
  for (uint32_t index = 0; index < commands.size(); ++index)
    count += leader[index] == index && isDrawn(commands[index]);
  return count;
}

/// `run` with `more`: the kind is that of the longest command, which `longest` remembers.
static void extend(Command &run, const Command &more, double &longest) {
  if (more.end - more.begin > longest) {
    longest = more.end - more.begin;
    run.kind = more.kind;
  }
  run.end = std::max(run.end, more.end);
  run.flops += more.flops;
  run.bytes += more.bytes;
  if (run.layer != more.layer)
    run.layer.clear();
  if (run.segment != more.segment)
    run.segment.clear();
}

/// The leaders with what follows them, and where each command went.
static MergedCommands joinGroups(const std::vector<Command> &commands, const std::vector<uint32_t> &leader) {
  MergedCommands result;
  result.moved.resize(commands.size());
  std::map<uint32_t, uint32_t> place; // leader -> its index in the result
  std::vector<uint32_t> members;
  std::vector<double> longest;
  for (uint32_t index = 0; index < commands.size(); ++index) {
    const Command &command = commands[index];
    if (isDrawn(command)) {
      auto [at, isNew] = place.try_emplace(leader[index], static_cast<uint32_t>(result.commands.size()));
      if (isNew) {
        result.commands.push_back(command);
        members.push_back(0);
        longest.push_back(command.end - command.begin);
      } else {
        extend(result.commands[at->second], command, longest[at->second]);
      }
      ++members[at->second];
      result.moved[index] = at->second;
    } else {
      size_t next = result.commands.size();
      result.moved[index] = static_cast<uint32_t>(next == 0 ? 0 : next - 1);
    }
  }
  for (size_t at = 0; at < members.size(); ++at)
    if (members[at] > 1) {
      result.commands[at].name = std::to_string(members[at]) + " commands";
      result.merged += members[at];
    }
  return result;
}

MergedCommands mergeCommands(const std::vector<Command> &commands, size_t most) {
  double seconds = 0;
  for (const Command &command : commands)
    seconds = std::max(seconds, command.end);
  // Runs get longer until they are few enough; at the end each stream is one.
  double span = 0;
  std::vector<uint32_t> leader = groupRuns(commands, -1);
  while (countGroups(commands, leader) > most && span <= seconds) {
    span = span == 0 ? seconds * 1e-6 : span * 2;
    leader = groupRuns(commands, span);
  }
  return joinGroups(commands, leader);
}

/// What `buffer` covers of the picture.
static double areaOf(const Buffer &buffer) {
  return static_cast<double>(buffer.bytes) * (buffer.end - buffer.begin);
}

namespace {
/// Lays small buffers into the cells of a grid over time and offset.
class Boxes {
public:
  Boxes(const std::vector<Buffer> &buffers, size_t most)
      : cells(static_cast<int64_t>(
            std::max(1.0, std::sqrt(static_cast<double>(most) / kNumCategories / kSpaces)))) {
    for (const Buffer &buffer : buffers) {
      seconds = std::max(seconds, buffer.end);
      extent = std::max(extent, buffer.offset + buffer.bytes);
    }
  }

  void add(const Buffer &buffer) {
    auto timeCell =
        seconds > 0 ? static_cast<int64_t>(buffer.begin / seconds * static_cast<double>(cells)) : 0;
    Key key{buffer.space, buffer.category, timeCell, buffer.offset / (extent / cells + 1)};
    auto [at, isNew] = boxes.try_emplace(key, Box{buffer});
    Box &box = at->second;
    ++box.members;
    box.sum += buffer.bytes;
    if (isNew)
      return;
    Buffer &all = box.all;
    int64_t top = std::max(all.offset + all.bytes, buffer.offset + buffer.bytes);
    all.offset = std::min(all.offset, buffer.offset);
    all.bytes = top - all.offset;
    if (buffer.begin < all.begin)
      all.begin = buffer.begin, all.beginCommand = buffer.beginCommand;
    if (buffer.end > all.end)
      all.end = buffer.end, all.endCommand = buffer.endCommand;
    if (all.layer != buffer.layer)
      all.layer.clear();
    all.type.clear();
  }

  void appendTo(std::vector<Buffer> &out) const {
    for (const auto &[key, box] : boxes) {
      out.push_back(box.all);
      if (box.members > 1)
        out.back().name = std::to_string(box.members) + " small buffers, " + formatBytes(box.sum);
    }
  }

private:
  static constexpr size_t kSpaces = 3;
  using Key = std::tuple<std::string, Category, int64_t, int64_t>;
  struct Box {
    Buffer all; ///< around all members
    size_t members = 0;
    int64_t sum = 0; ///< bytes of the members
  };
  int64_t cells; ///< in each direction
  double seconds = 0;
  int64_t extent = 1;
  std::map<Key, Box> boxes;
};
} // namespace

MergedBuffers mergeBuffers(const std::vector<Buffer> &buffers, size_t most) {
  MergedBuffers result;
  if (buffers.size() <= most) {
    result.buffers = buffers;
    return result;
  }
  std::vector<uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    double first = areaOf(buffers[a]), second = areaOf(buffers[b]);
    return first != second ? first > second : a < b;
  });
  size_t whole = most - most / 4;
  std::vector<bool> isSmall(buffers.size(), false);
  for (size_t i = whole; i < order.size(); ++i)
    isSmall[order[i]] = buffers[order[i]].offset >= 0; // gaps have no place to be drawn at
  Boxes boxes(buffers, most / 4);
  for (size_t index = 0; index < buffers.size(); ++index) {
    if (!isSmall[index]) {
      result.buffers.push_back(buffers[index]);
      continue;
    }
    boxes.add(buffers[index]);
    ++result.merged;
  }
  boxes.appendTo(result.buffers);
  return result;
}

std::vector<LivePoint> thinCurve(const std::vector<LivePoint> &curve, size_t most) {
  if (curve.size() <= most || most < 3)
    return curve;
  std::vector<LivePoint> result{curve.front()};
  size_t inner = curve.size() - 2, runs = most - 2;
  for (size_t run = 0; run < runs; ++run) {
    auto first = curve.begin() + 1 + inner * run / runs, last = curve.begin() + 1 + inner * (run + 1) / runs;
    result.push_back(*std::max_element(
        first, last, [](const LivePoint &a, const LivePoint &b) { return a.total() < b.total(); }));
  }
  result.push_back(curve.back());
  return result;
}

} // namespace ds::report
