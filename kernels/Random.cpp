//===- Random.cpp - Fills memory with random numbers ---------------------------===//
//
// Counter-based: element i of a tensor depends on the seed, the tensor's stream and i alone, so any thread
// can make any part, and the same seed gives the same weights. Four elements share one Philox block; normals
// come from Box-Muller with polynomials for the logarithm, sine and cosine. This file is compiled without
// contraction: every instruction set gives the same bits.
//
//===---------------------------------------------------------------------------===//
#include "Philox.h"

namespace ds::rt::DS_ISA {
namespace {

constexpr int kBlocks = kPhiloxBlocks;

/// ln x for x in (0, 1], to a few units in the last place: x = m 2^e with m in [sqrt(1/2), sqrt(2)).
DS_INLINE float logOf(float x) {
  int32_t word;
  __builtin_memcpy(&word, &x, 4);
  const int32_t exponent = (word - 0x3f3504f3) >> 23;
  word -= exponent << 23;
  float m;
  __builtin_memcpy(&m, &word, 4);
  const float f = m - 1.0f, s = f / (2.0f + f), z = s * s;
  const float p = z * (0.66666668653f + z * (0.40000004f + z * (0.28571430f + z * 0.2222221f)));
  return static_cast<float>(exponent) * 0.69314718f + (2.0f * s + s * p);
}

/// cos and sin of 2 pi u for u in [-1/8, 1/8] by their series, then the quadrant of `word`'s top bits.
DS_INLINE void cosSin(uint32_t word, float &cosine, float &sine) {
  const int32_t quadrant = static_cast<int32_t>((word + 0x20000000u) >> 30);
  const float x = static_cast<float>(static_cast<int32_t>(word - (static_cast<uint32_t>(quadrant) << 30))) *
                  1.4629180792671596e-9f; // 2 pi / 2^32
  const float z = x * x;
  const float c = 1.0f + z * (-0.5f + z * (0.041666668f + z * (-0.0013888889f + z * 2.4801587e-5f)));
  const float s =
      x * (1.0f + z * (-0.16666667f + z * (0.0083333333f + z * (-1.9841270e-4f + z * 2.7557319e-6f))));
  const float swapC = quadrant & 1 ? s : c, swapS = quadrant & 1 ? c : s;
  cosine = (quadrant + 1) & 2 ? -swapC : swapC;
  sine = quadrant & 2 ? -swapS : swapS;
}

/// 4 * kBlocks standard normals, element 4 b + w of block b and word w.
void normals(const uint32_t words[4][kBlocks], float *out) {
  float values[4][kBlocks];
  for (int pair = 0; pair < 4; pair += 2)
    for (int i = 0; i < kBlocks; ++i) {
      const float u = (static_cast<float>(words[pair][i] >> 8) + 0.5f) * 0x1p-24f;
      const float radius = __builtin_sqrtf(-2.0f * logOf(u));
      float cosine, sine;
      cosSin(words[pair + 1][i], cosine, sine);
      values[pair][i] = radius * cosine;
      values[pair + 1][i] = radius * sine;
    }
  for (int i = 0; i < kBlocks; ++i)
    for (int w = 0; w < 4; ++w)
      out[4 * i + w] = values[w][i];
}

/// The same number of uniforms in [0, 1).
void uniforms(const uint32_t words[4][kBlocks], float *out) {
  for (int i = 0; i < kBlocks; ++i)
    for (int w = 0; w < 4; ++w)
      out[4 * i + w] = static_cast<float>(words[w][i] >> 8) * 0x1p-24f;
}

} // namespace

void fillRandom(const RandomCall &call) {
  constexpr int64_t kChunk = 4 * kBlocks;
  const int64_t last = call.first + call.count, firstChunk = call.first / kChunk;
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t chunk = firstChunk + begin; chunk < firstChunk + end; ++chunk) {
      uint32_t words[4][kBlocks];
      float values[kChunk];
      philox(static_cast<uint64_t>(chunk) * kBlocks, call.stream, call.seed, words);
      call.normal ? normals(words, values) : uniforms(words, values);
      const int64_t base = chunk * kChunk, end = minOf(last, base + kChunk);
      for (int64_t i = base < call.first ? call.first : base; i < end; ++i)
        call.data[i - call.first] = call.offset + call.scale * values[i - base];
    }
  };
  forRanges((last + kChunk - 1) / kChunk - firstChunk, 256, call.threads, body);
}

} // namespace ds::rt::DS_ISA
