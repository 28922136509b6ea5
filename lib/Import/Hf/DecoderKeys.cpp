//===- DecoderKeys.cpp - What families of decoders read alike ---------------------===//

#include "DecoderKeys.h"

#include "llvm/ADT/StringRef.h"

#include <cmath>

using namespace ::ds::hf;
namespace hf = ::ds::hf;

/// Heads of keys and values, and the size of a head.
static void readHeads(const Section &config, DecoderSizes &sizes, const SizeKeys &keys) {
  sizes.heads = config.integer(keys.heads, kHeads);
  sizes.groups = keys.defaultGroups == 0 ? sizes.heads : keys.defaultGroups;
  if (!keys.groups.empty())
    sizes.groups = config.integer(keys.groups, kHeads, sizes.groups);
  const std::string headsName = llvm::StringRef(keys.heads).split('|').first.str();
  if (sizes.heads % sizes.groups != 0) {
    config.refuse(keys.groups, "expects a divisor of " + headsName + ", which is " +
                                   std::to_string(sizes.heads) + ", but got " + std::to_string(sizes.groups));
    sizes.groups = sizes.heads;
  }
  std::optional<int64_t> given;
  if (!keys.size.empty())
    given = config.optional(keys.size, kHeads);
  if (!given && keys.defaultSize != 0)
    given = keys.defaultSize;
  sizes.size = given ? *given : headSize(config, sizes.hidden, sizes.heads, keys.hidden, keys.heads);
  if (sizes.heads * sizes.size > kInnerWidths.max)
    config.refuse(keys.size, "expects heads of at most " + std::to_string(kInnerWidths.max) +
                                 " elements together, but got " + std::to_string(sizes.heads) + " times " +
                                 std::to_string(sizes.size));
}

DecoderSpec hf::readDecoder(const Section &config, const SizeKeys &keys) {
  DecoderSpec spec;
  DecoderSizes &sizes = spec.sizes;
  spec.vocabulary.size = config.integer("vocab_size", kVocabularies);
  sizes.positions = keys.defaultPositions == 0
                        ? config.integer(keys.positions, kPositions)
                        : config.integer(keys.positions, kPositions, keys.defaultPositions);
  sizes.hidden = config.integer(keys.hidden, kWidths);
  sizes.inner = keys.defaultInner == 0
                    ? config.integer(keys.inner, kInnerWidths)
                    : config.integer(keys.inner, kInnerWidths,
                                     std::min(keys.defaultInner * sizes.hidden, kInnerWidths.max));
  const int64_t layers = config.integer(keys.layers, kLayers);
  sizes.layers = layers;
  readHeads(config, sizes, keys);
  spec.layers.assign(static_cast<size_t>(layers), {});
  spec.deviation = config.number("initializer_range", kDeviations, 0.02);
  spec.factors.scores = 1 / std::sqrt(static_cast<double>(sizes.size));
  return spec;
}

Norm hf::readNorm(const Section &config, NormKind kind, std::string_view key, double fallback) {
  return {kind, config.number(key, kEpsilons, fallback)};
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// Whether each layer slides, as layer_types says; empty where it is not there.
static std::vector<bool> readLayerTypes(const Section &config, size_t layers) {
  const std::vector<std::string> types = config.texts("layer_types");
  if (!types.empty() && types.size() != layers)
    config.refuse("layer_types", "expects one entry for each of " + std::to_string(layers) +
                                     " layers, but got " + std::to_string(types.size()));
  std::vector<bool> slides;
  for (const std::string &type : types) {
    if (type != "sliding_attention" && type != "full_attention")
      config.refuse("layer_types", "expects full_attention or sliding_attention, but got '" + type + "'");
    slides.push_back(type == "sliding_attention");
  }
  slides.resize(types.empty() ? 0 : layers);
  return slides;
}

/// Refuses layer_types that say of a layer another thing than a further key.
static void checkLayerTypes(const Section &config, const std::vector<bool> &slides, const WindowKeys &keys) {
  for (size_t index = 0; index < slides.size(); ++index) {
    const std::string layer = "layer " + std::to_string(index);
    if (slides[index] && !keys.isUsed)
      return config.refuse("layer_types",
                           layer + " has sliding_attention, but " + std::string(keys.usedKey) + " is " +
                               config.describe(keys.usedKey),
                           "make them agree");
    if (!keys.patternKey.empty() && config.has(keys.patternKey) && keys.isUsed &&
        slides[index] != keys.isSliding(static_cast<int64_t>(index)))
      return config.refuse("layer_types",
                           layer + (slides[index] ? " has sliding_attention" : " has full_attention") +
                               ", but by " + std::string(keys.patternKey) + ", " +
                               config.describe(keys.patternKey) + ", it has the other",
                           "keep one of them");
  }
}

void hf::readWindows(const Section &config, DecoderSpec &spec, const WindowKeys &keys) {
  // The class's default, where the key is missing; null means none.
  const bool isThere = config.mentions("sliding_window");
  const std::optional<int64_t> given = config.optional("sliding_window", kPositions);
  const int64_t window = given.value_or(isThere ? 0 : keys.fallback);
  const std::vector<bool> slides = readLayerTypes(config, spec.layers.size());
  checkLayerTypes(config, slides, keys);
  for (size_t index = 0; index < spec.layers.size(); ++index) {
    const bool isSliding = slides.empty() ? keys.isSliding(static_cast<int64_t>(index)) : slides[index];
    spec.layers[index].window = keys.isUsed && isSliding ? window : 0;
    if (!slides.empty() && keys.isUsed && isSliding && window == 0)
      config.refuse("layer_types",
                    "layer " + std::to_string(index) +
                        " has sliding_attention, but sliding_window says no window",
                    "give sliding_window, or full_attention");
  }
}

void hf::readLateWindows(const Section &config, DecoderSpec &spec) {
  WindowKeys keys;
  keys.isUsed = config.flag("use_sliding_window", false);
  keys.usedKey = "use_sliding_window";
  keys.fallback = 4096;
  const int64_t first = config.integer("max_window_layers", {0, kLayers.max}, 28);
  keys.isSliding = [=](int64_t index) { return index >= first; };
  keys.patternKey = "max_window_layers";
  readWindows(config, spec, keys);
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

void hf::readOneRotary(const Section &config, DecoderSpec &spec, RotaryKeys keys) {
  keys.positions = spec.sizes.positions;
  spec.rotaries = {readRotary(config, keys.size == 0 ? spec.sizes.size : keys.size, keys)};
}

std::vector<float> hf::alibiSlopes(int64_t heads, double factor) {
  // 2^(-8 i / n) for the largest power of two n, then those between for what is left.
  int64_t power = 1;
  while (2 * power <= heads)
    power *= 2;
  std::vector<float> slopes;
  const auto n = static_cast<double>(power);
  for (int64_t head = 0; head < heads; ++head) {
    const double exponent = head < power ? static_cast<double>(head + 1) / n
                                         : static_cast<double>(2 * (head - power) + 1) / (2 * n);
    slopes.push_back(static_cast<float>(std::pow(2.0, -8 * exponent) * factor));
  }
  return slopes;
}

void hf::refuseNumber(const Section &config, std::string_view key, double neutral, const std::string &why) {
  const double value = config.number(key, {-1e30, 1e30}, neutral);
  if (value != neutral)
    config.refuse(key, "expects " + config::spellDouble(neutral) + ", but got " + config.describe(key) +
                           ": " + why);
}
