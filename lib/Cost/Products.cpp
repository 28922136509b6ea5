//===- Products.cpp - Products on a GPU's tensor cores, by their tiles ---------------===//
//
// A product is as many tiles of its result as reach over it, each computed by one multiprocessor; tiles run
// in waves of as many as there are multiprocessors (NVIDIA, Matrix Multiplication Background User's Guide,
// section 3). With few tiles the library divides the sums of each among several multiprocessors (split-K).
// The rate within tiles is one figure, `kernels.tile_flops`; everything else that makes a shape slower is
// arithmetic: tiles beyond the result, and multiprocessors without a tile in the last wave. Of [8192, 1600] x
// [1600, 1600] the result has 64 x 6.25 tiles of 128 x 256: 448, which 132 multiprocessors compute in four
// waves (3.4).
//
//===---------------------------------------------------------------------------===//
#include "Products.h"

#include <algorithm>
#include <cmath>

namespace ds::cost {

namespace {
/// A part of the result that a multiprocessor computes at once, and the share of the best rate that it
/// reaches: smaller tiles read their operands more often.
struct Tile {
  double rows, columns, share;
};
} // namespace

static constexpr Tile kTiles[] = {{128, 256, 1}, {256, 128, 1}, {128, 128, 0.95}};

/// Summands of a tile that division leaves to one multiprocessor at least: below, adding the parts up takes
/// what division saves. Between what was divided (8192 summands into three) and what was not (6400 into two).
static constexpr double kLeastSummands = 2700;

/// Operations of `shape` when idle multiprocessors and tiles beyond the result count as work, by `tile`.
static double paddedFlops(const Matmul &shape, const Tile &tile, double multiprocessors) {
  const double tiles = shape.batch * std::ceil(shape.m / tile.rows) * std::ceil(shape.n / tile.columns);
  const double perTile = 2 * tile.rows * tile.columns * shape.k / tile.share;
  double best = std::ceil(tiles / multiprocessors) * multiprocessors * perTile;
  for (double parts = 2; shape.k / parts >= kLeastSummands; ++parts)
    best = std::min(best, std::ceil(tiles * parts / multiprocessors) * multiprocessors * perTile / parts);
  return best;
}

std::string productFigures(const config::DeviceSpec &device, DType dtype) {
  const bool isTiled = dtype != DType::F32 && !device.kernels.tileFlops.empty();
  const char *products = !device.matmulShapes[dtype].empty() ? "device.matmul_shapes"
                         : isTiled                           ? "device.kernels.tile_flops"
                                                             : "device.matmul_flops";
  return std::string(products) + ", device.memory_bytes_per_second";
}

double tiledSeconds(const Matmul &shape, const config::DeviceSpec &device) {
  if (shape.m * shape.n * shape.k * shape.batch <= 0)
    return 0;
  const double multiprocessors = std::max(1.0, static_cast<double>(device.multiprocessors));
  double flops = paddedFlops(shape, kTiles[0], multiprocessors);
  for (const Tile &tile : kTiles)
    flops = std::min(flops, paddedFlops(shape, tile, multiprocessors));
  const config::Curve &rates = device.kernels.tileFlops;
  const double atFirst = flops / rates.points.front().second; // how long the load lasts
  return flops / rates.at(atFirst) + device.kernels.fillSeconds;
}

std::optional<double> unalignedSeconds(const Matmul &shape, const config::DeviceSpec &device) {
  if (!shape.isUnaligned)
    return std::nullopt;
  const double rate =
      shape.isResultUnaligned ? device.kernels.unalignedResultFlops : device.kernels.unalignedOperandFlops;
  if (rate <= 0)
    return std::nullopt;
  return 2 * shape.m * shape.n * shape.k * shape.batch / rate;
}

} // namespace ds::cost
