//===- CudaConvLaunches.cpp - Convolutions as launches of CUDA kernels ---------===//
#include "CudaLaunches.h"

namespace ds::rt::cuda {
namespace {

/// Fills the last `rank` - 2 of three entries with the sizes of a view.
void setSizes(int64_t *sizes, const View &view) {
  for (uint32_t d = 0; d < 3; ++d)
    sizes[d] = d + view.rank < 5 ? 1 : view.shape[d + view.rank - 3];
}

void addConvolution(Launches &launches, const LibraryCall &call, const View &x, const View &w, const View &y,
                    const char *entry) {
  ConvCall c{};
  c.first = call.operands[0].data;
  c.second = call.operands[1].data;
  c.result = call.operands[2].data;
  c.bias = call.numOperands > 3 ? call.operands[3].data : nullptr;
  c.count = countOf(call.operands[2]);
  c.batch = x.shape[0];
  c.groups = call.params[0];
  c.inputChannels = x.shape[1];
  c.outputChannels = y.shape[1];
  setSizes(c.input, x);
  setSizes(c.window, w);
  setSizes(c.output, y);
  for (uint32_t d = 0; d < 3; ++d) {
    const bool given = d + x.rank >= 5;
    const int64_t *params = call.params + 1 + 3 * (d + x.rank - 5);
    c.stride[d] = given ? params[0] : 1;
    c.padding[d] = given ? params[1] : 0;
    c.dilation[d] = given ? params[2] : 1;
  }
  constexpr int64_t kMostBlocks = 1 << 20;
  const int64_t blocks = divideUp(c.count, 256);
  launches.add(entry, blocks < kMostBlocks ? blocks : kMostBlocks, 256, c);
}

} // namespace

void addConvolution(Launches &launches, const LibraryCall &call) {
  const View *o = call.operands;
  addConvolution(launches, call, o[0], o[1], o[2],
                 pick(o[0].dtype, "ds_conv_forward_f32", "ds_conv_forward_bf16", "ds_conv_forward_f16"));
}

void addInputGradient(Launches &launches, const LibraryCall &call) {
  const View *o = call.operands;
  addConvolution(launches, call, o[2], o[0], o[1],
                 pick(o[0].dtype, "ds_conv_backward_input_f32", "ds_conv_backward_input_bf16",
                      "ds_conv_backward_input_f16"));
}

void addWeightGradient(Launches &launches, const LibraryCall &call) {
  const View *o = call.operands;
  addConvolution(launches, call, o[0], o[2], o[1],
                 pick(o[0].dtype, "ds_conv_backward_weight_f32", "ds_conv_backward_weight_bf16",
                      "ds_conv_backward_weight_f16"));
}

} // namespace ds::rt::cuda
