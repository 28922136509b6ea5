//===- IssueOrder.cpp - The order of ops that needs the least memory ------------===//

#include "OrderGraph.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace ds::analysis {

using namespace detail;

namespace detail {

namespace {

/// The search for one move that betters the profile around one position.
class PeakMover {
public:
  PeakMover(const OrderGraph &graph, const Order &order, uint32_t position)
      : graph(graph), order(order), position(position), rank(order.size()) {
    for (uint32_t i = 0; i < order.size(); ++i)
      rank[order[i]] = i;
  }

  /// Buffers that only wait while the op at the position runs, the largest first.
  std::vector<uint32_t> waiting() const;
  /// The order in which everything that still needs `buffer` comes before the position, or everything that
  /// touched it behind; empty if impossible.
  Order moveUsers(uint32_t buffer, bool hoist) const;

private:
  const OrderGraph &graph;
  const Order &order;
  uint32_t position;
  std::vector<uint32_t> rank; ///< op -> position
};

} // namespace

std::vector<uint32_t> PeakMover::waiting() const {
  std::vector<uint32_t> result;
  for (uint32_t id = 0; id < graph.buffers.size(); ++id) {
    const OrderGraph::Buffer &buffer = graph.buffers[id];
    uint32_t first = UINT32_MAX, last = 0;
    bool touched = false;
    for (uint32_t user : buffer.users) {
      first = std::min(first, rank[user]), last = std::max(last, rank[user]);
      touched |= rank[user] == position;
    }
    bool made = buffer.before || first < position, needed = buffer.after || last > position;
    if (!buffer.users.empty() && buffer.bytes > 0 && !touched && made && needed &&
        !(buffer.before && buffer.after))
      result.push_back(id);
  }
  std::sort(result.begin(), result.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(-graph.buffers[a].bytes, a) < std::pair(-graph.buffers[b].bytes, b);
  });
  return result;
}

Order PeakMover::moveUsers(uint32_t buffer, bool hoist) const {
  if (hoist ? graph.buffers[buffer].after : graph.buffers[buffer].before)
    return {};
  auto isBeyond = [&](uint32_t op) { return hoist ? rank[op] > position : rank[op] < position; };
  std::vector<char> moved(order.size());
  std::vector<uint32_t> open;
  std::copy_if(graph.buffers[buffer].users.begin(), graph.buffers[buffer].users.end(),
               std::back_inserter(open), isBeyond);
  while (!open.empty()) {
    uint32_t op = open.back();
    open.pop_back();
    if (rank[op] == position)
      return {}; // needs what the op at the peak makes, or is needed by it
    if (!isBeyond(op) || moved[op])
      continue;
    moved[op] = true;
    const std::vector<uint32_t> &next = hoist ? graph.ops[op].before : graph.ops[op].after;
    open.insert(open.end(), next.begin(), next.end());
  }
  const uint32_t first = hoist ? position : 0, last = hoist ? uint32_t(order.size()) : position + 1;
  Order result(order.begin(), order.begin() + first);
  for (bool takesMoved : {hoist, !hoist})
    std::copy_if(order.begin() + first, order.begin() + last, std::back_inserter(result),
                 [&](uint32_t op) { return bool(moved[op]) == takesMoved; });
  result.insert(result.end(), order.begin() + last, order.end());
  return result;
}

/// One accepted move around `position`. Returns whether there was one.
static bool improveAt(const OrderGraph &graph, Order &order, Profile &profile, uint32_t position,
                      int64_t &steps, int64_t maxSteps) {
  constexpr size_t kTries = 48; // small buffers cannot lower a peak by much
  PeakMover mover(graph, order, position);
  std::vector<uint32_t> waiting = mover.waiting();
  waiting.resize(std::min(waiting.size(), kTries));
  steps += 8 * int64_t(graph.buffers.size());
  for (uint32_t buffer : waiting)
    for (bool hoist : {true, false}) {
      if (steps > maxSteps)
        return false;
      Order next = mover.moveUsers(buffer, hoist);
      steps += 2 * int64_t(order.size());
      if (next.empty())
        continue;
      Profile nextProfile = profileOf(graph, next, steps);
      if (!nextProfile.betterThan(profile))
        continue;
      order = std::move(next);
      profile = std::move(nextProfile);
      return true;
    }
  return false;
}

void improveAroundPeak(const OrderGraph &graph, Order &order, int64_t &steps, int64_t maxSteps) {
  Profile profile = profileOf(graph, order, steps);
  while (steps < maxSteps) {
    auto begin = profile.bytes.begin(), end = profile.bytes.end();
    auto first = std::find(begin, end, profile.peak);
    if (first == end)
      return; // the peak is before the first op
    auto last = std::find(profile.bytes.rbegin(), profile.bytes.rend(), profile.peak);
    uint32_t front = uint32_t(first - begin), back = uint32_t(profile.bytes.rend() - last - 1);
    if (!improveAt(graph, order, profile, front, steps, maxSteps) &&
        (front == back || !improveAt(graph, order, profile, back, steps, maxSteps)))
      return;
  }
}

} // namespace detail

