//===- Conv.cu - Convolutions and their gradients on CUDA ----------------------===//
//
// What runs where cuDNN does not: each thread adds up one element of the result, in one order, in f32. No
// sharing of what neighbours read, so it is slow, and no atomics or scratch memory, so it is the same bits in
// every run. Fewer than three sliding dimensions have sizes of 1 before them.
//
//===---------------------------------------------------------------------------===//
#include "CudaPort.h"

namespace ds::rt::cuda {

/// A place in a tensor [outer, channel, three dimensions], by its number in memory.
struct ConvPlace {
  int64_t outer, channel, at[3];
};

DS_DEVICE ConvPlace placeOf(int64_t number, int64_t channels, const int64_t *sizes) {
  ConvPlace place;
  for (int d = 2; d >= 0; --d) {
    place.at[d] = number % sizes[d];
    number /= sizes[d];
  }
  place.channel = number % channels;
  place.outer = number / channels;
  return place;
}

DS_DEVICE int64_t convOffset(int64_t outer, int64_t channels, int64_t channel, const int64_t *sizes,
                             const int64_t *at) {
  return (((outer * channels + channel) * sizes[0] + at[0]) * sizes[1] + at[1]) * sizes[2] + at[2];
}

/// Calls body(index) for each index below `sizes`, the last dimension fastest.
template <class Body>
DS_DEVICE void forBox(const int64_t *sizes, Body body) {
  int64_t at[3];
  for (at[0] = 0; at[0] < sizes[0]; ++at[0])
    for (at[1] = 0; at[1] < sizes[1]; ++at[1])
      for (at[2] = 0; at[2] < sizes[2]; ++at[2])
        body(at);
}

/// Where the window at `output` reads with its element `window`; false outside the input.
DS_DEVICE bool findRead(const ConvCall &c, const int64_t *output, const int64_t *window, int64_t *input) {
  bool inside = true;
  for (int d = 0; d < 3; ++d) {
    input[d] = output[d] * c.stride[d] + window[d] * c.dilation[d] - c.padding[d];
    inside = inside && input[d] >= 0 && input[d] < c.input[d];
  }
  return inside;
}

/// Which window reads `input` with its element `window`; false if none does.
DS_DEVICE bool findReader(const ConvCall &c, const int64_t *input, const int64_t *window, int64_t *output) {
  bool reads = true;
  for (int d = 0; d < 3; ++d) {
    const int64_t shifted = input[d] + c.padding[d] - window[d] * c.dilation[d];
    output[d] = shifted / c.stride[d];
    reads = reads && shifted >= 0 && output[d] * c.stride[d] == shifted && output[d] < c.output[d];
  }
  return reads;
}

/// One element of the output.
template <class T>
DS_DEVICE float sumForward(const ConvCall &c, int64_t number) {
  const T *x = static_cast<const T *>(c.first), *w = static_cast<const T *>(c.second);
  const int64_t channels = c.inputChannels / c.groups;
  const ConvPlace to = placeOf(number, c.outputChannels, c.output);
  const int64_t first = to.channel / (c.outputChannels / c.groups) * channels;
  float sum = c.bias ? toFloat(static_cast<const T *>(c.bias)[to.channel]) : 0.0f;
  for (int64_t i = 0; i < channels; ++i)
    forBox(c.window, [&](const int64_t *k) {
      int64_t from[3];
      if (findRead(c, to.at, k, from))
        sum += toFloat(x[convOffset(to.outer, c.inputChannels, first + i, c.input, from)]) *
               toFloat(w[convOffset(to.channel, channels, i, c.window, k)]);
    });
  return sum;
}

/// One element of the input's gradient.
template <class T>
DS_DEVICE float sumBackwardInput(const ConvCall &c, int64_t number) {
  const T *w = static_cast<const T *>(c.first), *dy = static_cast<const T *>(c.second);
  const int64_t channels = c.inputChannels / c.groups, filters = c.outputChannels / c.groups;
  const ConvPlace to = placeOf(number, c.inputChannels, c.input);
  const int64_t group = to.channel / channels, channel = to.channel % channels;
  float sum = 0;
  for (int64_t o = group * filters; o < (group + 1) * filters; ++o)
    forBox(c.window, [&](const int64_t *k) {
      int64_t from[3];
      if (findReader(c, to.at, k, from))
        sum += toFloat(dy[convOffset(to.outer, c.outputChannels, o, c.output, from)]) *
               toFloat(w[convOffset(o, channels, channel, c.window, k)]);
    });
  return sum;
}

/// One element of the weight's gradient: the sums of the samples are added, which rounds less than one long
/// sum.
template <class T>
DS_DEVICE float sumBackwardWeight(const ConvCall &c, int64_t number) {
  const T *x = static_cast<const T *>(c.first), *dy = static_cast<const T *>(c.second);
  const int64_t channels = c.inputChannels / c.groups, filters = c.outputChannels / c.groups;
  const ConvPlace to = placeOf(number, channels, c.window);
  const int64_t channel = to.outer / filters * channels + to.channel;
  float sum = 0;
  for (int64_t n = 0; n < c.batch; ++n) {
    float sample = 0;
    forBox(c.output, [&](const int64_t *l) {
      int64_t from[3];
      if (findRead(c, l, to.at, from))
        sample += toFloat(dy[convOffset(n, c.outputChannels, to.outer, c.output, l)]) *
                  toFloat(x[convOffset(n, c.inputChannels, channel, c.input, from)]);
    });
    sum += sample;
  }
  return sum;
}

/// Each thread's elements of the result, which `sum` gives.
template <class T, class Sum>
DS_DEVICE void forResult(const ConvCall &c, Sum sum) {
  T *result = static_cast<T *>(c.result);
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < c.count; i += step)
    setFloat(result[i], sum(i));
}

template <class T>
DS_DEVICE void convForward(const ConvCall &c) {
  forResult<T>(c, [&](int64_t i) { return sumForward<T>(c, i); });
}
template <class T>
DS_DEVICE void convBackwardInput(const ConvCall &c) {
  forResult<T>(c, [&](int64_t i) { return sumBackwardInput<T>(c, i); });
}
template <class T>
DS_DEVICE void convBackwardWeight(const ConvCall &c) {
  forResult<T>(c, [&](int64_t i) { return sumBackwardWeight<T>(c, i); });
}

} // namespace ds::rt::cuda

DS_ENTRIES(ds_conv_forward, convForward, ConvCall, 256)
DS_ENTRIES(ds_conv_backward_input, convBackwardInput, ConvCall, 256)
DS_ENTRIES(ds_conv_backward_weight, convBackwardWeight, ConvCall, 256)
