//===- Gelu.cu - GELU and its gradient over the result of a product ------------===//
//
// See Gelu.cpp for the formula. What follows a product of cuBLASLt where its own epilogue does not apply
// GELU.
//
//===---------------------------------------------------------------------------===//
#include "CudaPort.h"

namespace ds::rt::cuda {

DS_DEVICE float geluSlope() { return 0.7978845608028654f; } // sqrt(2 / pi)

/// What x is multiplied by.
DS_DEVICE float geluGate(float x) {
  return 1.0f / (1.0f + expf(-2.0f * geluSlope() * (x + 0.044715f * x * x * x)));
}

DS_DEVICE float geluDerivative(float x) {
  const float s = geluGate(x);
  return s + 2.0f * x * (s * (1.0f - s)) * (geluSlope() + 3.0f * 0.044715f * geluSlope() * x * x);
}

template <bool isGradient, class T>
DS_DEVICE void geluElement(const T &input, T &result) {
  const float x = toFloat(input);
  setFloat(result, isGradient ? toFloat(result) * geluDerivative(x) : x * geluGate(x));
}

template <bool isGradient, class T>
DS_DEVICE void gelu(const GeluCall &call) {
  struct alignas(16) Vector {
    T values[16 / sizeof(T)];
  };
  const int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  const Vector *from = static_cast<const Vector *>(call.input);
  Vector *to = static_cast<Vector *>(call.result);
  for (int64_t v = first; v < call.vectors; v += step) {
    const Vector input = from[v];
    Vector result = isGradient ? to[v] : input;
    for (unsigned k = 0; k < 16 / sizeof(T); ++k)
      geluElement<isGradient>(input.values[k], result.values[k]);
    to[v] = result;
  }
  for (int64_t i = call.vectors * int64_t(16 / sizeof(T)) + first; i < call.count; i += step)
    geluElement<isGradient>(static_cast<const T *>(call.input)[i], static_cast<T *>(call.result)[i]);
}

} // namespace ds::rt::cuda

DS_KERNEL __launch_bounds__(256) ds_gelu_bf16(ds::rt::cuda::GeluCall call) {
  ds::rt::cuda::gelu<false, ds::rt::cuda::BFloat16>(call);
}
DS_KERNEL __launch_bounds__(256) ds_gelu_f16(ds::rt::cuda::GeluCall call) {
  ds::rt::cuda::gelu<false, ds::rt::cuda::Half>(call);
}
DS_KERNEL __launch_bounds__(256) ds_gelu_gradient_bf16(ds::rt::cuda::GeluCall call) {
  ds::rt::cuda::gelu<true, ds::rt::cuda::BFloat16>(call);
}
DS_KERNEL __launch_bounds__(256) ds_gelu_gradient_f16(ds::rt::cuda::GeluCall call) {
  ds::rt::cuda::gelu<true, ds::rt::cuda::Half>(call);
}
