//===- OrderGraph.cpp - Dependences and live bytes of an order problem ----------===//

#include "OrderGraph.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>

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

  /// Whether to issue a user of buffer `id` changes what other users of it make or free.
  bool changesOthers(uint32_t id) const {
    const OrderGraph::Buffer &buffer = graph.buffers[id];
    return (!buffer.before && left[id] == buffer.users.size()) || (!buffer.after && left[id] == 2);
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

static std::vector<uint32_t> ranksOf(const Order &order) {
  std::vector<uint32_t> rank(order.size());
  for (uint32_t i = 0; i < order.size(); ++i)
    rank[order[i]] = i;
  return rank;
}

namespace {

/// What comes next among ready ops, the least first. An entry stands for its op as long as that has not been
/// issued and changes the live bytes by as much as when the entry was made.
struct Entry {
  int64_t key = 0;
  uint32_t rank = 0, op = 0;
  int64_t delta = 0;
  bool operator>(const Entry &other) const { return std::pair(key, rank) > std::pair(other.key, other.rank); }
};
using Queue = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;

/// An order as it grows. Of the ready ops, that is next which `hurryOf` gives the least key and does not lift
/// the live bytes beyond a peak; where there is none, the least by `rank`. Only what touches a buffer that
/// gets its first user, or has one left, is asked anew: of 500 updates that are ready, most are not.
template <class HurryOf>
class Scheduler {
public:
  Scheduler(const OrderGraph &graph, const std::vector<uint32_t> &rank, int64_t peak, HurryOf hurryOf)
      : graph(graph), rank(rank), peak(peak), hurryOf(hurryOf), play(graph), missing(graph.ops.size()),
        isReady(graph.ops.size()) {
    for (uint32_t op = 0; op < missing.size(); ++op)
      if ((missing[op] = uint32_t(graph.ops[op].before.size())) == 0)
        add(op);
  }

  /// The order; empty when `steps` would exceed `maxSteps`. Steps are those of one who looks at each ready op
  /// each time.
  Order run(int64_t &steps, int64_t maxSteps) {
    Order order;
    while (numReady > 0) {
      if ((steps += weight) > maxSteps)
        return {};
      order.push_back(takeNext());
      issue(order.back());
    }
    return order;
  }

private:
  /// Steps to look at `op`.
  int64_t weightOf(uint32_t op) const { return 2 + 2 * int64_t(graph.ops[op].buffers.size()); }

  void push(uint32_t op) {
    const int64_t delta = play.preview(op).second;
    if (std::optional<std::pair<int64_t, uint32_t>> key = hurryOf(op, delta))
      hurried.push({key->first, key->second, op, delta});
  }

  void add(uint32_t op) {
    isReady[op] = true;
    ++numReady, weight += weightOf(op);
    rest.push({0, rank[op], op, 0});
    push(op);
  }

  uint32_t takeNext() {
    std::vector<Entry> tooLarge;
    std::optional<uint32_t> next;
    for (; !next && !hurried.empty(); hurried.pop()) {
      const Entry entry = hurried.top();
      const auto [during, delta] = play.preview(entry.op);
      if (!isReady[entry.op] || delta != entry.delta)
        continue;
      if (during <= peak)
        next = entry.op;
      else
        tooLarge.push_back(entry);
    }
    for (const Entry &entry : tooLarge)
      hurried.push(entry);
    while (!next) {
      if (isReady[rest.top().op])
        next = rest.top().op;
      rest.pop();
    }
    return *next;
  }

  void issue(uint32_t op) {
    isReady[op] = false;
    --numReady, weight -= weightOf(op);
    std::vector<uint32_t> touched;
    for (uint32_t id : graph.ops[op].buffers)
      if (play.changesOthers(id))
        touched.insert(touched.end(), graph.buffers[id].users.begin(), graph.buffers[id].users.end());
    play.issue(op);
    for (uint32_t other : touched)
      if (isReady[other])
        push(other);
    for (uint32_t next : graph.ops[op].after)
      if (--missing[next] == 0)
        add(next);
  }

  const OrderGraph &graph;
  const std::vector<uint32_t> &rank;
  const int64_t peak;
  const HurryOf hurryOf;
  Play play;
  std::vector<uint32_t> missing; ///< predecessors that are not issued
  std::vector<char> isReady;
  Queue hurried, rest;
  int64_t numReady = 0, weight = 0; ///< steps to look at all that are ready
};

} // namespace

Order listSchedule(const OrderGraph &graph, const Order &base, Policy policy, int64_t &steps,
                   int64_t maxSteps) {
  const std::vector<uint32_t> rank = ranksOf(base);
  auto hurryOf = [&](uint32_t op, int64_t delta) {
    return std::optional(
        std::pair(policy == Policy::FreeFirst ? std::min<int64_t>(delta, 0) : delta, rank[op]));
  };
  return Scheduler(graph, rank, INT64_MAX, hurryOf).run(steps, maxSteps);
}

Order hoistFreeing(const OrderGraph &graph, const Order &base, int64_t peak, int64_t &steps,
                   int64_t maxSteps) {
  const std::vector<uint32_t> rank = ranksOf(base);
  auto hurryOf = [&](uint32_t op, int64_t delta) {
    return delta > 0 ? std::nullopt : std::optional(std::pair(int64_t(0), op));
  };
  return Scheduler(graph, rank, peak, hurryOf).run(steps, maxSteps);
}

Order delayMaking(const OrderGraph &graph, const Order &base, int64_t peak, int64_t &steps,
                  int64_t maxSteps) {
  const OrderGraph turned = graph.reversed();
  const std::vector<uint32_t> rank = ranksOf(Order(base.rbegin(), base.rend()));
  auto hurryOf = [&](uint32_t op, int64_t delta) {
    const bool stays = graph.ops[op].isView ? delta > 0 : delta >= 0;
    return stays ? std::nullopt : std::optional(std::pair(int64_t(0), rank[op]));
  };
  Order order = Scheduler(turned, rank, peak, hurryOf).run(steps, maxSteps);
  std::reverse(order.begin(), order.end());
  return order;
}

} // namespace ds::analysis::detail
