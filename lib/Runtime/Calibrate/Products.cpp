//===- Products.cpp - Matrix products by shape --------------------------------------===//
//
// Every combination of a few sizes, in the three forms that a training step has: x w^T, dy w and dy^T x. What
// lies between is interpolated by whoever reads the file.
//
//===---------------------------------------------------------------------------===//
#include "Products.h"
#include "Context.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ds::rt {
namespace {

struct Form {
  bool transposeA, transposeB;
};
constexpr Form kForms[] = {{false, false}, {false, true}, {true, false}};

/// What one type needs to know of itself.
struct ProductType {
  DType dtype;
  const char *name;
  std::vector<int64_t> sizes;
};

/// Operations per second of [m, k] x [k, n] in the three forms.
Result<std::vector<double>> measureShape(Calibration &c, const ProductType &type, int64_t m, int64_t n,
                                         int64_t k, double &spread) {
  Workbench bench(c.pool, c.threads);
  const uint32_t a = bench.buffer(type.dtype, {m, k}), b = bench.buffer(type.dtype, {k, n}),
                 result = bench.buffer(type.dtype, {m, n});
  const uint32_t aByColumns = bench.alias(a, {k, m}), bByColumns = bench.alias(b, {n, k});
  std::vector<uint32_t> commands;
  for (const Form &form : kForms)
    commands.push_back(bench.call(
        LibraryFn::Matmul, {form.transposeA ? aByColumns : a, form.transposeB ? bByColumns : b, result},
        {form.transposeA, form.transposeB, 0, 0}));
  if (Status status = bench.bind(); !status)
    return status.error();
  std::vector<double> rates;
  for (const uint32_t command : commands) {
    Result<Sample> sample =
        c.measure(fmt::format("matmul_shapes.{} of {} x {} x {}", type.name, m, n, k), bench, command);
    if (!sample)
      return sample.error();
    rates.push_back(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) /
                    sample->seconds);
    spread = std::max(spread, sample->spread);
  }
  return rates;
}

/// Rows [m, n, k, rates...] over all combinations of the sizes.
Result<std::vector<std::vector<double>>> measureGrid(Calibration &c, const ProductType &type,
                                                     double &spread) {
  std::vector<std::vector<double>> rows; // the figures are the same on all ranks, and so is what they decide
  for (const int64_t m : type.sizes)
    for (const int64_t n : type.sizes)
      for (const int64_t k : type.sizes) {
        Result<std::vector<double>> rates = measureShape(c, type, m, n, k, spread);
        if (!rates)
          return rates.error();
        rows.push_back({static_cast<double>(m), static_cast<double>(n), static_cast<double>(k)});
        rows.back().insert(rows.back().end(), rates->begin(), rates->end());
      }
  for (const size_t row : findSlowShapes(rows)) {
    auto size = [&](size_t axis) { return static_cast<int64_t>(rows[row][axis]); };
    Result<std::vector<double>> again = measureShape(c, type, size(0), size(1), size(2), spread);
    if (!again)
      return again.error();
    for (size_t form = 0; form < again->size(); ++form)
      rows[row][3 + form] = std::max(rows[row][3 + form], (*again)[form]);
  }
  return rows;
}

/// The curve by one size: the products of equal sides, their forms in the middle.
std::vector<std::vector<double>> cubesOf(const std::vector<std::vector<double>> &grid) {
  std::vector<std::vector<double>> curve;
  for (const std::vector<double> &row : grid)
    if (row[0] == row[1] && row[1] == row[2])
      curve.push_back({row[0], (row[3] + row[4] + row[5]) / 3});
  return curve;
}

} // namespace

std::vector<size_t> findSlowShapes(const std::vector<std::vector<double>> &grid) {
  constexpr double kShare = 0.75;
  auto within = [](const std::vector<double> &a, const std::vector<double> &b) {
    return a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2];
  };
  auto work = [](const std::vector<double> &row) { return row[0] * row[1] * row[2]; };
  std::vector<size_t> slow;
  for (size_t i = 0; i < grid.size(); ++i) {
    const std::vector<double> &row = grid[i];
    const bool found = std::any_of(grid.begin(), grid.end(), [&](const std::vector<double> &other) {
      bool isSlower = false;
      for (size_t form = 3; form < row.size(); ++form)
        isSlower |= (within(other, row) && row[form] < kShare * other[form]) ||
                    (within(row, other) && work(other) / other[form] < kShare * work(row) / row[form]);
      return isSlower;
    });
    if (found)
      slow.push_back(i);
  }
  return slow;
}

Status measureProducts(Calibration &c) {
  const std::vector<int64_t> all = c.quick ? std::vector<int64_t>{16, 64}
                                           : std::vector<int64_t>{16, 64, 256, 512, 1024, 2048},
                             some = c.quick ? all : std::vector<int64_t>{32, 128, 512, 2048};
  struct Measured {
    std::string name, note;
    std::vector<std::vector<double>> grid;
    double peak;
  };
  std::vector<Measured> measured;
  for (const ProductType &type : {ProductType{DType::F32, "fp32", all}, ProductType{DType::F16, "fp16", some},
                                  ProductType{DType::BF16, "bf16", some}}) {
    c.progress(fmt::format("matrix products in {}", type.name));
    double spread = 0;
    Result<std::vector<std::vector<double>>> grid = measureGrid(c, type, spread);
    if (!grid)
      return grid.error();
    double peak = c.peakFlops;
    for (const std::vector<double> &row : *grid)
      peak = std::max(peak, *std::max_element(row.begin() + 3, row.end()));
    measured.push_back({type.name, c.provenance(spread), std::move(*grid), peak});
  }
  for (const Measured &each : measured) // sections lie together
    c.figures.number("device.peak_flops." + each.name, each.peak * 1.001,
                     "the faster of multiply-adds in registers and the fastest product; " + each.note);
  for (const Measured &each : measured)
    c.figures.rows("device.matmul_flops." + each.name, cubesOf(each.grid), each.note);
  for (const Measured &each : measured)
    c.figures.rows("device.matmul_shapes." + each.name, each.grid, each.note);
  return {};
}

} // namespace ds::rt
