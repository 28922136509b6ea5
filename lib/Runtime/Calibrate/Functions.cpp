//===- Functions.cpp - The functions of kernels/ ------------------------------------===//
//
// Attention by sequence length and head width; the others by the bytes that they touch, because each byte of
// theirs costs something else than one of a plain loop: an exponential, a random row, a strided line.
//
//===---------------------------------------------------------------------------===//
#include "Functions.h"

#include "Context.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ds::rt {
namespace {

/// Operations per second of causal attention forward and backward over `length` positions, heads of `width`.
/// Operations are counted as the cost interface of the ops counts them: the masked half not at all.
Result<std::vector<double>> measureAttentionShape(Calibration &c, int64_t length, int64_t width,
                                                  double &spread) {
  // Enough heads that all threads have as many, and that a call is not over in no time.
  const int64_t heads = std::max<int64_t>(4, 256 / length) * c.threads;
  Workbench bench(c.pool, c.threads);
  const std::vector<int64_t> shape = {1, length, heads, width};
  auto tensor = [&] { return bench.buffer(DType::F32, shape); };
  const uint32_t q = tensor(), k = tensor(), v = tensor(), out = tensor(),
                 lse = bench.buffer(DType::F32, {1, heads, length}), grad = tensor(), dq = tensor(),
                 dk = tensor(), dv = tensor();
  const std::vector<int64_t> params = {1, std::bit_cast<int64_t>(0.125)};
  const uint32_t forward = bench.call(LibraryFn::AttentionForward, {q, k, v, out, lse}, params);
  const uint32_t backward =
      bench.call(LibraryFn::AttentionBackward, {q, k, v, out, lse, grad, dq, dk, dv}, params);
  if (Status status = bench.bind(); !status)
    return status.error();
  const double product = static_cast<double>(heads * length) * static_cast<double>(length * width);
  std::vector<double> rates;
  for (auto [command, products] : {std::pair(forward, 2), std::pair(backward, 5)}) {
    Result<Sample> sample =
        c.measure(fmt::format("attention_shapes of {} x {}", length, width), bench, command);
    if (!sample)
      return sample.error();
    rates.push_back(products * product / std::max(sample->seconds - c.forkSeconds, sample->seconds / 4));
    spread = std::max(spread, sample->spread);
  }
  return rates;
}

constexpr int64_t kRow = 256; ///< elements of an embedded row

/// A table of as many bytes as the rows that are read of it.
void makeEmbedding(FunctionCase &of, int64_t elements, bool backward) {
  const int64_t rows = elements / kRow;
  const uint32_t table = of.bench.buffer(DType::F32, {rows, kRow}),
                 ids = of.bench.buffer(DType::I64, {rows}, rows),
                 out = of.bench.buffer(DType::F32, {rows, kRow});
  of.command = backward ? of.bench.call(LibraryFn::EmbeddingBackward, {ids, out, table}, {0})
                        : of.bench.call(LibraryFn::EmbeddingForward, {table, ids, out}, {});
}

void makeCrossEntropy(FunctionCase &of, int64_t elements, bool backward) {
  const int64_t classes = elements >= 1 << 18 ? 4096 : 256, rows = elements / classes;
  const uint32_t logits = of.bench.buffer(DType::F32, {rows, classes}),
                 targets = of.bench.buffer(DType::I64, {rows}, classes),
                 loss = of.bench.buffer(DType::F32, {}), lse = of.bench.buffer(DType::F32, {rows}),
                 count = of.bench.buffer(DType::F32, {});
  of.command =
      backward
          ? of.bench.call(LibraryFn::CrossEntropyBackward,
                          {logits, targets, lse, count, loss, of.bench.buffer(DType::F32, {rows, classes})},
                          {-100})
          : of.bench.call(LibraryFn::CrossEntropyForward, {logits, targets, loss, lse, count}, {-100});
}

const Function kFunctions[] = {
    {LibraryFn::EmbeddingForward, [](FunctionCase &of, int64_t n) { makeEmbedding(of, n, false); }},
    {LibraryFn::EmbeddingBackward, [](FunctionCase &of, int64_t n) { makeEmbedding(of, n, true); }},
    {LibraryFn::CrossEntropyForward, [](FunctionCase &of, int64_t n) { makeCrossEntropy(of, n, false); }},
    {LibraryFn::CrossEntropyBackward, [](FunctionCase &of, int64_t n) { makeCrossEntropy(of, n, true); }},
    {LibraryFn::Fill,
     [](FunctionCase &of, int64_t n) {
       of.command = of.bench.call(LibraryFn::Fill, {of.bench.buffer(DType::F32, {n})}, {0});
     }},
    {LibraryFn::Copy, // of heads out of a row that holds three tensors, as models split them
     [](FunctionCase &of, int64_t n) {
       const uint32_t wide = of.bench.buffer(DType::F32, {n / 64, 3, 64});
       of.command = of.bench.call(
           LibraryFn::Copy,
           {of.bench.window(wide, {n / 64, 64}, {192, 1}), of.bench.buffer(DType::F32, {n / 64, 64})}, {});
     }},
    {LibraryFn::SumOfSquares,
     [](FunctionCase &of, int64_t n) {
       const uint32_t input = of.bench.buffer(DType::F32, {n});
       of.command = of.bench.call(LibraryFn::SumOfSquares, {input, of.bench.buffer(DType::F64, {})}, {});
     }},
};

/// [bytes, bytes per second] of one function.
Result<std::vector<std::vector<double>>> measureFunction(Calibration &c, const Function &function,
                                                         double &spread) {
  std::vector<std::vector<double>> rows;
  const std::vector<int64_t> sizes = c.quick
                                         ? std::vector<int64_t>{1 << 14}
                                         : std::vector<int64_t>{1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 23};
  for (const int64_t elements : sizes) {
    Workbench bench(c.pool, c.threads);
    FunctionCase of{bench};
    function.make(of, elements);
    if (Status status = bench.bind(); !status)
      return status.error();
    Result<Sample> sample = c.measure(spell(function.fn), bench, of.command);
    if (!sample)
      return sample.error();
    const auto bytes = static_cast<double>(bench.bytes(of.command));
    rows.push_back({bytes, bytes / sample->seconds});
    spread = std::max(spread, sample->spread);
  }
  return rows;
}

} // namespace

