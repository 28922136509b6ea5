//===- MemoryPlan.cpp - From a problem to components and back -------------------===//
//
// Segments are laid one after another on one time line. What lives through all of a part of it goes to the
// bottom of that part, or to the top of the arena where pages would begin too late above it. That loses
// nothing and lets the rest fall apart into components that are packed alone; the component with the highest
// lower bound goes first, because the others only have to stay below it.
//
//===---------------------------------------------------------------------------===//

#include "ds/Analysis/Packing/MemoryPlan.h"

#include "Packer.h"
#include "ds/Support/Align.h"

#include <algorithm>
#include <numeric>

namespace ds::analysis {

using namespace detail;

namespace {

/// The problem on one time line of dense ranks; zero-byte buffers are left out.
struct Timeline {
  std::vector<int32_t> ids; ///< item -> buffer
  std::vector<Item> items;
  int32_t horizon = 1;
  bool anyFixed = false;
};

/// Items that share a stretch of the time line, between what lives through all of it.
struct Part {
  std::vector<int32_t> items; ///< ascending begin
  int64_t floor = 0;
  int64_t lid = 0; ///< bytes that are taken at the top of the arena
};

/// Where items lie.
struct Places {
  explicit Places(size_t count) : offsets(count), fromTop(count) {}
  /// Gives what is counted from the top its offset.
  void settle() {
    for (size_t i = 0; i < offsets.size(); ++i)
      if (fromTop[i] > 0)
        offsets[i] = arenaBytes - fromTop[i];
  }

  std::vector<int64_t> offsets;
  std::vector<int64_t> fromTop; ///< > 0: bytes from its begin to the top of the arena, and no offset yet
  int64_t arenaBytes = 0;       ///< the least that has room for all so far
};

} // namespace

static int64_t alignmentOf(const PackBuffer &buffer, const PackProblem &problem) {
  return buffer.alignment ? buffer.alignment : problem.alignment;
}

static Error malformed(size_t index, const std::string &what) {
  return {ExitCode::Internal, "memory plan: buffer " + std::to_string(index) + " " + what, ""};
}

/// Whether every buffer can be meant, and no sum of sizes and padding can overflow.
static Status validate(const PackProblem &problem) {
  int64_t total = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const PackBuffer &buffer = problem.buffers[i];
    int64_t align = alignmentOf(buffer, problem), sum = 0;
    if (align <= 0 || (align & (align - 1)))
      return malformed(i, "has alignment " + std::to_string(align) + ", which is no power of two");
    if (buffer.bytes < 0)
      return malformed(i, "has a size of " + std::to_string(buffer.bytes) + " bytes");
    if (buffer.segment != PackBuffer::kAllSegments && (buffer.begin < 0 || buffer.end <= buffer.begin))
      return malformed(i, "has the lifetime [" + std::to_string(buffer.begin) + ", " +
                              std::to_string(buffer.end) + "), expects 0 <= begin < end");
    if (buffer.fixedOffset < -1 || (buffer.fixedOffset > 0 && buffer.fixedOffset % align))
      return malformed(i, "is fixed at offset " + std::to_string(buffer.fixedOffset) +
                              ", expects a multiple of its alignment " + std::to_string(align));
    if (__builtin_add_overflow(buffer.bytes, align, &sum) ||
        __builtin_add_overflow(sum, std::max<int64_t>(buffer.fixedOffset, 0), &sum) ||
        __builtin_add_overflow(total, sum, &total))
      return Error{ExitCode::Invalid,
                   "memory plan: the sizes of " + std::to_string(problem.buffers.size()) +
                       " buffers add up to more than 2^63 - 1 bytes (at buffer " + std::to_string(i) +
                       " of " + std::to_string(buffer.bytes) + " bytes)",
                   "check the shapes given with --input and the micro-batch"};
  }
  return {};
}

