//===- GpuParts.cpp - Launches, copies, context, functions and attention ----------===//
#include "Functions.h"
#include "Gpu.h"

#include "ds/Runtime/Program/ProgramFile.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <fstream>

namespace ds::rt {
namespace {

/// A kernel that does nearly nothing.
uint32_t addTinyKernel(GpuBench &bench) {
  const uint32_t table = bench.buffer(DType::F32, {4, 8}), ids = bench.buffer(DType::I64, {1}, 4),
                 out = bench.buffer(DType::F32, {1, 8});
  return bench.call(LibraryFn::EmbeddingForward, {table, ids, out}, {});
}

/// Seconds of one more of what `issue` puts into a graph, by graphs of `few` and of `many`.
Result<Sample> timeNode(GpuBench &bench, uint32_t few, uint32_t many, const std::function<Status()> &issue) {
  Sample samples[2];
  const uint32_t counts[2] = {few, many};
  for (int i = 0; i < 2; ++i) {
    Result<Sample> sample = bench.timeGraph([&] {
      Status status;
      for (uint32_t k = 0; k < counts[i] && status; ++k)
        status = issue();
      return status;
    });
    if (!sample)
      return sample;
    samples[i] = *sample;
  }
  const double seconds = (samples[1].seconds - samples[0].seconds) / (many - few);
  return Sample{std::max(seconds, 1e-9), std::max(samples[0].spread, samples[1].spread), samples[0].count};
}

Status rememberRate(GpuCalibration &c, const std::string &figure, const Result<Sample> &sample, double bytes,
                    std::vector<std::vector<double>> &rows, double &spread) {
  if (!sample)
    return sample.error();
  rows.push_back({bytes, bytes / sample->seconds});
  spread = std::max(spread, sample->spread);
  c.tell(figure, rows.back()[1], spellRate(rows.back()[1], "B/s"), sample->spread);
  return {};
}

/// Resident bytes of this process.
int64_t residentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * 4096;
}

} // namespace

/// A step is a graph: what counts is what one more node costs in it.
Status measureGpuLaunches(GpuCalibration &c) {
  GpuBench bench(c.device, c.quick, 2);
  const uint32_t kernel = addTinyKernel(bench);
  const uint32_t fill = bench.call(LibraryFn::Fill, {bench.buffer(DType::F32, {64})}, {0});
  if (Status status = bench.bind(); !status)
    return status;
  Device &gpu = bench.gpu();
  const uint32_t few = c.quick ? 2 : 100, many = c.quick ? 6 : 2000, others[] = {1};
  const auto launch = [&] { return gpu.issue(kernel, /*microBatch=*/0); };
  const auto tell = [&](const char *figure, const Result<Sample> &sample) {
    if (sample)
      c.tell(figure, sample->seconds, spellSeconds(sample->seconds), sample->spread);
    return sample ? Status() : Status(sample.error());
  };
  const Result<Sample> node = timeNode(bench, few, many, launch);
  const std::pair<const char *, Result<Sample>> all[] = {
      {"kernel to kernel in a graph", node},
      {"kernel to kernel on a stream", bench.time(kernel)},
      {"fill to fill in a graph",
       timeNode(bench, few, many, [&] { return gpu.issue(fill, /*microBatch=*/0); })},
      {"mark and kernel in a graph", timeNode(bench, few, many,
                                              [&] {
                                                Status status = gpu.telemetry().mark(0, 0);
                                                return status ? launch() : status;
                                              })},
      {"fork, kernel and join in a graph", timeNode(bench, few, many / 4 + few,
                                                    [&] {
                                                      Status status = gpu.streams().fork(others);
                                                      if (status)
                                                        status = launch();
                                                      return status ? gpu.streams().join(others) : status;
                                                    })},
      {"start of a graph of one node to its end, on the host", bench.waitForGraph(launch)}};
  for (const auto &[figure, sample] : all)
    if (Status status = tell(figure, sample); !status)
      return status;
  c.figures.number("device.launch_seconds", node->seconds,
                   c.provenance(node->spread) + "; one more kernel in a graph");
  return {};
}

