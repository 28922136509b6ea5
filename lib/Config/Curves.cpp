//===- Curves.cpp - Figures between the sizes at which they are given --------------===//
#include "ds/Config/Cluster.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace ds::config {

double Curve::at(double size) const {
  assert(!points.empty() && "curves are read with at least one point");
  if (size <= points.front().first)
    return points.front().second;
  for (size_t i = 1; i < points.size(); ++i)
    if (size < points[i].first) {
      auto [low, lowRate] = points[i - 1];
      auto [high, highRate] = points[i];
      return lowRate + (highRate - lowRate) * std::log(size / low) / std::log(high / low);
    }
  return points.back().second;
}

double ShapeTable::at(const std::vector<double> &sizes, size_t column) const {
  assert(sizes.size() == axes.size() && "one size for each axis");
  // Corner by corner of the cell around the sizes: logarithms of rates, weighted.
  std::vector<size_t> low(axes.size());
  std::vector<double> share(axes.size());
  double below = 1; // what sizes fall short of the grid
  for (size_t d = 0; d < axes.size(); ++d) {
    const std::vector<double> &axis = axes[d];
    below *= std::min(1.0, sizes[d] / axis.front());
    double size = std::clamp(sizes[d], axis.front(), axis.back());
    while (low[d] + 2 < axis.size() && axis[low[d] + 1] <= size)
      ++low[d];
    share[d] =
        axis.size() < 2 ? 0 : std::log(size / axis[low[d]]) / std::log(axis[low[d] + 1] / axis[low[d]]);
  }
  double sum = 0;
  for (size_t corner = 0; corner < size_t{1} << axes.size(); ++corner) {
    size_t row = 0;
    double weight = 1;
    for (size_t d = 0; d < axes.size(); ++d) {
      const bool high = corner >> d & 1;
      weight *= high ? share[d] : 1 - share[d];
      row = row * axes[d].size() + std::min(low[d] + high, axes[d].size() - 1);
    }
    if (weight > 0)
      sum += weight * std::log(rates[row][column]);
  }
  return std::exp(sum) * below;
}

} // namespace ds::config