/// Whether every index and size can be meant.
static Status validate(const OrderProblem &problem) {
  auto malformed = [](const std::string &what) {
    return Error{ExitCode::Internal, "issue order: " + what, ""};
  };
  int64_t total = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (int64_t bytes = problem.buffers[i].bytes; bytes < 0 || __builtin_add_overflow(total, bytes, &total))
      return malformed("buffer " + std::to_string(i) + " of " + std::to_string(bytes) +
                       " bytes is negative, or the sum is beyond 2^63 - 1");
  for (size_t i = 0; i < problem.ops.size(); ++i) {
    const OrderOp &op = problem.ops[i];
    int64_t sum = 0;
    if (op.workspace < 0 || __builtin_add_overflow(total, op.workspace, &sum))
      return malformed("op " + std::to_string(i) + " has a workspace of " + std::to_string(op.workspace) +
                       " bytes");
    for (const std::vector<uint32_t> *list : {&op.reads, &op.writes})
      for (uint32_t buffer : *list)
        if (buffer >= problem.buffers.size())
          return malformed("op " + std::to_string(i) + " touches buffer " + std::to_string(buffer) + " of " +
                           std::to_string(problem.buffers.size()));
    for (uint32_t earlier : op.after)
      if (earlier >= i)
        return malformed("op " + std::to_string(i) + " is to come after op " + std::to_string(earlier) +
                         ", which is not before it in the program");
  }
  return {};
}

/// Candidates from list scheduling, from the front, from the back, and one after the other.
static std::vector<Order> schedules(const OrderGraph &graph, const Order &program, int64_t &steps,
                                    int64_t maxSteps) {
  const OrderGraph turned = graph.reversed();
  auto forward = [&](const Order &base, Policy policy) {
    return listSchedule(graph, base, policy, steps, maxSteps);
  };
  auto backward = [&](Order base, Policy policy) {
    std::reverse(base.begin(), base.end());
    Order order = listSchedule(turned, base, policy, steps, maxSteps);
    std::reverse(order.begin(), order.end());
    return order;
  };
  std::vector<Order> candidates = {forward(program, Policy::FreeFirst), backward(program, Policy::FreeFirst)};
  for (bool front : {false, true})
    if (const Order base = candidates[front ? 1 : 0]; !base.empty())
      candidates.push_back(front ? forward(base, Policy::FreeFirst) : backward(base, Policy::FreeFirst));
  candidates.push_back(forward(program, Policy::LeastDelta));
  candidates.push_back(backward(program, Policy::LeastDelta));
  std::erase_if(candidates, [](const Order &order) { return order.empty(); });
  return candidates;
}

/// Local moves around the peak and early freeing by turns, until neither helps. Returns the peak.
static int64_t polish(const OrderGraph &graph, Order &order, int64_t &steps, int64_t maxSteps) {
  for (int64_t peak = INT64_MAX;;) {
    improveAroundPeak(graph, order, steps, maxSteps);
    const int64_t moved = profileOf(graph, order, steps).peak;
    Order hoisted = hoistFreeing(graph, order, moved, steps, 2 * maxSteps);
    if (!hoisted.empty())
      order = std::move(hoisted);
    Order delayed = delayMaking(graph, order, moved, steps, 2 * maxSteps);
    if (!delayed.empty())
      order = std::move(delayed);
    const int64_t now = profileOf(graph, order, steps).peak;
    if (now >= std::min(peak, moved) || steps >= maxSteps)
      return now;
    peak = now;
  }
}

Result<IssueOrder> orderForMemory(const OrderProblem &problem, const OrderOptions &options) {
  if (Status status = validate(problem); !status)
    return status.error();
  const OrderGraph graph(problem);
  Order program(problem.ops.size());
  std::iota(program.begin(), program.end(), 0);
  int64_t steps = 0;
  const int64_t programPeak = profileOf(graph, program, steps).peak;

  std::vector<Order> starts = schedules(graph, program, steps, options.maxSteps / 2);
  starts.insert(starts.begin(), program);
  IssueOrder result = {program, programPeak, programPeak};
  // The best start and the program itself are worth local moves; what is no better than the program stays as
  // it is.
  std::vector<std::pair<int64_t, size_t>> ranked;
  for (size_t i = 0; i < starts.size(); ++i)
    ranked.push_back({profileOf(graph, starts[i], steps).peak, i});
  std::sort(ranked.begin(), ranked.end());
  for (auto [peak, i] : ranked) {
    if (i != 0 && i != ranked[0].second)
      continue;
    const int64_t share = steps + (options.maxSteps - steps) / 2;
    if (int64_t improved = polish(graph, starts[i], steps, share); improved < result.peakBytes)
      result.order = starts[i], result.peakBytes = improved;
  }
  return result;
}

} // namespace ds::analysis
