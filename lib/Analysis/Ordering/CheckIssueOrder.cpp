//===- CheckIssueOrder.cpp - The judge of issue orders --------------------------===//
//
// Shares no code with the solver and knows no edges: it runs the program in its own order and in the new one,
// with the number of the writing op standing for every value, and compares what each op gets to see.
//
//===---------------------------------------------------------------------------===//

#include "ds/Analysis/Ordering/IssueOrder.h"

#include <algorithm>
#include <limits>

namespace ds::analysis {

namespace {

/// For each op the writers of the buffers it touches at the time it runs; at the end, the last writers.
using Sights = std::vector<std::vector<int64_t>>;

constexpr int64_t kNobody = -1;

template <class Sequence>
Sights sightsOf(const OrderProblem &problem, const Sequence &sequence) {
  std::vector<int64_t> writer(problem.buffers.size(), kNobody);
  Sights sights(problem.ops.size());
  for (size_t id : sequence) {
    const OrderOp &op = problem.ops[id];
    for (uint32_t buffer : op.reads)
      sights[id].push_back(writer[buffer]);
    for (uint32_t buffer : op.writes)
      sights[id].push_back(writer[buffer]); // what it overwrites
    for (uint32_t buffer : op.writes)
      writer[buffer] = int64_t(id);
  }
  sights.push_back(writer);
  return sights;
}

/// The most bytes alive while some op runs, from the first and last position at which each buffer is touched.
int64_t peakOf(const OrderProblem &problem, const std::vector<uint32_t> &order) {
  const size_t n = order.size();
  std::vector<size_t> first(problem.buffers.size(), n), last(problem.buffers.size(), 0);
  for (size_t at = 0; at < n; ++at)
    for (const auto *list : {&problem.ops[order[at]].reads, &problem.ops[order[at]].writes})
      for (uint32_t buffer : *list)
        first[buffer] = std::min(first[buffer], at), last[buffer] = std::max(last[buffer], at);
  std::vector<int64_t> change(n + 1, 0);
  int64_t before = 0;
  for (size_t id = 0; id < problem.buffers.size(); ++id) {
    const OrderBuffer &buffer = problem.buffers[id];
    bool touched = first[id] < n;
    if (!touched && !buffer.liveIn && !buffer.liveOut)
      continue;
    size_t begin = buffer.liveIn || !touched ? 0 : first[id];
    size_t end = buffer.liveOut || !touched ? n : last[id] + 1;
    change[begin] += buffer.bytes, change[end] -= buffer.bytes;
    if (begin == 0 && (buffer.liveIn || !touched))
      before += buffer.bytes;
  }
  int64_t alive = 0, peak = before;
  for (size_t at = 0; at < n; ++at) {
    alive += change[at];
    peak = std::max(peak, alive + problem.ops[order[at]].workspace);
  }
  return peak;
}

std::vector<uint32_t> programOrder(const OrderProblem &problem) {
  std::vector<uint32_t> order;
  for (uint32_t id = 0; id < problem.ops.size(); ++id)
    order.push_back(id);
  return order;
}

} // namespace

std::optional<std::string> check(const IssueOrder &result, const OrderProblem &problem) {
  const size_t n = problem.ops.size();
  if (result.order.size() != n)
    return "the order has " + std::to_string(result.order.size()) + " ops, but the program " +
           std::to_string(n);
  std::vector<int64_t> position(n, -1);
  for (size_t at = 0; at < n; ++at) {
    uint32_t id = result.order[at];
    if (id >= n || position[id] >= 0)
      return "position " + std::to_string(at) + " issues op " + std::to_string(id) +
             (id >= n ? ", which does not exist" : " a second time");
    position[id] = int64_t(at);
  }
  for (size_t id = 0; id < n; ++id)
    for (uint32_t earlier : problem.ops[id].after)
      if (earlier >= n || position[earlier] >= position[id])
        return "op " + std::to_string(id) + " is issued before op " + std::to_string(earlier) +
               ", which must come first";
  const Sights expected = sightsOf(problem, programOrder(problem)), seen = sightsOf(problem, result.order);
  for (size_t id = 0; id <= n; ++id)
    if (expected[id] != seen[id])
      return id < n ? "op " + std::to_string(id) + " sees another value than in the program's order"
                    : std::string("a buffer ends with another value than in the program's order");
  int64_t peak = peakOf(problem, result.order), programPeak = peakOf(problem, programOrder(problem));
  if (peak != result.peakBytes || programPeak != result.programPeakBytes || peak > programPeak)
    return "the peak is " + std::to_string(peak) + " bytes (program order: " + std::to_string(programPeak) +
           "), but the result says " + std::to_string(result.peakBytes) + " (" +
           std::to_string(result.programPeakBytes) + ")";
  return std::nullopt;
}

} // namespace ds::analysis
