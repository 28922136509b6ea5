//===- Exchanges.cpp - What ranks of one machine do together ------------------------===//
//
// Each collective through the communicator that a step uses, by the bytes that a rank sends, until the
// slowest rank is done.
//
//===---------------------------------------------------------------------------===//
#include "Context.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {
namespace {

/// Where one collective of `elements` floats a rank's part has its operands.
struct Exchange {
  Calibration &c;
  uint64_t elements;
  Communicator &channel;
  float *in, *out;
  std::byte *staging;

  Exchange(Calibration &c, CollectiveKind kind, uint64_t elements)
      : c(c), elements(elements), channel(c.group->channel(0)) {
    const uint64_t whole = elements * c.world();
    in = reinterpret_cast<float *>(c.pool.data());
    out = in + (whole + 15) / 16 * 16;
    staging = reinterpret_cast<std::byte *>(out + (whole + 15) / 16 * 16);
    sums = {kind, Reduction::Sum, DType::F32, elements, {}, ""};
  }
  uint64_t bytes() const { return elements * sizeof(float); }
  /// Bytes that a rank sends, as the cost model counts them.
  double sentBytes() const {
    const CollectiveTraits &traits = traitsOf(sums.kind);
    return double(
        traits.sentBytes(bytes() * traits.count(traits.input, c.world()), sizeof(float), c.world()));
  }

private:
  Collective sums;
};

/// One row of the figures, and how it comes about.
struct Kind {
  CollectiveKind kind;
  const char *key;
  Status (*run)(const Exchange &);
};
constexpr Kind kKinds[] = {
    {CollectiveKind::AllGather, "all_gather",
     [](const Exchange &x) {
       return x.channel.allGather(x.in + x.c.group->rank() * x.elements, x.in, x.bytes(), "calibration");
     }},
    {CollectiveKind::ReduceScatter, "reduce_scatter",
     [](const Exchange &x) {
       return x.channel.reduceScatter(x.in, x.out, x.staging, x.elements, DType::F32, Reduction::Sum,
                                      "calibration");
     }},
    {CollectiveKind::AllReduce, "all_reduce",
     [](const Exchange &x) {
       return x.channel.allReduce(x.in, x.in, x.staging, x.elements, DType::F32, Reduction::Max,
                                  "calibration");
     }},
    {CollectiveKind::Broadcast, "broadcast",
     [](const Exchange &x) { return x.channel.broadcast(x.in, x.bytes(), 0, "calibration"); }},
    {CollectiveKind::AllToAll, "all_to_all",
     [](const Exchange &x) { return x.channel.allToAll(x.in, x.out, x.bytes(), "calibration"); }},
    {CollectiveKind::Send, "send_receive", [](const Exchange &x) {
       if (x.c.group->rank() == 0)
         return x.channel.send(x.in, x.bytes(), 1, "calibration");
       return x.c.group->rank() == 1 ? x.channel.recv(x.in, x.bytes(), 0, "calibration") : Status();
     }}};

/// [bytes sent, bytes per second] of one kind; `line` is what a straight line through its times says.
Result<std::vector<std::vector<double>>> measureKind(Calibration &c, const Kind &kind, double &spread,
                                                     Line &line) {
  std::vector<std::vector<double>> rows;
  std::vector<std::pair<double, double>> points;
  const std::vector<uint64_t> sizes = c.quick
                                          ? std::vector<uint64_t>{4096, 65536}
                                          : std::vector<uint64_t>{4096, 65536, 1 << 20, 8 << 20, 32 << 20};
  for (const uint64_t whole : sizes) { // bytes of the whole vector
    Exchange exchange(c, kind.kind, std::max<uint64_t>(1, whole / sizeof(float) / c.world()));
    c.pool.refill(2 * whole + 4096);
    SamplingOptions options = c.sampling();
    options.least = options.most =
        c.quick ? 3 : 9; // as many on every rank, or they would wait for each other
    options.budgetSeconds = 0;
    Result<Sample> sample = c.measure(kind.key, [&] {
      return measureRepeatedly([&](uint32_t) { return kind.run(exchange); }, options, c.clock);
    });
    if (!sample)
      return sample.error();
    points.emplace_back(exchange.sentBytes(), sample->seconds);
    rows.push_back({exchange.sentBytes(), exchange.sentBytes() / sample->seconds});
    spread = std::max(spread, sample->spread);
  }
  line = fitLine(points);
  return rows;
}

} // namespace

Status measureExchanges(Calibration &c) {
  if (c.world() < 2)
    return {};
  c.progress("collectives");
  struct Measured {
    std::vector<std::vector<double>> rows;
    std::string note;
    Line line;
  };
  std::vector<Measured> measured;
  for (const Kind &kind : kKinds) {
    double spread = 0;
    Line line;
    Result<std::vector<std::vector<double>>> rows = measureKind(c, kind, spread, line);
    if (!rows)
      return rows.error();
    measured.push_back({std::move(*rows), c.provenance(spread), line});
  }
  const Measured &gather = measured.front(), &message = measured.back();
  const double best = gather.rows.back()[1];
  c.figures.text("inside.name", c.group->transport() == "memory" ? "memory of one machine" : "Gloo", "");
  c.figures.number("inside.latency_seconds",
                   std::max(gather.line.fixed, 1e-9) / static_cast<double>(c.world() - 1), gather.note);
  c.figures.rows("inside.bytes_per_second",
                 {{static_cast<double>(c.world()), gather.line.rate > 0 ? gather.line.rate : best}},
                 gather.note + "; all-gathers");
  c.figures.number("inside.point_to_point_bytes_per_second",
                   message.line.rate > 0 ? message.line.rate : message.rows.back()[1], message.note);
  c.figures.add("inside.direct_reduce_scatter", "true",
                "each part goes straight to its rank, which sums in rank order");
  for (size_t i = 0; i < measured.size(); ++i)
    c.figures.rows(fmt::format("inside.collective_bytes_per_second.{}", kKinds[i].key), measured[i].rows,
                   measured[i].note);
  return {};
}

} // namespace ds::rt
