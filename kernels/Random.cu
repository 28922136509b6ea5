//===- Random.cu - Fills memory with random numbers on CUDA --------------------===//
//
// The bits of the CPU's kernel, element for element: the same Philox blocks, the same polynomials, and no
// contraction of products and sums (nvcc gets -fmad=false). A thread makes the four elements of one block,
// and rounds each once where they are of 16 bits.
//
//===---------------------------------------------------------------------------===//
#include "Philox.cuh"

namespace ds::rt::cuda {

DS_DEVICE float logOf(float x) {
  int32_t word = static_cast<int32_t>(wordOf(x));
  const int32_t exponent = (word - 0x3f3504f3) >> 23;
  word -= exponent * (1 << 23);
  const float m = floatOf(static_cast<uint32_t>(word));
  const float f = m - 1.0f, s = f / (2.0f + f), z = s * s;
  const float p = z * (0.66666668653f + z * (0.40000004f + z * (0.28571430f + z * 0.2222221f)));
  return static_cast<float>(exponent) * 0.69314718f + (2.0f * s + s * p);
}

DS_DEVICE void cosSin(uint32_t word, float &cosine, float &sine) {
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

template <class T>
DS_DEVICE void fillRandom(const FillRandomCall &call) {
  T *data = static_cast<T *>(call.data);
  const int64_t last = call.first + call.count;
  const int64_t block = call.first / 4 + int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (block * 4 >= last)
    return;
  uint32_t words[4];
  float values[4];
  philox(static_cast<uint64_t>(block), call.stream, call.seed, words);
  for (int pair = 0; pair < 4; pair += 2) {
    if (call.normal) {
      const float u = (static_cast<float>(words[pair] >> 8) + 0.5f) * 0x1p-24f;
      const float radius = sqrtf(-2.0f * logOf(u));
      float cosine, sine;
      cosSin(words[pair + 1], cosine, sine);
      values[pair] = radius * cosine;
      values[pair + 1] = radius * sine;
    } else {
      values[pair] = static_cast<float>(words[pair] >> 8) * 0x1p-24f;
      values[pair + 1] = static_cast<float>(words[pair + 1] >> 8) * 0x1p-24f;
    }
  }
  for (int w = 0; w < 4; ++w) {
    const int64_t i = block * 4 + w;
    if (i >= call.first && i < last)
      setFloat(data[i - call.first], call.offset + call.scale * values[w]);
  }
}

} // namespace ds::rt::cuda

DS_ENTRIES(ds_fill_random, fillRandom, FillRandomCall, 256)
