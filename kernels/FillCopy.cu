//===- FillCopy.cu - Sets and copies strided buffers on CUDA -------------------===//
//
// The launch has merged the dimensions that memory makes one of, and takes several elements for one of up to
// 16 bytes where rows allow it. What is packed on both sides moves from end to end; the rest one by one, the
// destination's innermost dimension across neighbouring threads. Places are divided in 32 bits, which takes a
// fraction of what 64 do, unless there are too many.
//
//===---------------------------------------------------------------------------===//
#include "CudaPort.h"

namespace ds::rt::cuda {

struct alignas(16) Words {
  uint64_t low, high;
};

DS_DEVICE void setBits(Words &to, uint64_t bits) { to = {bits, bits}; }
template <class T>
DS_DEVICE void setBits(T &to, uint64_t bits) {
  to = static_cast<T>(bits);
}

/// Element `i` of both sides, a number of type N.
template <class T, class N>
DS_DEVICE void walkOne(const WalkCall &call, N i, const T &value) {
  int64_t atFrom = 0, atTo = 0;
  N rest = i;
  for (int d = call.rank - 1; d > 0; --d) {
    const N size = static_cast<N>(call.shape[d]), index = rest % size;
    rest /= size;
    atFrom += int64_t(index) * call.fromStrides[d];
    atTo += int64_t(index) * call.toStrides[d];
  }
  atFrom += int64_t(rest) * call.fromStrides[0];
  atTo += int64_t(rest) * call.toStrides[0];
  T *to = static_cast<T *>(call.to) + atTo;
  wholeAt<T>(to) = call.from ? wholeAt<const T>(static_cast<const T *>(call.from) + atFrom) : value;
}

template <class T>
DS_DEVICE void walk(const WalkCall &call) {
  T value;
  setBits(value, call.value);
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  const bool isShort = call.count <= 0xffffffff;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < call.count; i += step)
    if (isShort)
      walkOne(call, static_cast<uint32_t>(i), value);
    else
      walkOne(call, static_cast<uint64_t>(i), value);
}

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
DS_KERNEL __launch_bounds__(256) ds_walk_16(ds::rt::cuda::WalkCall call) {
  ds::rt::cuda::walk<ds::rt::cuda::Words>(call);
}
DS_KERNEL __launch_bounds__(256) ds_move_16(ds::rt::cuda::WalkCall call) { ds::rt::cuda::move(call); }
