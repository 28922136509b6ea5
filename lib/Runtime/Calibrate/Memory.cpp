//===- Memory.cpp - Launches, memory and arithmetic of generated kernels ----------===//
//
// The loops have the shape of generated kernels: work units divided among the threads, plain stores. What a
// kernel moves is counted as the cost model counts it: each operand once.
//
//===---------------------------------------------------------------------------===//
#include "Context.h"

#include "ds/Kernels/Kernels.h"

#include <algorithm>

namespace ds::rt {
namespace {

constexpr int64_t kFloat = sizeof(float);

/// Additions that take as long as the exponential of kernels/; the generated one takes twice as long, and
/// counts 40 in the cost model (lib/Codegen/KernelWork.cpp).
constexpr double kWorkOfExp = 20;

/// Seconds of a probe over the pool, of `streams` times `elements` floats, successive runs in different
/// places.
Result<Sample> measureStreams(Calibration &c, const std::string &figure, const ProbeCall &call,
                              int64_t streams) {
  constexpr int64_t kFootprint = int64_t(12) << 20, kMostPlaces = 6;
  const int64_t stride = (call.elements + 15) / 16 * 16, bytes = streams * stride * kFloat;
  const int64_t places = std::clamp<int64_t>(
      std::min<int64_t>(kFootprint, static_cast<int64_t>(c.pool.size())) / bytes, 1, kMostPlaces);
  c.pool.refill(static_cast<uint64_t>(places * bytes));
  auto *base = reinterpret_cast<float *>(c.pool.data());
  SamplingOptions options = c.sampling();
  options.warmUps = static_cast<uint32_t>(places);
  return c.measure(figure, [&] {
    return measureRepeatedly(
        [&](uint32_t run) {
          float *at = base + (run % places) * streams * stride;
          ProbeCall placed = call;
          placed.a = at;
          placed.b = call.kind == ProbeKind::Add ? at + stride : at;
          if (!placed.out) // sums have a place of their own
            placed.out = at + (placed.b - at) + stride;
          probe(placed, bestIsa());
          return Status();
        },
        options, c.clock);
  });
}

/// Seconds of out = a + b over `elements`.
Result<Sample> measureAdd(Calibration &c, const std::string &figure, int64_t elements, uint32_t threads) {
  return measureStreams(c, figure, {ProbeKind::Add, nullptr, nullptr, nullptr, elements, threads}, 3);
}

/// Seconds of a probe whose operands stay in the nearest caches.
Result<Sample> measureArithmetic(Calibration &c, const std::string &figure, ProbeKind kind, int64_t elements,
                                 int64_t width = 0) {
  auto *base = reinterpret_cast<float *>(c.pool.data());
  c.pool.refill(uint64_t(1) << 20);
  ProbeCall call{kind, base, base + (int64_t(1) << 17), base + (int64_t(1) << 18), elements, c.threads};
  call.width = width;
  return c.measure(figure, [&] {
    return measureRepeatedly([&](uint32_t) { return probe(call, bestIsa()), Status(); }, c.sampling(),
                             c.clock);
  });
}

/// What is left of a measurement when dividing it among the threads is taken off: not less than a quarter,
/// where noise would be left.
double withoutFork(const Calibration &c, const Sample &sample) {
  return std::max(sample.seconds - c.forkSeconds, sample.seconds / 4);
}

/// Kernels that write three operands again; the bytes count as the cost model counts them.
Status measureUpdates(Calibration &c) {
  std::vector<std::vector<double>> rows;
  double spread = 0;
  const std::vector<int64_t> sizes = c.quick
                                         ? std::vector<int64_t>{48 << 10}
                                         : std::vector<int64_t>{48 << 10, 1536 << 10, 24 << 20, 160 << 20};
  for (const int64_t bytes : sizes) {
    const int64_t elements = bytes / (4 * kFloat) / 64 * 64;
    Result<Sample> sample = measureStreams(
        c, "update_bytes_per_second", {ProbeKind::Update, nullptr, nullptr, nullptr, elements, c.threads}, 4);
    if (!sample)
      return sample.error();
    const auto moved = static_cast<double>(7 * elements * kFloat);
    rows.push_back({moved, moved / withoutFork(c, *sample)});
    spread = std::max(spread, sample->spread);
  }
  c.figures.rows("device.update_bytes_per_second", rows, c.provenance(spread));
  return {};
}

/// Kernels that add down columns, in strips of one and of four vectors.
Status measureColumns(Calibration &c) {
  std::vector<std::vector<double>> rows;
  double spread = 0;
  const std::vector<int64_t> sizes =
      c.quick ? std::vector<int64_t>{384 << 10}
              : std::vector<int64_t>{48 << 10, 384 << 10, 1536 << 10, 6 << 20, 24 << 20, 96 << 20};
  constexpr int64_t kWidth = 768; // of a row; a page holds one and a third
  for (const int64_t strip : {16, 64})
    for (const int64_t bytes : sizes) {
      ProbeCall call{ProbeKind::Columns, nullptr, nullptr, nullptr, bytes / kFloat, c.threads, kWidth, strip};
      call.out = reinterpret_cast<float *>(c.pool.data() + c.pool.size()) - kWidth;
      Result<Sample> sample = measureStreams(c, "column_bytes_per_second", call, 1);
      if (!sample)
        return sample.error();
      const auto moved = static_cast<double>(bytes);
      rows.push_back({static_cast<double>(strip * kFloat), moved, moved / withoutFork(c, *sample)});
      spread = std::max(spread, sample->spread);
    }
  c.figures.rows("device.column_bytes_per_second", rows, c.provenance(spread));
  return {};
}

/// The arithmetic of generated kernels: additions, and what does not go at their rate.
Status measureVectors(Calibration &c) {
  constexpr int64_t kElements = 1 << 16, kShort = 64, kLong = 1024;
  Result<Sample> exps = measureArithmetic(c, "vector_flops", ProbeKind::Exp, kElements);
  Result<Sample> divisions = measureArithmetic(c, "division_additions", ProbeKind::Divide, kElements);
  Result<Sample> roots = measureArithmetic(c, "root_additions", ProbeKind::Root, kElements);
  Result<Sample> shortRows = measureArithmetic(c, "row_seconds", ProbeKind::Rows, kElements, kShort);
  Result<Sample> longRows = measureArithmetic(c, "row_seconds", ProbeKind::Rows, kElements, kLong);
  for (const Result<Sample> *sample : {&exps, &divisions, &roots, &shortRows, &longRows})
    if (!*sample)
      return sample->error();
  const double rate = kWorkOfExp * kElements / withoutFork(c, *exps);
  c.figures.number("device.vector_flops", rate, c.provenance(exps->spread));
  auto additions = [&](const char *key, const Sample &sample) {
    c.figures.number(key, std::max(1.0, rate * withoutFork(c, sample) / kElements),
                     c.provenance(sample.spread));
  };
  additions("device.division_additions", *divisions);
  additions("device.root_additions", *roots);
  // Both add up every row twice; the elements are as many.
  const double rows = 2.0 * (kElements / kShort - kElements / kLong);
  c.figures.number("device.row_seconds", std::max((shortRows->seconds - longRows->seconds) / rows, 1e-12),
                   c.provenance(shortRows->spread));
  return {};
}

} // namespace

/// What a command costs that does nearly nothing, when its code and its operands have left the nearest
/// caches, as between two commands of the same kind in a step.
static Result<Sample> measureLaunch(Calibration &c) {
  Workbench bench(c.pool, c.threads);
  const uint32_t fill = bench.call(LibraryFn::Fill, {bench.buffer(DType::F32, {4})}, {0});
  if (Status status = bench.bind(); !status)
    return status.error();
  auto *away = reinterpret_cast<float *>(c.pool.data() + (uint64_t(1) << 20));
  constexpr int64_t kElements = int64_t(1) << 20; // 12 MiB are touched
  return c.measure("launch_seconds", [&] {
    SamplingOptions options = c.sampling();
    options.least = c.quick ? 3 : 21;
    options.before = [&] {
      probe({ProbeKind::Add, away, away + kElements, away + 2 * kElements, kElements, c.threads}, bestIsa());
    };
    return measureRepeatedly([&](uint32_t run) { return bench.run(fill, run); }, options, c.clock);
  });
}

Status measureLaunches(Calibration &c) {
  Result<Sample> launch = measureLaunch(c);
  if (!launch)
    return launch.error();
  c.launchSeconds = launch->seconds;
  c.figures.number("device.launch_seconds", launch->seconds, c.provenance(launch->spread));
  if (c.threads < 2)
    return {};
  const int64_t elements = 4096 * int64_t(c.threads);
  Result<Sample> split = measureAdd(c, "fork_seconds", elements, c.threads);
  Result<Sample> whole = measureAdd(c, "fork_seconds", elements, 1);
  if (!split || !whole)
    return split ? whole.error() : split.error();
  c.forkSeconds = std::max(split->seconds - whole->seconds / c.threads, 1e-8);
  c.figures.number("device.fork_seconds", c.forkSeconds, c.provenance(split->spread));
  return {};
}

Status measureMemory(Calibration &c) {
  std::vector<std::vector<double>> rows;
  double spread = 0;
  const std::vector<int64_t> sizes =
      c.quick ? std::vector<int64_t>{48 << 10, 768 << 10}
              : std::vector<int64_t>{48 << 10, 384 << 10, 1536 << 10, 6 << 20, 24 << 20, 96 << 20, 192 << 20};
  for (const int64_t bytes : sizes) {
    Result<Sample> sample = measureAdd(c, "cached_bytes_per_second", bytes / (3 * kFloat), c.threads);
    if (!sample)
      return sample.error();
    // A third of them is written without having been read, and so read all the same.
    rows.push_back(
        {static_cast<double>(bytes), static_cast<double>(bytes) * 4 / 3 / withoutFork(c, *sample)});
    spread = std::max(spread, sample->spread);
  }
  const std::string note = c.provenance(spread);
  c.memoryRate = rows.back()[1] * 3 / 4;
  c.figures.number("device.memory_bytes_per_second", c.memoryRate, note);
  c.figures.add("device.memory_efficiency", "1", "the figure above is what a kernel reaches");
  c.figures.rows("device.cached_bytes_per_second", rows, note);
  for (Status (*part)(Calibration &) : {measureColumns, measureUpdates, measureVectors})
    if (Status status = part(c); !status)
      return status;
  constexpr int64_t kMultiplyAdds = 1 << 24;
  Result<Sample> peak = measureArithmetic(c, "peak_flops", ProbeKind::MultiplyAdd, kMultiplyAdds);
  if (!peak)
    return peak.error();
  c.peakFlops = 2.0 * kMultiplyAdds / peak->seconds;
  return {};
}

Status measureHost(Calibration &c) {
  const int64_t elements = c.quick ? 1 << 16 : 1 << 23;
  Workbench bench(c.pool, 1); // copies between spaces are made by one thread
  const uint32_t from = bench.buffer(DType::F32, {elements}), to = bench.buffer(DType::F32, {elements});
  const uint32_t copy = bench.call(LibraryFn::Copy, {from, to}, {});
  if (Status status = bench.bind(); !status)
    return status;
  Result<Sample> sample = c.measure("to_device_bytes_per_second", bench, copy);
  if (!sample)
    return sample.error();
  c.figures.number("host.to_device_bytes_per_second",
                   static_cast<double>(elements * kFloat) / sample->seconds,
                   c.provenance(sample->spread) + "; one thread");
  c.figures.count("host.devices_per_link", 1, "");
  return {};
}

} // namespace ds::rt
