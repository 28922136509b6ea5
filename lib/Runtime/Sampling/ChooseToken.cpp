//===- ChooseToken.cpp - The next token, by its logits --------------------------------===//
#include "ChooseToken.h"

#include "ds/Runtime/Data/Philox.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace ds::rt {

/// In [0, 1), with 53 bits, from the seed and the number of the token alone.
static double draw(uint64_t seed, uint64_t index) {
  const auto [a, b, c, d] = philox4x32({uint32_t(index), uint32_t(index >> 32), 0, 0}, seed);
  return std::ldexp(static_cast<double>((uint64_t(a) << 32 | b) >> 11), -53);
}

/// The least logit that is among the `topK` largest.
static float leastOf(std::span<const float> logits, uint64_t topK) {
  std::vector<float> sorted(logits.begin(), logits.end());
  const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(topK - 1);
  std::nth_element(sorted.begin(), last, sorted.end(), std::greater<>());
  return *last;
}

Result<int64_t> chooseToken(std::span<const float> logits, const SampleOptions &options, uint64_t index) {
  const auto largest = std::ranges::max_element(logits);
  if (std::ranges::any_of(logits, [](float logit) { return std::isnan(logit); }) || !std::isfinite(*largest))
    return Error{ExitCode::Diverged, fmt::format("token {}: a logit is not finite", index + 1),
                 "look at the weights: the training may have diverged"};
  if (options.temperature == 0)
    return static_cast<int64_t>(largest - logits.begin());
  const bool isCut = options.topK > 0 && options.topK < logits.size();
  const float least = isCut ? leastOf(logits, options.topK) : -INFINITY;
  std::vector<double> upTo; // sums of weights
  double total = 0;
  for (const float logit : logits) {
    if (logit >= least) // -inf has weight 0
      total += std::exp((double(logit) - *largest) / options.temperature);
    upTo.push_back(total);
  }
  // The first whose sum is above: never one of weight 0.
  const auto chosen = std::ranges::upper_bound(upTo, draw(options.seed, index) * total);
  return static_cast<int64_t>(chosen - upTo.begin());
}

} // namespace ds::rt