Status measureGpuCopies(GpuCalibration &c) {
  const std::vector<int64_t> sizes =
      c.quick ? std::vector<int64_t>{1 << 16}
              : std::vector<int64_t>{1 << 16, 1 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30};
  GpuBench bench(c.device, c.quick);
  const uint32_t a = bench.buffer(DType::U8, {sizes.back()}), b = bench.buffer(DType::U8, {sizes.back()});
  if (Status status = bench.bind(); !status)
    return status;
  const int64_t hostBytes = std::min<int64_t>(sizes.back(), 256 << 20);
  Result<std::byte *> host = bench.pinned(static_cast<uint64_t>(hostBytes));
  if (!host)
    return host.error();
  std::vector<std::vector<double>> ways[3];
  double spread = 0;
  for (const int64_t bytes : sizes) {
    const std::tuple<const char *, std::byte *, const std::byte *> kinds[] = {
        {"host to device", bench.address(a), *host},
        {"device to host", *host, bench.address(a)},
        {"device to device (read and written)", bench.address(b), bench.address(a)}};
    for (int k = 0; k < 3; ++k) {
      const auto [name, to, from] = kinds[k];
      if (k < 2 && bytes > hostBytes)
        continue;
      const Result<Sample> sample = bench.time([&, to = to, from = from] {
        return bench.gpu().streams().copy(to, from, static_cast<uint64_t>(bytes));
      });
      const double moved = static_cast<double>(bytes) * (k == 2 ? 2 : 1);
      if (Status status = rememberRate(c, fmt::format("copy {}, {} KiB", name, bytes >> 10), sample, moved,
                                       ways[k], spread);
          !status)
        return status;
    }
  }
  const auto best = [&](int way) {
    return std::max_element(ways[way].begin(), ways[way].end(),
                            [](const auto &x, const auto &y) { return x[1] < y[1]; })
        ->at(1);
  };
  c.figures.number("device.memory_bytes_per_second", ways[2].back()[1],
                   c.provenance(spread) + "; the largest copy on the device, read and written");
  c.figures.add("device.memory_efficiency", "1", "the figure above is what was reached");
  c.figures.number("host.to_device_bytes_per_second", std::min(best(0), best(1)),
                   c.provenance(spread) + "; the slower direction");
  return {};
}

/// What a process holds on the device with a product, attention and a kernel bound, and a graph made.
Status measureGpuContext(GpuCalibration &c) {
  GpuBench bench(c.device, c.quick);
  const int64_t side = c.quick ? 16 : 256;
  const uint32_t x = bench.buffer(DType::BF16, {side, side}), y = bench.buffer(DType::BF16, {side, side}),
                 z = bench.buffer(DType::BF16, {side, side});
  const uint32_t product = bench.call(LibraryFn::Matmul, {x, y, z}, {0, 0, 0, 0});
  const AttentionCalls attention = addAttention(bench, 1, c.quick ? 16 : 128, 2, c.quick ? 16 : 64);
  const uint32_t kernel = addTinyKernel(bench);
  if (Status status = bench.bind(); !status)
    return status;
  const Result<Sample> graph = bench.timeGraph([&] {
    Status status;
    for (const uint32_t command : {product, attention.forward, attention.backward, kernel})
      if (status)
        status = bench.gpu().issue(command, /*microBatch=*/0);
    return status;
  });
  if (!graph)
    return graph.error();
  const DeviceMemory memory = bench.gpu().memory();
  const auto mebibytes = [](double bytes) { return fmt::format("{:.0f} MiB", bytes / (1 << 20)); };
  const auto beyond = static_cast<double>(memory.overhead), host = static_cast<double>(residentBytes());
  c.tell("context and libraries on the device", beyond, mebibytes(beyond), 0);
  c.tell("resident memory of the process", host, mebibytes(host), 0);
  if (memory.overhead > 0)
    c.figures.count("device.context_bytes", static_cast<int64_t>(memory.overhead),
                    c.provenance(0) + "; with cuBLASLt, cuDNN, kernels and a graph");
  return {};
}

