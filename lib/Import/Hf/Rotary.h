//===- Rotary.h - Rotary position embeddings ------------------------------------===//
//
// Turns pairs of a head's first R elements by position * frequency[i]: (x[i], x[i + R/2]), or (x[2i], x[2i +
// 1]) where they are interleaved. Frequencies follow from the configuration, in its old spelling (rope_theta,
// rope_scaling) or the new (rope_parameters).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_HF_ROTARY_H
#define DS_LIB_IMPORT_HF_ROTARY_H

#include "ConfigFile.h"
#include "Graph.h"

namespace ds::hf {

struct Rotary {
  std::vector<float> frequencies; ///< R/2 of them, radians per position
  bool interleaved = false;
  double factor = 1; ///< of cosines and sines (yarn, longrope)
  /// Of samples of more than `shortLength` positions, where those have others (longrope).
  std::vector<float> longFrequencies = {};
  int64_t shortLength = 0;
};

struct RotaryKeys {
  std::string_view theta = "rope_theta"; ///< key of the base outside rope_parameters
  double defaultTheta = 10000;
  std::string_view share = "partial_rotary_factor"; ///< key of the rotated share of a head
  double defaultShare = 1;
  bool allowsPartial = false;
  bool interleaved = false;
  std::string_view partOfParameters = {}; ///< key below rope_parameters of those that are meant
  bool isScaledElsewhere = false;         ///< rope_scaling is of others
  int64_t size = 0;                       ///< of what is rotated of a head; 0: the head's
  int64_t positions = 0;                  ///< max_position_embeddings
  int64_t defaultOriginal = 0;            ///< original_max_position_embeddings; 0: as rope_scaling says
};

/// Reads the frequencies of heads of `size` elements. Refuses kinds of scaling that are not supported.
Rotary readRotary(const Section &config, int64_t size, const RotaryKeys &keys);
/// Those of `rotated` elements with the base `theta`, without any scaling.
Rotary plainRotary(double theta, int64_t rotated);

/// Cosines and sines of all positions, [T, R] each; [B, T, R] of those that position_ids says.
struct RotaryTables {
  Value cos, sin;
  bool interleaved = false;
};
RotaryTables makeTables(Graph &g, const Rotary &rotary, int64_t length);

/// x [B, T, n, D] with the first R elements of each head turned.
Value rotate(Graph &g, Value x, const RotaryTables &tables);

} // namespace ds::hf

#endif // DS_LIB_IMPORT_HF_ROTARY_H
