//===- FillCopy.cu - Sets and copies strided buffers on CUDA -------------------===//
//
// The launch has merged the dimensions that memory makes one of. What is packed on both sides moves by 16
// bytes; the rest element by element, the destination's innermost dimension across neighbouring threads.
//
//===---------------------------------------------------------------------------===//
#include "CudaPort.h"

namespace ds::rt::cuda {

template <class T>
DS_DEVICE void walk(const WalkCall &call) {
  const T *from = static_cast<const T *>(call.from);
  T *to = static_cast<T *>(call.to), value = static_cast<T>(call.value);
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < call.count; i += step) {
    int64_t rest = i, atFrom = 0, atTo = 0;
    for (int d = call.rank - 1; d >= 0; --d) {
      const int64_t index = d == 0 ? rest : rest % call.shape[d];
      rest /= call.shape[d];
      atFrom += index * call.fromStrides[d];
      atTo += index * call.toStrides[d];
    }
    to[atTo] = from ? from[atFrom] : value;
  }
}

struct alignas(16) Words {
  uint64_t low, high;
};

/// `count` elements of 16 bytes, packed.
DS_DEVICE void move(const WalkCall &call) {
  const Words *from = static_cast<const Words *>(call.from);
  Words *to = static_cast<Words *>(call.to), value{call.value, call.value};
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < call.count; i += step)
    to[i] = from ? from[i] : value;
}

} // namespace ds::rt::cuda

DS_KERNEL __launch_bounds__(256) ds_walk_1(ds::rt::cuda::WalkCall call) { ds::rt::cuda::walk<uint8_t>(call); }
DS_KERNEL __launch_bounds__(256) ds_walk_2(ds::rt::cuda::WalkCall call) {
  ds::rt::cuda::walk<uint16_t>(call);
}
DS_KERNEL __launch_bounds__(256) ds_walk_4(ds::rt::cuda::WalkCall call) {
  ds::rt::cuda::walk<uint32_t>(call);
}
DS_KERNEL __launch_bounds__(256) ds_walk_8(ds::rt::cuda::WalkCall call) {
  ds::rt::cuda::walk<uint64_t>(call);
}
DS_KERNEL __launch_bounds__(256) ds_move_16(ds::rt::cuda::WalkCall call) { ds::rt::cuda::move(call); }
