//===- OrderGraph.cpp - Dependences and live bytes of an order problem ----------===//

#include "OrderGraph.h"

#include <algorithm>

namespace ds::analysis::detail {

static void sortUnique(std::vector<uint32_t> &values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

OrderGraph::OrderGraph(const OrderProblem &problem) {
  for (const OrderBuffer &buffer : problem.buffers)
    buffers.push_back({buffer.bytes, buffer.liveIn, buffer.liveOut, {}});
  ops.resize(problem.ops.size());
  std::vector<int64_t> lastWriter(buffers.size(), -1);
  std::vector<std::vector<uint32_t>> readers(buffers.size()); // since the last write
  for (uint32_t id = 0; id < ops.size(); ++id) {
    const OrderOp &source = problem.ops[id];
    for (uint32_t buffer : source.reads)
      if (lastWriter[buffer] >= 0)
        addEdge(uint32_t(lastWriter[buffer]), id);
    for (uint32_t buffer : source.writes) {
      if (lastWriter[buffer] >= 0)
        addEdge(uint32_t(lastWriter[buffer]), id);
      for (uint32_t reader : readers[buffer])
        addEdge(reader, id);
    }
    for (uint32_t earlier : source.after)
      addEdge(earlier, id);
    for (uint32_t buffer : source.reads)
      readers[buffer].push_back(id);
    for (uint32_t buffer : source.writes) {
      lastWriter[buffer] = id;
      readers[buffer].clear();
    }
    Op &op = ops[id];
    op.workspace = source.workspace;
    op.isView = source.writes.empty();
    op.buffers = source.reads;
    op.buffers.insert(op.buffers.end(), source.writes.begin(), source.writes.end());
    sortUnique(op.buffers);
    for (uint32_t buffer : op.buffers)
      buffers[buffer].users.push_back(id);
  }
  for (Op &op : ops)
    sortUnique(op.before), sortUnique(op.after);
}

void OrderGraph::addEdge(uint32_t from, uint32_t to) {
  if (from == to)
    return;
  ops[from].after.push_back(to);
  ops[to].before.push_back(from);
}

OrderGraph OrderGraph::reversed() const {
  OrderGraph result = *this;
  for (Op &op : result.ops)
    std::swap(op.before, op.after);
  for (Buffer &buffer : result.buffers)
    std::swap(buffer.before, buffer.after);
  return result;
}

int64_t OrderGraph::startBytes() const {
  int64_t bytes = 0;
  for (const Buffer &buffer : buffers)
    if (buffer.before || (buffer.after && buffer.users.empty()))
      bytes += buffer.bytes;
  return bytes;
}

namespace {

/// The buffers of a graph as ops are issued one by one.
class Play {
public:
  explicit Play(const OrderGraph &graph)
      : graph(graph), live(graph.startBytes()), left(graph.buffers.size()) {
    for (size_t i = 0; i < left.size(); ++i)
      left[i] = uint32_t(graph.buffers[i].users.size());
  }

  /// Live bytes while `op` would run, and how they change once it has run.
  std::pair<int64_t, int64_t> preview(uint32_t op) const {
    int64_t made = 0, freed = 0;
    for (uint32_t id : graph.ops[op].buffers) {
      const OrderGraph::Buffer &buffer = graph.buffers[id];
      if (!buffer.before && left[id] == buffer.users.size())
        made += buffer.bytes;
      if (!buffer.after && left[id] == 1)
        freed += buffer.bytes;
    }
    return {live + made + graph.ops[op].workspace, made - freed};
  }

  /// Issues `op` and returns the live bytes while it runs.
  int64_t issue(uint32_t op) {
    auto [during, delta] = preview(op);
    live += delta;
    for (uint32_t id : graph.ops[op].buffers)
      --left[id];
    return during;
  }

private:
  const OrderGraph &graph;
  int64_t live;
  std::vector<uint32_t> left; ///< ops that have yet to touch the buffer
};

} // namespace

Profile profileOf(const OrderGraph &graph, const Order &order, int64_t &steps) {
  Play play(graph);
  Profile profile;
  for (uint32_t op : order) {
    profile.bytes.push_back(play.issue(op));
    profile.peak = std::max(profile.peak, profile.bytes.back());
    steps += 4 + 4 * int64_t(graph.ops[op].buffers.size());
  }
  profile.atPeak = uint32_t(std::count(profile.bytes.begin(), profile.bytes.end(), profile.peak));
  profile.peak = std::max(profile.peak, graph.startBytes());
  return profile;
}

namespace {

/// Ops whose predecessors have been issued, as an order grows.
class Ready {
public:
  explicit Ready(const OrderGraph &graph) : graph(graph), missing(graph.ops.size()) {
    for (uint32_t op = 0; op < missing.size(); ++op)
      if ((missing[op] = uint32_t(graph.ops[op].before.size())) == 0)
        ops.push_back(op);
  }
  void issue(size_t at) {
    const uint32_t op = ops[at];
    ops[at] = ops.back();
    ops.pop_back();
    for (uint32_t next : graph.ops[op].after)
      if (--missing[next] == 0)
        ops.push_back(next);
  }

  const OrderGraph &graph;
  std::vector<uint32_t> ops, missing;
};

} // namespace

static std::vector<uint32_t> ranksOf(const Order &order) {
  std::vector<uint32_t> rank(order.size());
  for (uint32_t i = 0; i < order.size(); ++i)
    rank[order[i]] = i;
  return rank;
}

/// A topological order that always takes the ready op with the least key; empty when `steps` would exceed
/// `maxSteps`. `keyOf` is given an op, the live bytes while it would run, and how they change once it has.
template <class KeyOf>
static Order schedule(const OrderGraph &graph, KeyOf keyOf, int64_t &steps, int64_t maxSteps) {
  Ready ready(graph);
  Play play(graph);
  Order order;
  while (!ready.ops.empty()) {
    size_t best = 0;
    std::pair<int64_t, uint32_t> bestKey = {INT64_MAX, UINT32_MAX};
    for (size_t i = 0; i < ready.ops.size(); ++i) {
      const uint32_t op = ready.ops[i];
      auto [during, delta] = play.preview(op);
      if (std::pair<int64_t, uint32_t> key = keyOf(op, during, delta); key < bestKey)
        bestKey = key, best = i;
      steps += 2 + 2 * int64_t(graph.ops[op].buffers.size());
    }
    if (steps > maxSteps)
      return {};
    order.push_back(ready.ops[best]);
    play.issue(order.back());
    ready.issue(best);
  }
  return order;
}

Order listSchedule(const OrderGraph &graph, const Order &base, Policy policy, int64_t &steps,
                   int64_t maxSteps) {
  auto keyOf = [&, rank = ranksOf(base)](uint32_t op, int64_t, int64_t delta) {
    return std::pair(policy == Policy::FreeFirst ? std::min<int64_t>(delta, 0) : delta, rank[op]);
  };
  return schedule(graph, keyOf, steps, maxSteps);
}

Order hoistFreeing(const OrderGraph &graph, const Order &base, int64_t peak, int64_t &steps,
                   int64_t maxSteps) {
  auto keyOf = [&, rank = ranksOf(base)](uint32_t op, int64_t during, int64_t delta) {
    const bool waits = delta > 0 || during > peak;
    return std::pair(int64_t(waits), waits ? rank[op] : op);
  };
  return schedule(graph, keyOf, steps, maxSteps);
}

Order delayMaking(const OrderGraph &graph, const Order &base, int64_t peak, int64_t &steps,
                  int64_t maxSteps) {
  const OrderGraph turned = graph.reversed();
  const Order last(base.rbegin(), base.rend());
  auto keyOf = [&, rank = ranksOf(last)](uint32_t op, int64_t during, int64_t delta) {
    const bool stays = graph.ops[op].isView ? delta > 0 : delta >= 0;
    return std::pair(int64_t(stays || during > peak), rank[op]);
  };
  Order order = schedule(turned, keyOf, steps, maxSteps);
  std::reverse(order.begin(), order.end());
  return order;
}

} // namespace ds::analysis::detail
