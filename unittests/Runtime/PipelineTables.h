//===- PipelineTables.h - Schedules of pipelines, made by hand ---------------------===//
//
// Chunk c of a model runs on stage c modulo the number of stages. A schedule is made from the order in which
// each stage computes: all stages are played together, and what a stage has made is passed on at once, so
// that the entries of all stages are parts of one order, in which ranks can meet.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_PIPELINETABLES_H
#define DS_UNITTESTS_RUNTIME_PIPELINETABLES_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace ds::rt::test {

enum class PipelineKind : uint8_t { GPipe, OneForwardOneBackward, Interleaved };

struct Pipeline {
  PipelineKind kind = PipelineKind::GPipe;
  uint32_t stages = 1, chunks = 1; ///< of each stage
  uint32_t microBatches = 1;
  uint32_t numChunks() const { return stages * chunks; }
  uint32_t stageOf(uint32_t chunk) const { return chunk % stages; }
  /// Whether what `chunk` makes for the next one, or gets back from it, is sent.
  bool crosses(uint32_t chunk) const { return chunk + 1 < numChunks() && stages > 1; }
};

/// Four chunks and as many micro-batches.
inline Pipeline fourLayers(PipelineKind kind, uint32_t stages) { return {kind, stages, 4 / stages, 4}; }

/// What a stage does in one execution. Values go forth from `chunk` to the next one, gradients back to
/// `chunk` from it.
struct PipelineItem {
  enum Kind : uint8_t { Forward, Backward, SendValue, ReceiveValue, SendGradient, ReceiveGradient };
  Kind kind;
  uint32_t chunk, microBatch;
  bool isTransfer() const { return kind >= SendValue; }
  auto operator<=>(const PipelineItem &) const = default;
};
using PipelineTable = std::vector<std::vector<PipelineItem>>; ///< by stage, in order

namespace detail {

/// The forwards, or backwards, of a stage in groups of as many micro-batches as there are stages: chunk by
/// chunk. With one chunk that is one micro-batch after the other.
inline std::vector<PipelineItem> inGroups(const Pipeline &p, uint32_t stage, PipelineItem::Kind kind) {
  std::vector<PipelineItem> items;
  for (uint32_t first = 0; first < p.microBatches; first += p.stages)
    for (uint32_t v = 0; v < p.chunks; ++v)
      for (uint32_t m = first; m < std::min(first + p.stages, p.microBatches); ++m) {
        const uint32_t number = kind == PipelineItem::Forward ? v : p.chunks - 1 - v;
        items.push_back({kind, number * p.stages + stage, m});
      }
  return items;
}

/// Forwards that a stage does before it goes on in turns.
inline size_t warmUp(const Pipeline &p, uint32_t stage) {
  switch (p.kind) {
  case PipelineKind::GPipe:
    break;
  case PipelineKind::OneForwardOneBackward:
    return p.stages - 1 - stage;
  case PipelineKind::Interleaved:
    return 2 * (p.stages - 1 - stage) + (p.chunks - 1) * p.stages;
  }
  return SIZE_MAX;
}

inline std::vector<PipelineItem> computesOf(const Pipeline &p, uint32_t stage) {
  const std::vector<PipelineItem> forwards = inGroups(p, stage, PipelineItem::Forward),
                                  backwards = inGroups(p, stage, PipelineItem::Backward);
  const size_t ahead = std::min(warmUp(p, stage), forwards.size());
  std::vector<PipelineItem> order(forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(ahead));
  for (size_t i = 0; i < backwards.size(); ++i) {
    if (ahead + i < forwards.size())
      order.push_back(forwards[ahead + i]);
    order.push_back(backwards[i]);
  }
  return order;
}

} // namespace detail

/// The table of a pipeline; empty where its stages wait for each other for ever.
inline PipelineTable tableOf(const Pipeline &p) {
  PipelineTable table(p.stages), orders;
  std::set<PipelineItem> done; // forwards and backwards
  for (uint32_t stage = 0; stage < p.stages; ++stage)
    orders.push_back(detail::computesOf(p, stage));
  const auto isReady = [&](const PipelineItem &item) {
    const uint32_t c = item.chunk, m = item.microBatch;
    if (item.kind == PipelineItem::Forward)
      return c == 0 || done.count({PipelineItem::Forward, c - 1, m}) > 0;
    return done.count(c + 1 < p.numChunks() ? PipelineItem{PipelineItem::Backward, c + 1, m}
                                            : PipelineItem{PipelineItem::Forward, c, m}) > 0;
  };
  const auto pass = [&](const PipelineItem &item) {
    const uint32_t c = item.chunk, m = item.microBatch;
    if (item.kind == PipelineItem::Forward && p.crosses(c)) {
      table[p.stageOf(c)].push_back({PipelineItem::SendValue, c, m});
      table[p.stageOf(c + 1)].push_back({PipelineItem::ReceiveValue, c, m});
    } else if (item.kind == PipelineItem::Backward && c > 0 && p.crosses(c - 1)) {
      table[p.stageOf(c)].push_back({PipelineItem::SendGradient, c - 1, m});
      table[p.stageOf(c - 1)].push_back({PipelineItem::ReceiveGradient, c - 1, m});
    }
  };
  std::vector<size_t> places(p.stages);
  bool moved = true, ended = false;
  while (moved && !ended) {
    moved = false, ended = true;
    std::vector<PipelineItem> round; // what stages do at one time
    for (uint32_t stage = 0; stage < p.stages; ++stage) {
      ended &= places[stage] == orders[stage].size();
      if (places[stage] < orders[stage].size() && isReady(orders[stage][places[stage]]))
        round.push_back(orders[stage][places[stage]++]);
    }
    for (const PipelineItem &item : round) {
      table[p.stageOf(item.chunk)].push_back(item);
      done.insert(item);
      moved = true;
    }
    for (const PipelineItem &item : round)
      pass(item);
  }
  return ended ? table : PipelineTable();
}

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_PIPELINETABLES_H