/// Lays the segments one after another and replaces times by dense ranks.
static Timeline makeTimeline(const PackProblem &problem) {
  using Time = std::pair<uint32_t, int64_t>; // the order of (segment, op) is the order on the time line
  const Time start = {0, 0}, finish = {PackBuffer::kAllSegments, 0};
  auto spanOf = [&](const PackBuffer &buffer) {
    bool all = buffer.segment == PackBuffer::kAllSegments;
    return all ? std::pair(start, finish)
               : std::pair(Time(buffer.segment, buffer.begin), Time(buffer.segment, buffer.end));
  };
  Timeline line;
  std::vector<Time> times;
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (problem.buffers[i].bytes > 0) {
      auto [begin, end] = spanOf(problem.buffers[i]);
      line.ids.push_back(int32_t(i));
      times.push_back(begin), times.push_back(end);
      line.anyFixed |= problem.buffers[i].fixedOffset >= 0;
    }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  auto rank = [&](Time time) {
    return int32_t(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  for (int32_t id : line.ids) {
    const PackBuffer &buffer = problem.buffers[id];
    auto [begin, end] = spanOf(buffer);
    int64_t align = alignmentOf(buffer, problem);
    line.items.push_back({rank(begin), rank(end), alignTo(buffer.bytes, align), align});
  }
  line.horizon = std::max<int32_t>(1, int32_t(times.size()));
  return line;
}

/// The most bytes live at one rank.
static int64_t maxLive(const std::vector<Item> &items, const std::vector<int32_t> &subset, int32_t horizon) {
  std::vector<int64_t> change(size_t(horizon) + 1);
  for (int32_t i : subset) {
    change[items[i].begin] += items[i].size;
    change[items[i].end] -= items[i].size;
  }
  int64_t live = 0, peak = 0;
  for (int64_t delta : change)
    peak = std::max(peak, live += delta);
  return peak;
}

static std::vector<int32_t> allItems(const Timeline &line) {
  std::vector<int32_t> all(line.items.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

static int64_t boundOf(const Timeline &line, const PackProblem &problem) {
  int64_t bound = maxLive(line.items, allItems(line), line.horizon);
  for (size_t i = 0; i < line.items.size(); ++i)
    if (int64_t fixed = problem.buffers[line.ids[i]].fixedOffset; fixed >= 0)
      bound = std::max(bound, fixed + line.items[i].size);
  return bound;
}

/// Cuts a part wherever nothing lives across.
static std::vector<Part> splitInTime(const Part &part, const std::vector<Item> &items) {
  std::vector<Part> pieces;
  int32_t end = -1;
  for (int32_t i : part.items) {
    if (items[i].begin >= end)
      pieces.push_back({{}, part.floor, part.lid});
    pieces.back().items.push_back(i);
    end = std::max(end, items[i].end);
  }
  return pieces;
}

/// Takes what lives through the whole piece out of it. Returns whether there was any.
///
/// At its bottom the widest alignment of the piece loses nothing by what ends at it: above 64 bytes, what
/// starts at pages would. Those 64 bytes go to the top of the arena, if nothing is aligned to less than they
/// are: then its top is aligned for them whatever lies below.
static bool peel(Part &piece, const std::vector<Item> &items, int64_t narrowest, Places &places) {
  int32_t begin = INT32_MAX, end = 0;
  int64_t widest = 1;
  for (int32_t i : piece.items) {
    begin = std::min(begin, items[i].begin), end = std::max(end, items[i].end);
    widest = std::max(widest, items[i].align);
  }
  std::vector<int32_t> bottom;
  const size_t taken = std::erase_if(piece.items, [&](int32_t i) {
    const bool endsWell = items[i].size % widest == 0;
    if (items[i].begin != begin || items[i].end != end || (!endsWell && items[i].align != narrowest))
      return false;
    if (endsWell)
      bottom.push_back(i);
    else
      places.fromTop[i] = piece.lid += items[i].size;
    return true;
  });
  std::sort(bottom.begin(), bottom.end(), [&](int32_t a, int32_t b) {
    return std::pair(-items[a].align, a) < std::pair(-items[b].align, b);
  });
  for (int32_t i : bottom) {
    places.offsets[i] = alignTo(piece.floor, items[i].align);
    piece.floor = places.offsets[i] + items[i].size;
  }
  places.arenaBytes = std::max(places.arenaBytes, piece.floor + piece.lid);
  return taken > 0;
}

/// Splits and peels until nothing changes; what is left are the components that need packing.
static std::vector<Part> decompose(const Timeline &line, Places &places) {
  constexpr int kMaxDepth = 64; // deeper nests are packed well by lifetime; this keeps the work linear
  std::vector<Part> open(1), done;
  open[0].items = allItems(line);
  std::sort(open[0].items.begin(), open[0].items.end(), [&](int32_t a, int32_t b) {
    return std::pair(line.items[a].begin, a) < std::pair(line.items[b].begin, b);
  });
  int64_t narrowest = INT64_MAX;
  for (const Item &item : line.items)
    narrowest = std::min(narrowest, item.align);
  for (int depth = 0; !open.empty(); ++depth) {
    std::vector<Part> next;
    for (const Part &part : open)
      for (Part &piece : splitInTime(part, line.items)) {
        bool peeled = peel(piece, line.items, narrowest, places);
        if (!piece.items.empty())
          (peeled && depth < kMaxDepth ? next : done).push_back(std::move(piece));
      }
    open = std::move(next);
  }
  return done;
}

/// A part as the packer takes it, with ranks of its own.
static Component makeComponent(const Part &part, const Timeline &line) {
  Component component;
  component.floor = part.floor;
  int32_t first = line.items[part.items.front()].begin, last = first;
  for (int32_t i : part.items)
    last = std::max(last, line.items[i].end);
  for (int32_t i : part.items) {
    Item item = line.items[i];
    item.begin -= first, item.end -= first;
    component.items.push_back(item);
  }
  component.horizon = last - first;
  return component;
}

/// Packs every component. Those that may reach `target` share the budget evenly, the others have half of what
/// is left, the last all of it.
static void packParts(std::vector<Part> parts, const Timeline &line, int64_t target, int64_t &budget,
                      Places &places) {
  std::vector<std::pair<int64_t, size_t>> byBound;
  for (size_t p = 0; p < parts.size(); ++p) {
    Component component = makeComponent(parts[p], line);
    std::vector<int32_t> all(component.items.size());
    std::iota(all.begin(), all.end(), 0);
    byBound.push_back(
        {-(parts[p].floor + maxLive(component.items, all, component.horizon) + parts[p].lid), p});
  }
  std::sort(byBound.begin(), byBound.end());
  auto isHard = [&](const auto &entry) { return -entry.first >= target - target / 16; };
  int64_t hard = std::count_if(byBound.begin(), byBound.end(), isHard);
  for (auto [bound, p] : byBound) {
    int64_t share = p == byBound.back().second ? budget : budget / std::max<int64_t>(2, hard), left = share;
    --hard;
    Packing packing = pack(makeComponent(parts[p], line), target - parts[p].lid, left);
    budget -= share - left;
    for (size_t i = 0; i < parts[p].items.size(); ++i)
      places.offsets[parts[p].items[i]] = packing.offsets[i];
    places.arenaBytes = std::max(places.arenaBytes, packing.top + parts[p].lid);
    target = std::max(target, places.arenaBytes); // the arena is that large anyway
  }
}

/// Two fixed buffers that collide, as an error; nothing can be packed around them.
static Status checkFixed(const std::vector<Placed> &fixed) {
  for (size_t i = 0; i < fixed.size(); ++i)
    for (size_t j = i + 1; j < fixed.size() && fixed[j].lo < fixed[i].hi; ++j)
      if (fixed[i].begin < fixed[j].end && fixed[j].begin < fixed[i].end)
        return Error{ExitCode::Internal,
                     "memory plan: two fixed buffers collide, at offsets " + std::to_string(fixed[i].lo) +
                         " and " + std::to_string(fixed[j].lo),
                     ""};
  return {};
}

/// The general case with fixed buffers: one component, packed around them.
static Status packAroundFixed(const PackProblem &problem, const Timeline &line, int64_t target,
                              int64_t &budget, Places &places) {
  Component component;
  component.horizon = line.horizon;
  std::vector<size_t> free;
  for (size_t i = 0; i < line.items.size(); ++i) {
    const Item &item = line.items[i];
    int64_t fixed = problem.buffers[line.ids[i]].fixedOffset;
    if (fixed < 0) {
      free.push_back(i);
      component.items.push_back(item);
      continue;
    }
    places.offsets[i] = fixed;
    component.obstacles.push_back({item.begin, item.end, fixed, fixed + item.size});
  }
  std::sort(component.obstacles.begin(), component.obstacles.end(),
            [](const Placed &a, const Placed &b) { return a.lo < b.lo; });
  if (Status status = checkFixed(component.obstacles); !status)
    return status;
  Packing packing = pack(component, target, budget);
  for (size_t i = 0; i < free.size(); ++i)
    places.offsets[free[i]] = packing.offsets[i];
  return {};
}

Result<MemoryPlan> planMemory(const PackProblem &problem, const PackOptions &options) {
  if (Status status = validate(problem); !status)
    return status.error();
  Timeline line = makeTimeline(problem);
  MemoryPlan plan;
  plan.lowerBound = boundOf(line, problem);
  Places places(line.items.size());
  int64_t budget = options.maxSteps;
  if (line.anyFixed) {
    if (Status status = packAroundFixed(problem, line, plan.lowerBound, budget, places); !status)
      return status.error();
  } else {
    packParts(decompose(line, places), line, plan.lowerBound, budget, places);
    places.settle();
  }
  plan.steps = options.maxSteps - budget;
  plan.offsets.assign(problem.buffers.size(), 0);
  for (size_t i = 0; i < line.ids.size(); ++i) {
    plan.offsets[line.ids[i]] = places.offsets[i];
    plan.arenaBytes = std::max(plan.arenaBytes, places.offsets[i] + line.items[i].size);
  }
  for (size_t i = 0; i < problem.buffers.size(); ++i) // a zero-byte buffer lies where it was told to
    if (problem.buffers[i].bytes == 0)
      plan.offsets[i] = std::max<int64_t>(0, problem.buffers[i].fixedOffset);
  return plan;
}

Result<int64_t> lowerBound(const PackProblem &problem) {
  if (Status status = validate(problem); !status)
    return status.error();
  return boundOf(makeTimeline(problem), problem);
}

} // namespace ds::analysis
