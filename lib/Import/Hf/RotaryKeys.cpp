//===- RotaryKeys.cpp - Frequencies of rotary positions, from the configuration ----===//
//
// Each kind of scaling is computed in the order and the precision of transformers' modeling_rope_utils, so
// that a checkpoint meets the numbers that it was trained with.
//
//===---------------------------------------------------------------------------===//

#include "Rotary.h"

#include <cmath>

using namespace ::ds::hf;
namespace hf = ::ds::hf;

static constexpr Range<double> kFactors{1e-6, 1e6};
static constexpr Range<double> kThetas{1, 1e12};
static constexpr const char *kKinds = "default, linear, dynamic, llama3, yarn, longrope";

namespace {
/// What scaling starts from.
struct Unscaled {
  double theta;
  int64_t rotated;                 ///< elements of a head, R
  int64_t positions;               ///< max_position_embeddings
  std::optional<int64_t> original; ///< original_max_position_embeddings outside of the parameters
};
} // namespace

/// theta^(2i / R) for i < R/2, in f32 as PyTorch computes them.
static std::vector<float> powers(double theta, int64_t rotated) {
  std::vector<float> result;
  for (int64_t i = 0; i < rotated; i += 2)
    result.push_back(
        std::pow(static_cast<float>(theta), static_cast<float>(i) / static_cast<float>(rotated)));
  return result;
}

static std::vector<float> plainFrequencies(double theta, int64_t rotated) {
  std::vector<float> frequencies = powers(theta, rotated);
  for (float &frequency : frequencies)
    frequency = 1.0f / frequency;
  return frequencies;
}

/// Llama 3.1: long waves are stretched by `factor`, short ones kept, those between blended; where both
/// factors are one number, as in Llama 4, none lie between.
static void scaleLlama3(const Section &scaling, int64_t positions, std::vector<float> &frequencies) {
  double factor = scaling.number("factor", kFactors);
  double low = scaling.number("low_freq_factor", kFactors),
         high = scaling.number("high_freq_factor", kFactors);
  int64_t original = scaling.integer("original_max_position_embeddings", {1, positions}, positions);
  if (low > high)
    return scaling.refuse("low_freq_factor", "expects at most high_freq_factor, which is " +
                                                 scaling.describe("high_freq_factor") + ", but got " +
                                                 scaling.describe("low_freq_factor"));
  for (float &frequency : frequencies) {
    float wave = static_cast<float>(2 * M_PI) / frequency;
    auto context = static_cast<float>(original);
    if (wave > context / static_cast<float>(low)) {
      frequency /= static_cast<float>(factor);
    } else if (low < high && wave >= context / static_cast<float>(high)) {
      float smooth = (context / wave - static_cast<float>(low)) / static_cast<float>(high - low);
      frequency = (1 - smooth) * frequency / static_cast<float>(factor) + smooth * frequency;
    }
  }
}

//===----------------------------------------------------------------------===//
// YaRN (arXiv 2309.00071)
//===----------------------------------------------------------------------===//

/// What attention is sharpened by where positions are stretched by `scale`.
static double yarnMagnitude(double scale, double weight) {
  return scale <= 1 ? 1 : 0.1 * weight * std::log(scale) + 1;
}

static double yarnFactor(const Section &scaling, double factor) {
  if (std::optional<double> given = scaling.optional("attention_factor", kFactors))
    return *given;
  std::optional<double> own = scaling.optional("mscale", kFactors),
                        all = scaling.optional("mscale_all_dim", Range<double>{0, kFactors.max});
  if (own && all && *all != 0)
    return yarnMagnitude(factor, *own) / yarnMagnitude(factor, *all);
  return yarnMagnitude(factor, 1);
}

/// The pair of elements that turns `rotations` times over `original` positions, as a fraction of pairs.
static double pairOfRotations(double rotations, const Unscaled &from, int64_t original) {
  return static_cast<double>(from.rotated) *
         std::log(static_cast<double>(original) / (rotations * 2 * M_PI)) / (2 * std::log(from.theta));
}

/// Pairs that turn often keep their frequency, those that turn seldom are stretched by `factor`.
static void scaleYarn(const Section &scaling, const Unscaled &from, Rotary &rotary) {
  double factor = scaling.number("factor", kFactors);
  if (from.theta == 1)
    return scaling.refuse("rope_type|type", "yarn expects a base above 1, but rope_theta is 1");
  int64_t original = scaling.integer("original_max_position_embeddings", {1, int64_t{1} << 24},
                                     from.original.value_or(from.positions));
  double fast = scaling.number("beta_fast", kFactors, 32), slow = scaling.number("beta_slow", kFactors, 1);
  double low = pairOfRotations(fast, from, original), high = pairOfRotations(slow, from, original);
  if (scaling.flag("truncate", true))
    low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, static_cast<double>(from.rotated - 1));
  if (low == high)
    high += 0.001;
  const std::vector<float> steps = powers(from.theta, from.rotated);
  for (size_t i = 0; i < steps.size(); ++i) {
    float ramp = (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
    float kept = 1 - std::min(std::max(ramp, 0.0f), 1.0f);
    float stretched = 1.0f / (static_cast<float>(factor) * steps[i]), plain = 1.0f / steps[i];
    rotary.frequencies[i] = stretched * (1 - kept) + plain * kept;
  }
  rotary.factor = yarnFactor(scaling, factor);
}

//===----------------------------------------------------------------------===//
// LongRoPE (arXiv 2402.13753)
//===----------------------------------------------------------------------===//

