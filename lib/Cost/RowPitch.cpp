//===- RowPitch.cpp - How far apart rows lie that products read -------------------===//
//
// A line of a GPU's memory has 128 bytes, and kernels for products take whole lines of rows. What lies
// between rows is memory that holds nothing, so longer rows get more of it.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/RowPitch.h"

namespace ds::cost {

namespace {
/// What rows are made whole multiples of, and the most that may make them longer: 1 / `share`.
struct Step {
  int64_t bytes, share;
};
} // namespace

static constexpr Step kSteps[] = {{128, 64}, {kRowUnit, 16}};

std::optional<int64_t> rowPitch(int64_t elements, int64_t elementBytes) {
  const int64_t bytes = elements * elementBytes;
  if (bytes % kRowUnit == 0)
    return std::nullopt;
  for (const Step &step : kSteps) {
    const int64_t between = step.bytes - bytes % step.bytes;
    if (between * step.share <= bytes)
      return (bytes + between) / elementBytes;
  }
  return std::nullopt;
}

} // namespace ds::cost
