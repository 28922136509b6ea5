//===- SmolLm3.cpp - SmolLM3 ------------------------------------------------===//
//
// As Llama, but in every fourth layer nothing is rotated.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

std::vector<bool> hf::readRotating(const Section &config, size_t layers) {
  std::vector<double> rotating = readNumbers(config, "no_rope_layers", {0, 1});
  const int64_t interval = config.integer("no_rope_layer_interval", {1, kLayers.max}, 4);
  if (rotating.empty())
    for (size_t index = 0; index < layers; ++index)
      rotating.push_back((static_cast<int64_t>(index) + 1) % interval != 0 ? 1 : 0);
  if (rotating.size() != layers)
    config.refuse("no_rope_layers", "expects one entry for each of " + std::to_string(layers) +
                                        " layers, but got " + std::to_string(rotating.size()));
  rotating.resize(layers, 1);
  return {rotating.begin(), rotating.end()};
}

DecoderSpec hf::readSmolLm3(const Section &config) {
  SizeKeys sizes;
  sizes.defaultGroups = 4;
  RotaryKeys rotary;
  rotary.defaultTheta = 2e6;
  DecoderSpec spec = readLlamaLike(config, sizes, rotary);
  spec.vocabulary.tied = config.flag("tie_word_embeddings", true);
  readLlamaBiases(config, spec);
  const std::vector<bool> rotating = readRotating(config, spec.layers.size());
  WindowKeys windows;
  windows.isUsed = config.flag("use_sliding_window", false);
  windows.usedKey = "use_sliding_window";
  windows.isSliding = [&](int64_t index) { return !rotating[static_cast<size_t>(index)]; };
  readWindows(config, spec, windows);
  for (size_t index = 0; index < rotating.size(); ++index)
    spec.layers[index].rotary = rotating[index] ? 0 : spec.rotaries.size();
  return spec;
}