Status measureGpuFunctions(GpuCalibration &c) {
  const std::vector<int64_t> sizes = c.quick
                                         ? std::vector<int64_t>{1 << 12}
                                         : std::vector<int64_t>{1 << 14, 1 << 18, 1 << 21, 1 << 24, 1 << 27};
  GpuBench keeper(c.device, c.quick); // of the context: making it takes longer than a measurement
  if (Status status = keeper.bind(); !status)
    return status;
  for (const Function &function : measuredFunctions()) {
    std::vector<std::vector<double>> rows;
    double spread = 0;
    for (const int64_t elements : sizes) {
      GpuBench bench(c.device, c.quick);
      FunctionCase of{bench};
      function.make(of, elements);
      if (Status status = bench.bind(); !status)
        return status;
      const auto bytes = static_cast<double>(bench.bytes(of.command));
      if (Status status = rememberRate(c, fmt::format("{} of {:.4g} bytes", spell(function.fn), bytes),
                                       bench.time(of.command), bytes, rows, spread);
          !status)
        return status;
    }
    c.figures.rows(fmt::format("device.function_bytes_per_second.{}", spell(function.fn)), rows,
                   c.provenance(spread));
  }
  return {};
}

AttentionCalls addAttention(GpuBench &bench, int64_t batch, int64_t length, int64_t heads, int64_t width) {
  const auto tensor = [&] { return bench.buffer(DType::BF16, {batch, length, heads, width}); };
  const uint32_t q = tensor(), k = tensor(), v = tensor(), out = tensor(),
                 lse = bench.buffer(DType::F32, {batch, heads, length}), grad = tensor(), dq = tensor(),
                 dk = tensor(), dv = tensor();
  const std::vector<int64_t> params = {1, std::bit_cast<int64_t>(0.125)};
  return {bench.call(LibraryFn::AttentionForward, {q, k, v, out, lse}, params),
          bench.call(LibraryFn::AttentionBackward, {q, k, v, out, lse, grad, dq, dk, dv}, params)};
}

Status measureGpuAttention(GpuCalibration &c) {
  const std::vector<int64_t> lengths = c.quick ? std::vector<int64_t>{32}
                                               : std::vector<int64_t>{256, 1024, 4096, 8192},
                             widths = c.quick ? std::vector<int64_t>{16} : std::vector<int64_t>{64, 128};
  GpuBench keeper(c.device, c.quick); // of the context
  if (Status status = keeper.bind(); !status)
    return status;
  std::vector<std::vector<double>> rows;
  double spread = 0;
  for (const int64_t length : lengths)
    for (const int64_t width : widths) {
      const int64_t batch = c.quick ? 1 : std::max<int64_t>(1, 16384 / length), heads = c.quick ? 2 : 16;
      GpuBench bench(c.device, c.quick);
      const AttentionCalls calls = addAttention(bench, batch, length, heads, width);
      if (Status status = bench.bind(); !status)
        return status;
      const double product =
          static_cast<double>(batch * heads * length) * static_cast<double>(length * width);
      rows.push_back({static_cast<double>(length), static_cast<double>(width)});
      for (const auto &[name, command, products] :
           {std::tuple("forward", calls.forward, 2), {"backward", calls.backward, 5}}) {
        const Result<Sample> sample = bench.time(command);
        if (!sample)
          return sample.error();
        rows.back().push_back(products * product / sample->seconds);
        spread = std::max(spread, sample->spread);
        c.tell(fmt::format("attention {} of {} positions, heads of {}", name, length, width),
               rows.back().back(), spellRate(rows.back().back(), "op/s"), sample->spread);
      }
    }
  c.figures.rows("device.attention_shapes", rows, c.provenance(spread));
  return {};
}

} // namespace ds::rt
