//===- Rotary.h - Rotary position embeddings ------------------------------------===//
//
// Turns each pair (x[i], x[i + R/2]) of a head's first R elements by position * frequency[i]. Frequencies
// follow from the configuration, in its old spelling (rope_theta, rope_scaling) or the new (rope_parameters).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_HF_ROTARY_H
#define DS_LIB_IMPORT_HF_ROTARY_H

#include "ConfigFile.h"
#include "Graph.h"

namespace ds::hf {

struct Rotary {
  std::vector<float> frequencies; ///< R/2 of them, radians per position
};

struct RotaryKeys {
  std::string_view theta = "rope_theta"; ///< key of the base outside rope_parameters
  double defaultTheta = 10000;
  std::string_view share = "partial_rotary_factor"; ///< key of the rotated share of a head
  double defaultShare = 1;
  bool allowsPartial = false;
  int64_t positions = 0; ///< max_position_embeddings
};

/// Reads the frequencies of heads of `size` elements. Refuses kinds of scaling that are not supported.
Rotary readRotary(const Section &config, int64_t size, const RotaryKeys &keys);

/// Cosines and sines of all positions, [T, R] each; [B, T, R] of those that position_ids says.
struct RotaryTables {
  Value cos, sin;
};
RotaryTables makeTables(Graph &g, const Rotary &rotary, int64_t length);

/// x [B, T, n, D] with the first R elements of each head turned.
Value rotate(Graph &g, Value x, const RotaryTables &tables);

} // namespace ds::hf

#endif // DS_LIB_IMPORT_HF_ROTARY_H
