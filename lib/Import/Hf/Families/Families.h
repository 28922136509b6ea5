//===- Families.h - What the readers of decoders share ----------------------------===//
#ifndef DS_LIB_IMPORT_HF_FAMILIES_FAMILIES_H
#define DS_LIB_IMPORT_HF_FAMILIES_FAMILIES_H

#include "../DecoderKeys.h"
#include "../FamilyReaders.h"

namespace ds::hf {

/// What Llama and its descendants have: RMS norm before each half, rotary positions, a gated feed-forward.
DecoderSpec readLlamaLike(const Section &config, const SizeKeys &sizes = {}, RotaryKeys rotary = {},
                          double epsilon = 1e-6);
/// attention_bias, of all four products of attention, and mlp_bias, of all of the feed-forward.
void readLlamaBiases(const Section &config, DecoderSpec &spec);

/// Whether each layer rotates, by no_rope_layers or its interval.
std::vector<bool> readRotating(const Section &config, size_t layers);

/// What a family calls its experts.
struct ExpertKeys {
  std::string_view count;
  std::string_view inner{};    ///< empty: as the feed-forward of a layer without
  int64_t defaultPerToken = 0; ///< 0: must be there
};
/// Experts in every layer.
void readExperts(const Section &config, DecoderSpec &spec, const ExpertKeys &keys);

} // namespace ds::hf

#endif // DS_LIB_IMPORT_HF_FAMILIES_FAMILIES_H
