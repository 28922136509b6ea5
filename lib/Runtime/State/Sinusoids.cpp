//===- Sinusoids.cpp - A table of positions that nothing learns --------------------===//

#include "Sinusoids.h"

#include <cmath>

namespace ds::rt {

Sinusoids::Sinusoids(int64_t columns, double slowest) : frequencies(static_cast<size_t>(columns / 2)) {
  const double step = std::log(slowest) / static_cast<double>(frequencies.size() - 1);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(-step) * static_cast<float>(i);
    frequencies[i] = static_cast<float>(std::exp(static_cast<double>(exponent)));
  }
}

void Sinusoids::make(uint64_t first, uint64_t count, float *to) const {
  const uint64_t half = frequencies.size();
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t row = (first + i) / (2 * half), column = (first + i) % (2 * half);
    const float angle = static_cast<float>(row) * frequencies[column % half];
    const auto exact = static_cast<double>(angle);
    to[i] = static_cast<float>(column < half ? std::sin(exact) : std::cos(exact));
  }
}

} // namespace ds::rt
