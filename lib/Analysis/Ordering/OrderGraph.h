//===- OrderGraph.h - Dependences and live bytes of an order problem ------------===//
//
// The solver's view of an OrderProblem: edges instead of program order, and for each op the buffers it
// touches. Read backwards (edges turned, first and last use exchanged) it is a graph of the same kind, so
// that one list scheduler works from both ends of the step.
//
// Example: op 0 writes %a of 10 bytes, op 1 reads it and writes %b of 20, op 2 reads %a and %b. Edges go from
// 0 to 1 and 2, and from 1 to 2; 10, 30 and 30 bytes are live. Backwards, op 2 comes first and seems to make
// both.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_ORDERING_ORDERGRAPH_H
#define DS_LIB_ANALYSIS_ORDERING_ORDERGRAPH_H

#include "ds/Analysis/Ordering/IssueOrder.h"

namespace ds::analysis::detail {

using Order = std::vector<uint32_t>;

struct OrderGraph {
  struct Buffer {
    int64_t bytes = 0;
    bool before = false, after = false; ///< holds a value before the first op, after the last
    std::vector<uint32_t> users;        ///< ops that touch it, ascending
  };
  struct Op {
    std::vector<uint32_t> before, after; ///< ops that must come earlier, later
    std::vector<uint32_t> buffers;       ///< that it touches, each once
    int64_t workspace = 0;
    bool isView = false; ///< writes nothing
  };
  std::vector<Buffer> buffers;
  std::vector<Op> ops;

  explicit OrderGraph(const OrderProblem &problem);

  /// The same problem with time running backwards.
  OrderGraph reversed() const;

  /// Bytes live before the first op.
  int64_t startBytes() const;

private:
  void addEdge(uint32_t from, uint32_t to);
};

/// Live bytes while each op of an order runs.
struct Profile {
  std::vector<int64_t> bytes; ///< by position
  int64_t peak = 0;
  uint32_t atPeak = 0; ///< number of positions that reach the peak

  /// Whether this is a better profile: a lower peak, or the same reached less often.
  bool betterThan(const Profile &other) const {
    return peak != other.peak ? peak < other.peak : atPeak < other.atPeak;
  }
};

/// Plays `order`. Adds the work done to `steps`.
Profile profileOf(const OrderGraph &graph, const Order &order, int64_t &steps);

/// How the list scheduler chooses among ready ops.
enum class Policy : uint8_t {
  FreeFirst,  ///< the op that frees most, if one frees anything; otherwise the first of the base order
  LeastDelta, ///< the op after which the fewest bytes are live; the first of the base order among equals
};

/// A topological order by list scheduling; empty when `steps` would exceed `maxSteps`. `base` is a
/// topological order.
Order listSchedule(const OrderGraph &graph, const Order &base, Policy policy, int64_t &steps,
                   int64_t maxSteps);

/// `base` with ops that free as much as they make moved to where they can first run, in program order, unless
/// the live bytes would exceed `peak`; what is freed is freed early, and what others wait for, as reductions
/// of gradients, can begin. Live bytes are nowhere more than in `base`: between its new and its old place
/// such an op only takes away. Empty when `steps` would exceed `maxSteps`.
Order hoistFreeing(const OrderGraph &graph, const Order &base, int64_t peak, int64_t &steps,
                   int64_t maxSteps);

/// `base` with ops that make more than they free, and views, moved to where the first op waits for them,
/// unless the live bytes would exceed `peak`: what backward computes again is computed when it is needed,
/// wherever the search has left it. Live bytes are nowhere more than in `base`, for the reason that
/// hoistFreeing gives, with time turned round. Empty when `steps` would exceed `maxSteps`.
Order delayMaking(const OrderGraph &graph, const Order &base, int64_t peak, int64_t &steps, int64_t maxSteps);

/// Moves ops out of the way of the peak while that makes the profile better and the budget lasts: those that
/// would free a buffer that is live at the peak go before it, those that make one go behind it.
void improveAroundPeak(const OrderGraph &graph, Order &order, int64_t &steps, int64_t maxSteps);

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_ORDERING_ORDERGRAPH_H
