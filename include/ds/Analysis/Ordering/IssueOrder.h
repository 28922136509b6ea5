//===- IssueOrder.h - The order of ops that needs the least memory --------------===//
//
// Given the ops of a segment in program order, finds a topological order with a lower peak: a list scheduler
// that follows liveness from both ends of the step, then local moves around the peak. The program's own order
// is a candidate like the others, so that the result is never worse. The price: peaks are of live bytes, not
// of a packed arena, and nothing is said about time; whoever overlaps streams restricts the order by extra
// edges.
//
// Example: ten values of 100 bytes are made, then added one after the other to a sum of 1 byte. In program
// order all ten are live beside the sum: 1001 bytes. Each made right before it is added, 101 are.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_ANALYSIS_ORDERING_ISSUEORDER_H
#define DS_ANALYSIS_ORDERING_ISSUEORDER_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::analysis {

/// A piece of memory and who touches it. Values that share memory (views, in-place results) are one buffer.
struct OrderBuffer {
  int64_t bytes = 0;
  bool liveIn = false; ///< holds a value before the first op
  bool liveOut =
      false; ///< holds a value after the last op; liveIn and liveOut: a state, it never counts as freed
};

/// One op. Dependences follow from program order: an access that writes stays behind all earlier accesses of
/// the buffer, one that reads stays behind the last earlier write. A state's update therefore stays behind
/// all reads of the old value.
struct OrderOp {
  std::vector<uint32_t> reads, writes; ///< buffers; one that is read and written in place is in both
  std::vector<uint32_t> after;         ///< further ops that must come first (smaller indices)
  int64_t workspace = 0;               ///< bytes needed only while it runs
};

struct OrderProblem {
  std::vector<OrderBuffer> buffers;
  std::vector<OrderOp> ops; ///< in program order
};

struct OrderOptions {
  int64_t maxSteps = 100'000'000; ///< effort; a step is about a nanosecond
};

struct IssueOrder {
  std::vector<uint32_t> order;  ///< order[k] is the op issued k-th
  int64_t peakBytes = 0;        ///< of live bytes, with workspaces
  int64_t programPeakBytes = 0; ///< what the program order needs; >= peakBytes
};

/// An order of the ops with a peak at most that of the program order, or why the problem is malformed (an
/// index out of range, a negative size, an `after` that points forward, sums beyond 2^63 - 1). Equal input,
/// equal output.
Result<IssueOrder> orderForMemory(const OrderProblem &problem, const OrderOptions &options = {});

/// What is wrong with `result`, in one sentence, or nothing. Shares no code with the solver: replays the
/// order on the buffers, checks that every read sees the value the program order gives it, and counts the
/// peak anew.
std::optional<std::string> check(const IssueOrder &result, const OrderProblem &problem);

} // namespace ds::analysis

#endif // DS_ANALYSIS_ORDERING_ISSUEORDER_H