std::span<const Function> measuredFunctions() { return kFunctions; }

Status measureAttention(Calibration &c) {
  c.progress("attention");
  const std::vector<int64_t> lengths = c.quick ? std::vector<int64_t>{32}
                                               : std::vector<int64_t>{32, 128, 512, 2048},
                             widths =
                                 c.quick ? std::vector<int64_t>{32} : std::vector<int64_t>{16, 32, 64, 128};
  std::vector<std::vector<double>> rows;
  double spread = 0;
  for (const int64_t length : lengths)
    for (const int64_t width : widths) {
      Result<std::vector<double>> rates = measureAttentionShape(c, length, width, spread);
      if (!rates)
        return rates.error();
      rows.push_back({static_cast<double>(length), static_cast<double>(width), (*rates)[0], (*rates)[1]});
    }
  c.figures.rows("device.attention_shapes", rows, c.provenance(spread));
  return {};
}

Status measureFunctions(Calibration &c) {
  c.progress("embedding, cross-entropy, fills, copies and norms");
  for (const Function &function : kFunctions) {
    double spread = 0;
    Result<std::vector<std::vector<double>>> rows = measureFunction(c, function, spread);
    if (!rows)
      return rows.error();
    c.figures.rows(fmt::format("device.function_bytes_per_second.{}", spell(function.fn)), *rows,
                   c.provenance(spread));
  }
  return {};
}

} // namespace ds::rt
