//===- Blend.cpp - Which source of a blend has which sample --------------------===//

#include "Blend.h"

#include "Files/Text.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

using namespace ds;
using namespace ds::rt;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

static Error badWeight(std::string_view text) {
  return {ExitCode::Usage,
          "weight " + quote(text) + ": expects a decimal number greater than 0, of at most 18 digits",
          "weights are relative: 7 and 3 are the same as 0.7 and 0.3"};
}

Result<Weight> ds::rt::parseWeight(std::string_view text) {
  const Error bad = badWeight(text);
  Weight weight{0, 0};
  bool hasDigits = false, pastPoint = false;
  size_t i = 0;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.' && !std::exchange(pastPoint, true))
      continue;
    if (text[i] < '0' || text[i] > '9')
      return bad;
    hasDigits = true;
    weight.digits = weight.digits * 10 + uint64_t(text[i] - '0');
    weight.exponent -= pastPoint;
    if (weight.digits >= 1'000'000'000'000'000'000)
      return bad;
  }
  if (!hasDigits || weight.digits == 0 || text.size() > 64)
    return bad;
  if (i < text.size()) {
    const size_t sign = i + 1 + (text.substr(i + 1).starts_with('+') ? 1 : 0);
    int exponent = 0;
    const auto [end, error] = std::from_chars(text.data() + sign, text.data() + text.size(), exponent);
    if (error != std::errc() || end != text.data() + text.size() || exponent < -1000 || exponent > 1000)
      return bad;
    weight.exponent += exponent;
  }
  for (; weight.digits % 10 == 0; weight.digits /= 10)
    ++weight.exponent;
  return weight;
}

static Error tooSmall(size_t index) {
  return {ExitCode::Usage,
          "weight " + std::to_string(index + 1) + " of the blend is less than 1/" +
              std::to_string(kLongestPeriod) + " of their sum",
          "leave that source out, or give it more weight"};
}

/// std::gcd knows no 128 bits.
static Position commonDivisor(Position a, Position b) { return b == 0 ? a : commonDivisor(b, a % b); }

/// The weights as whole numbers; empty where one would not fit 2^90, as beside it some other weight, of fewer
/// than 19 digits, is less than 1e-9.
static std::vector<Position> scale(std::span<const Weight> weights) {
  const int least = std::ranges::min(weights, {}, &Weight::exponent).exponent;
  std::vector<Position> whole;
  for (const Weight &weight : weights) {
    Position value = weight.digits;
    for (int i = least; i < weight.exponent; ++i, value *= 10)
      if (value >> 90 != 0)
        return {};
    whole.push_back(value);
  }
  Position divisor = 0;
  for (Position value : whole)
    divisor = commonDivisor(divisor, value);
  for (Position &value : whole)
    value /= divisor;
  return whole;
}

/// Whole numbers that add up to the longest period: each weight's part rounded down, and what is left given
/// to those that lost most.
static Result<std::vector<uint32_t>> round(std::span<const Position> whole, Position sum) {
  std::vector<uint32_t> shares;
  std::vector<std::pair<Position, size_t>> lost; // in parts of `sum`
  uint32_t left = kLongestPeriod;
  for (size_t i = 0; i < whole.size(); ++i) {
    const Position part = whole[i] * kLongestPeriod;
    if (part < sum)
      return tooSmall(i);
    shares.push_back(uint32_t(part / sum));
    lost.emplace_back(part % sum, i);
    left -= shares.back();
  }
  std::ranges::sort(lost, [](auto &a, auto &b) { return a.first != b.first ? a.first > b.first : a < b; });
  for (uint32_t i = 0; i < left; ++i)
    ++shares[lost[i].second];
  const uint32_t divisor = std::accumulate(shares.begin(), shares.end(), 0u, std::gcd<uint32_t, uint32_t>);
  for (uint32_t &share : shares)
    share /= divisor;
  return shares;
}

Result<std::vector<uint32_t>> ds::rt::sharesOf(std::span<const Weight> weights) {
  const std::vector<Position> whole = scale(weights);
  if (whole.empty())
    return tooSmall(size_t(std::ranges::min_element(weights, {}, &Weight::exponent) - weights.begin()));
  const Position sum = std::accumulate(whole.begin(), whole.end(), Position(0));
  if (sum > kLongestPeriod)
    return round(whole, sum);
  return std::vector<uint32_t>(whole.begin(), whole.end());
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// One period, as the header of Blend.h describes.
static std::vector<uint32_t> order(const std::vector<uint32_t> &shares) {
  using Due = std::pair<uint64_t, uint32_t>; // a position, a source
  std::priority_queue<Due, std::vector<Due>, std::greater<>> waiting, ready;
  const uint64_t period = std::accumulate(shares.begin(), shares.end(), uint64_t(0));
  std::vector<uint64_t> given(shares.size());
  for (uint32_t source = 0; source < shares.size(); ++source)
    waiting.emplace(0, source);
  std::vector<uint32_t> sources;
  for (uint64_t place = 0; place < period; ++place) {
    for (; !waiting.empty() && waiting.top().first <= place; waiting.pop()) {
      const uint32_t source = waiting.top().second, share = shares[source];
      ready.emplace(((given[source] + 1) * period + share - 1) / share, source);
    }
    const uint32_t source = ready.top().second; // never empty: all room before `place` is filled
    ready.pop();
    sources.push_back(source);
    waiting.emplace(++given[source] * period / shares[source], source);
  }
  return sources;
}

Blend::Blend(const std::vector<uint32_t> &shares) : sources(order(shares)), places(sources.size()) {
  begins.resize(shares.size() + 1);
  std::partial_sum(shares.begin(), shares.end(), begins.begin() + 1);
  std::vector<uint32_t> next = begins;
  for (uint32_t place = 0; place < sources.size(); ++place)
    places[next[sources[place]]++] = place;
}

Position Blend::count(size_t source, Position positions) const {
  const auto begin = places.begin() + begins[source], end = places.begin() + begins[source + 1];
  const auto inPeriod = std::lower_bound(begin, end, uint32_t(positions % period())) - begin;
  return positions / period() * share(source) + uint64_t(inPeriod);
}

Blend::Place Blend::operator()(Position position) const {
  const size_t source = sources[size_t(position % period())];
  return {source, count(source, position)};
}
