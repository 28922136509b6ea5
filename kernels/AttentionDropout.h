//===- AttentionDropout.h - Which probabilities of attention are dropped --------===//
//
// Each probability has a number, its place in [B, H, T, S], and is dropped or kept by the random word of that
// number. So a tile of the mask can be drawn wherever the tile is, forward and backward, and is the mask that
// a dropout of the whole tensor would draw (Library.h).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_KERNELS_ATTENTIONDROPOUT_H
#define DS_KERNELS_ATTENTIONDROPOUT_H

#include "Philox.h"

namespace ds::rt::DS_ISA {

/// The draw of one command.
struct Dropout {
  bool isDrawn = false;
  uint32_t least = 0; ///< a word that has less in its high 24 bits drops
  float factor = 1;   ///< of what is kept
  uint64_t seed = 0, stream = 0;

  Dropout() = default;
  Dropout(double probability, int64_t id, const View &generator) : isDrawn(true) {
    const auto number = [&](int64_t i) {
      return static_cast<uint64_t>(static_cast<const int64_t *>(generator.data)[i * generator.strides[0]]);
    };
    // u < p for u = word / 2^24, where p is an f32; above the product there is no other word.
    const double words = static_cast<double>(static_cast<float>(probability)) * 0x1p24;
    least = static_cast<uint32_t>(words);
    least += static_cast<double>(least) < words;
    factor = static_cast<float>(1.0 / (1.0 - probability));
    seed = number(0);
    stream = (static_cast<uint64_t>(id) & 0xffffffffu) | number(1) << 32;
  }

  /// to[i * stride] = the factor of number first + i, for i < count: 0 where it is dropped.
  void factors(uint64_t first, int64_t count, float *to, int64_t stride) const {
    constexpr int64_t kNumbers = 4 * kPhiloxBlocks;
    const auto begin = static_cast<int64_t>(first % 4);
    for (int64_t at = -begin; at < count; at += kNumbers) {
      uint32_t words[4][kPhiloxBlocks];
      philox((first + static_cast<uint64_t>(at)) / 4, stream, seed, words);
      for (int64_t i = maxOf(at, 0); i < minOf(at + kNumbers, count); ++i)
        to[i * stride] = words[(i - at) % 4][(i - at) / 4] >> 8 < least ? 0.0f : factor;
    }
  }
};

} // namespace ds::rt::DS_ISA

#endif // DS_KERNELS_ATTENTIONDROPOUT_H