/// Each frequency has a factor of its own, another where samples are longer than the model once was.
static void scaleLongrope(const Section &scaling, const Unscaled &from, Rotary &rotary) {
  const std::vector<float> steps = powers(from.theta, from.rotated);
  auto divided = [&](std::string_view key) {
    std::vector<double> factors = readNumbers(scaling, key, kFactors);
    if (factors.size() != steps.size())
      scaling.refuse(key, "expects one factor for each of " + std::to_string(steps.size()) +
                              " frequencies, but got " + std::to_string(factors.size()));
    factors.resize(steps.size(), 1);
    std::vector<float> frequencies;
    for (size_t i = 0; i < steps.size(); ++i)
      frequencies.push_back(1.0f / (static_cast<float>(factors[i]) * steps[i]));
    return frequencies;
  };
  rotary.frequencies = divided("short_factor");
  rotary.longFrequencies = divided("long_factor");
  std::optional<int64_t> inner =
      scaling.optional("original_max_position_embeddings", Range<int64_t>{1, int64_t{1} << 24});
  rotary.shortLength = inner ? *inner : from.original.value_or(from.positions);
  double factor = inner || from.original
                      ? static_cast<double>(from.positions) / static_cast<double>(rotary.shortLength)
                      : scaling.number("factor", kFactors, 1);
  std::optional<double> given = scaling.optional("attention_factor", kFactors);
  double own = factor <= 1 || rotary.shortLength < 2
                   ? 1
                   : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(rotary.shortLength)));
  rotary.factor = given.value_or(own);
}

//===----------------------------------------------------------------------===//
// All kinds
//===----------------------------------------------------------------------===//

/// Where the parameters stand: rope_parameters where there are any, else rope_scaling.
static Section findScaling(const Section &config, const RotaryKeys &keys) {
  Section parameters = config.section("rope_parameters"), scaling = config.section("rope_scaling");
  if (parameters && scaling)
    config.refuse("rope_scaling", "contradicts rope_parameters, which is its new name", "keep one of them");
  if (!keys.partOfParameters.empty() && (parameters || keys.isScaledElsewhere))
    return parameters.section(keys.partOfParameters);
  return parameters ? parameters : scaling;
}

static void scaleFrequencies(const Section &scaling, const Unscaled &from, Rotary &rotary) {
  std::string kind = scaling.text("rope_type|type");
  if (kind == "linear") {
    auto factor = static_cast<float>(scaling.number("factor", kFactors));
    for (float &frequency : rotary.frequencies)
      frequency /= factor;
  } else if (kind == "llama3") {
    scaleLlama3(scaling, from.positions, rotary.frequencies);
  } else if (kind == "yarn") {
    scaleYarn(scaling, from, rotary);
  } else if (kind == "longrope" || kind == "su") {
    scaleLongrope(scaling, from, rotary);
  } else if (kind == "dynamic") {
    scaling.number("factor",
                   kFactors); // changes nothing up to max_position_embeddings, and no more are accepted
  } else if (!kind.empty() && kind != "default") {
    scaling.refuse("rope_type|type", std::string("expects one of ") + kKinds + ", but got " +
                                         scaling.describe("rope_type|type"));
  } else if (kind.empty() && scaling.has("factor")) {
    scaling.refuse("rope_type|type", std::string("expects one of ") + kKinds + ", but the key is missing");
  }
}

/// The base of the frequencies.
static double readTheta(const Section &config, const Section &scaling, const RotaryKeys &keys) {
  std::optional<double> outer = config.optional(keys.theta, kThetas);
  std::optional<double> inner = scaling.optional("rope_theta", kThetas);
  if (outer && inner && *outer != *inner)
    config.refuse(keys.theta,
                  "contradicts the rope_theta of rope_parameters, " + scaling.describe("rope_theta") +
                      ": got " + config.describe(keys.theta),
                  "keep one of them");
  return inner ? *inner : outer.value_or(keys.defaultTheta);
}

/// How many elements of a head are rotated.
static int64_t readRotated(const Section &config, const Section &scaling, int64_t size,
                           const RotaryKeys &keys) {
  std::optional<double> share = scaling.optional("partial_rotary_factor", Range<double>{0, 1});
  if (!share)
    share = config.number(keys.share, {0, 1}, keys.defaultShare);
  if (!keys.allowsPartial && *share != 1)
    config.refuse(keys.share, "expects 1 for this model_type, but got " + config.describe(keys.share));
  auto rotated = static_cast<int64_t>(static_cast<double>(size) * *share);
  if (rotated >= 2 && rotated % 2 == 0)
    return rotated;
  config.refuse(keys.share, "expects an even number of rotated elements in a head, but got " +
                                std::to_string(rotated) + " of " + std::to_string(size));
  return 2;
}

Rotary hf::plainRotary(double theta, int64_t rotated) { return Rotary{plainFrequencies(theta, rotated)}; }

Rotary hf::readRotary(const Section &config, int64_t size, const RotaryKeys &keys) {
  Section scaling = findScaling(config, keys);
  Unscaled from{readTheta(config, scaling, keys), readRotated(config, scaling, size, keys), keys.positions,
                config.optional("original_max_position_embeddings", Range<int64_t>{1, int64_t{1} << 24})};
  if (!from.original && keys.defaultOriginal != 0)
    from.original = keys.defaultOriginal;
  Rotary rotary = plainRotary(from.theta, from.rotated);
  rotary.interleaved = keys.interleaved;
  scaleFrequencies(scaling, from, rotary);
  return rotary;
}
