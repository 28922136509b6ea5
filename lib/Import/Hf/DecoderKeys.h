//===- DecoderKeys.h - What families of decoders read alike -----------------------===//
#ifndef DS_LIB_IMPORT_HF_DECODERKEYS_H
#define DS_LIB_IMPORT_HF_DECODERKEYS_H

#include "Decoder.h"

#include <functional>

namespace ds::hf {

/// What a family calls its sizes, and what they are where it does not say.
struct SizeKeys {
  std::string_view positions = "max_position_embeddings", hidden = "hidden_size",
                   layers = "num_hidden_layers", heads = "num_attention_heads", inner = "intermediate_size";
  std::string_view groups = "num_key_value_heads"; ///< empty: as many as heads
  std::string_view size = "head_dim";              ///< empty: hidden / heads
  int64_t defaultPositions = 0;                    ///< 0: must be there
  int64_t defaultInner = 0;                        ///< times `hidden`; 0: must be there
  int64_t defaultGroups = 0;                       ///< 0: as many as heads
  int64_t defaultSize = 0;                         ///< 0: hidden / heads
};

/// What GPT-2 calls its sizes, and families that came of it.
inline constexpr SizeKeys kGpt2Sizes = {.positions = "n_positions|max_position_embeddings",
                                        .hidden = "n_embd|hidden_size",
                                        .layers = "n_layer|num_hidden_layers",
                                        .heads = "n_head|num_attention_heads",
                                        .inner = "n_inner",
                                        .groups = "",
                                        .size = "",
                                        .defaultInner = 4};

/// Sizes, vocabulary and `initializer_range`; as many layers as there are, alike. Scores are divided by the
/// root of a head's size. Heads that do not divide are refused.
DecoderSpec readDecoder(const Section &config, const SizeKeys &keys = {});

/// The norm of `kind` whose epsilon is under `key`.
Norm readNorm(const Section &config, NormKind kind, std::string_view key, double fallback);

/// Which layers have a sliding window.
struct WindowKeys {
  bool isUsed = true;         ///< false: none has, whatever `sliding_window` says
  std::string_view usedKey{}; ///< which key said so
  int64_t fallback = 0;       ///< where sliding_window is missing; 0: none
  /// Whether a layer slides where layer_types does not say.
  std::function<bool(int64_t)> isSliding = [](int64_t) { return true; };
  std::string_view patternKey{}; ///< the key that `isSliding` follows
};
/// Reads sliding_window and layer_types into the layers, and refuses what contradicts itself.
void readWindows(const Section &config, DecoderSpec &spec, const WindowKeys &keys);
/// Those of Qwen: use_sliding_window, and from max_window_layers onwards.
void readLateWindows(const Section &config, DecoderSpec &spec);

/// One rotation for all layers; `keys` without `positions`.
void readOneRotary(const Section &config, DecoderSpec &spec, RotaryKeys keys = {});

/// Refuses `key` unless it is missing, null or `neutral`.
void refuseNumber(const Section &config, std::string_view key, double neutral, const std::string &why);

/// Slopes of ALiBi for `heads` heads times `factor` (arXiv 2108.12409, section 3).
std::vector<float> alibiSlopes(int64_t heads, double factor = 1);

} // namespace ds::hf

#endif // DS_LIB_IMPORT_HF_DECODERKEYS_H
