//===- GpuProducts.cpp - Matrix products on a GPU, by shape and by how rows lie ----===//
#include "Gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ds::rt {
namespace {

struct Form {
  const char *name;
  bool transposeA, transposeB;
};
constexpr Form kForms[] = {{"a b", false, false}, {"a b^T", false, true}, {"a^T b", true, false}};

const char *nameOf(DType dtype) {
  return dtype == DType::F32 ? "fp32" : dtype == DType::F16 ? "fp16" : "bf16";
}

std::vector<int64_t> sizesOf(const GpuCalibration &c, DType dtype) {
  if (c.quick)
    return {16, 32};
  return dtype == DType::F32 ? std::vector<int64_t>{256, 1024, 4096}
                             : std::vector<int64_t>{256, 1024, 4096, 16384};
}

/// The three forms of [m, k] x [k, n], on common memory.
std::vector<uint32_t> addForms(GpuBench &bench, const uint32_t (&memory)[3], int64_t m, int64_t n,
                               int64_t k) {
  std::vector<uint32_t> commands;
  for (const Form &form : kForms) {
    const uint32_t a = bench.alias(memory[0], form.transposeA ? std::vector{k, m} : std::vector{m, k}),
                   b = bench.alias(memory[1], form.transposeB ? std::vector{n, k} : std::vector{k, n}),
                   result = bench.alias(memory[2], {m, n});
    commands.push_back(
        bench.call(LibraryFn::Matmul, {a, b, result}, {form.transposeA, form.transposeB, 0, 0}));
  }
  return commands;
}

/// How the rows of a vocabulary's products lie: `width` columns, each row `stride` elements from the last.
struct Rows {
  const char *name;
  int64_t width, stride;
};

} // namespace

Status measureGpuProducts(GpuCalibration &c, DType dtype) {
  const std::vector<int64_t> sizes = sizesOf(c, dtype);
  const int64_t most = sizes.back();
  GpuBench bench(c.device, c.quick);
  const uint32_t memory[3] = {bench.buffer(dtype, {most, most}), bench.buffer(dtype, {most, most}),
                              bench.buffer(dtype, {most, most})};
  struct Shape {
    int64_t m, n, k;
    std::vector<uint32_t> commands;
  };
  std::vector<Shape> shapes;
  for (const int64_t m : sizes)
    for (const int64_t n : sizes)
      for (const int64_t k : sizes)
        shapes.push_back({m, n, k, addForms(bench, memory, m, n, k)});
  if (Status status = bench.bind(); !status)
    return status;
  std::vector<std::vector<double>> rows, cubes;
  double spread = 0;
  for (const Shape &s : shapes) {
    rows.push_back({static_cast<double>(s.m), static_cast<double>(s.n), static_cast<double>(s.k)});
    for (const uint32_t command : s.commands) {
      const Result<Sample> sample = bench.time(command);
      if (!sample)
        return sample.error();
      rows.back().push_back(2.0 * rows.back()[0] * rows.back()[1] * rows.back()[2] / sample->seconds);
      spread = std::max(spread, sample->spread);
    }
    const double mean = (rows.back()[3] + rows.back()[4] + rows.back()[5]) / 3;
    if (s.m == s.n && s.n == s.k) {
      cubes.push_back({rows.back()[0], mean});
      c.tell(fmt::format("{} product {} cubed", nameOf(dtype), s.m), mean, spellRate(mean, "op/s"), spread);
    }
  }
  const std::string note = c.provenance(spread);
  c.figures.rows(fmt::format("device.matmul_flops.{}", nameOf(dtype)), cubes, note);
  c.figures.rows(fmt::format("device.matmul_shapes.{}", nameOf(dtype)), rows, note);
  return {};
}

/// The last layer of a language model over 50257 words: odd rows, rows padded to whole 16 and 128 bytes, and
/// a vocabulary rounded up. The description has the rates of odd rows, of the result and of an operand; of
/// the others there are lines alone.
Status measureGpuRows(GpuCalibration &c) {
  const int64_t m = c.quick ? 16 : 8192, k = c.quick ? 16 : 768;
  const std::vector<Rows> ways =
      c.quick ? std::vector<Rows>{{"odd", 33, 33}, {"even", 34, 34}, {"odd, padded", 33, 40}}
              : std::vector<Rows>{{"odd", 50257, 50257},
                                  {"even", 50258, 50258},
                                  {"odd, padded to 16 bytes", 50257, 50264},
                                  {"odd, padded to 128 bytes", 50257, 50304},
                                  {"rounded up", 50304, 50304}};
  GpuBench keeper(c.device, c.quick); // of the context
  if (Status status = keeper.bind(); !status)
    return status;
  for (const Rows &way : ways) {
    double seconds[3], spread = 0, flops = 2.0 * static_cast<double>(m) * static_cast<double>(way.width * k);
    GpuBench bench(c.device, c.quick);
    const uint32_t x = bench.buffer(DType::BF16, {m, k}), w = bench.buffer(DType::BF16, {way.width, k});
    const uint32_t y =
        bench.window(bench.buffer(DType::BF16, {m, way.stride}), {m, way.width}, {way.stride, 1});
    const uint32_t dw = bench.buffer(DType::F32, {way.width, k});
    const std::pair<const char *, uint32_t> calls[] = {
        {"logits", bench.call(LibraryFn::Matmul, {x, w, y}, {0, 1, 0, 0})},
        {"gradient of the input", bench.call(LibraryFn::Matmul, {y, w, x}, {0, 0, 0, 0})},
        {"gradient of the weights", bench.call(LibraryFn::Matmul, {y, x, dw}, {1, 0, 0, 0})}};
    if (Status status = bench.bind(); !status)
      return status;
    for (size_t i = 0; const auto &[name, command] : calls) {
      const Result<Sample> sample = bench.time(command);
      if (!sample)
        return sample.error();
      seconds[i++] = sample->seconds, spread = std::max(spread, sample->spread);
      const double rate = flops / sample->seconds;
      c.tell(fmt::format("bf16 {} {} x {} x {}, rows {}", name, m, way.width, k, way.name), rate,
             fmt::format("{} = {}", spellSeconds(sample->seconds), spellRate(rate, "op/s")), sample->spread);
    }
    if (&way != &ways.front())
      continue;
    const std::string note = c.provenance(spread) + "; rows of " + std::to_string(way.width);
    c.figures.number("device.kernels.unaligned_result_flops", flops / seconds[0], note);
    c.figures.number("device.kernels.unaligned_operand_flops", 2 * flops / (seconds[1] + seconds[2]), note);
  }
  return {};
}

} // namespace ds::rt
