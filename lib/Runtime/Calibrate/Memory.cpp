//===- Memory.cpp - Launches, memory and arithmetic of generated kernels ----------===//
//
// The loops have the shape of generated kernels: work units divided among the threads, plain stores. What a
// kernel moves is counted as the cost model counts it: each operand once.
//
//===---------------------------------------------------------------------------===//
#include "Context.h"

#include "ds/Runtime/Kernels.h"

#include <algorithm>

namespace ds::rt {
namespace {

constexpr int64_t kFloat = sizeof(float);

/// Additions that take as long as the exponential of kernels/; the generated one takes twice as long, and
/// counts 40 in the cost model (lib/Codegen/KernelWork.cpp).
constexpr double kWorkOfExp = 20;

/// Seconds of out = a + b over `elements`, successive runs in different places.
Result<Sample> measureAdd(Calibration &c, const std::string &figure, int64_t elements, uint32_t threads) {
  constexpr int64_t kFootprint = int64_t(12) << 20, kMostPlaces = 6;
  const int64_t stride = (elements + 15) / 16 * 16, bytes = 3 * stride * kFloat;
  const int64_t places = std::clamp<int64_t>(
      std::min<int64_t>(kFootprint, static_cast<int64_t>(c.pool.size())) / bytes, 1, kMostPlaces);
  c.pool.refill(static_cast<uint64_t>(places * bytes));
  auto *base = reinterpret_cast<float *>(c.pool.data());
  SamplingOptions options = c.sampling();
  options.warmUps = static_cast<uint32_t>(places);
  return c.measure(figure, [&] {
    return measureRepeatedly(
        [&](uint32_t run) {
          float *at = base + (run % places) * 3 * stride;
          probe({ProbeKind::Add, at, at + stride, at + 2 * stride, elements, threads}, bestIsa());
          return Status();
        },
        options, c.clock);
  });
}

Result<Sample> measureArithmetic(Calibration &c, const std::string &figure, ProbeKind kind,
                                 int64_t elements) {
  auto *base = reinterpret_cast<float *>(c.pool.data());
  c.pool.refill(uint64_t(1) << 20);
  return c.measure(figure, [&] {
    return measureRepeatedly(
        [&](uint32_t) {
          probe({kind, base, base + (int64_t(1) << 17), base + (int64_t(1) << 18), elements, c.threads},
                bestIsa());
          return Status();
        },
        c.sampling(), c.clock);
  });
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
    // The launch counts on its own; where it is most of the time, what is left would be noise.
    const double moving = std::max(sample->seconds - c.forkSeconds, sample->seconds / 4);
    // A third of them is written without having been read, and so read all the same.
    rows.push_back({static_cast<double>(bytes), static_cast<double>(bytes) * 4 / 3 / moving});
    spread = std::max(spread, sample->spread);
  }
  const std::string note = c.provenance(spread);
  c.memoryRate = rows.back()[1] * 3 / 4;
  c.figures.number("device.memory_bytes_per_second", c.memoryRate, note);
  c.figures.add("device.memory_efficiency", "1", "the figure above is what a kernel reaches");
  c.figures.rows("device.cached_bytes_per_second", rows, note);
  constexpr int64_t kExps = 1 << 16, kMultiplyAdds = 1 << 24;
  Result<Sample> exps = measureArithmetic(c, "vector_flops", ProbeKind::Exp, kExps);
  Result<Sample> peak = measureArithmetic(c, "peak_flops", ProbeKind::MultiplyAdd, kMultiplyAdds);
  if (!exps || !peak)
    return exps ? peak.error() : exps.error();
  c.figures.number("device.vector_flops",
                   kWorkOfExp * kExps / std::max(exps->seconds - c.forkSeconds, exps->seconds / 4),
                   c.provenance(exps->spread));
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
