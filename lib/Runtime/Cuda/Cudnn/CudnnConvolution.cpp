//===- CudnnConvolution.cpp - Convolutions as graphs that cuDNN has engines for -----===//
#include "CudnnConvolution.h"

namespace ds::rt::cuda {
namespace {

using Tensor = CudnnGraph::Tensor;
using Sizes = CudnnGraph::Sizes;

cudnnDataType_t typeOf(DType dtype) {
  return dtype == DType::BF16  ? CUDNN_DATA_BFLOAT16
         : dtype == DType::F16 ? CUDNN_DATA_HALF
                               : CUDNN_DATA_FLOAT;
}

/// Four sizes, of which the last two slide.
Sizes sizesOf(int64_t outer, int64_t channels, const int64_t *sliding, int32_t dims) {
  return {outer, channels, dims == 1 ? 1 : sliding[0], sliding[dims - 1]};
}

} // namespace

Result<NamedGraph> describeConvolution(const Cudnn &cudnn, const ConvForm &form, DType dtype) {
  if (form.dims > 2)
    return Error{ExitCode::Device, "not over three dimensions", ""};
  NamedGraph result{CudnnGraph(cudnn), {}};
  CudnnGraph &graph = result.graph;
  const cudnnDataType_t type = typeOf(dtype);
  const auto operand = [&](int number, const Sizes &sizes) {
    const Tensor tensor = graph.memory(sizes, packedStrides(sizes), type);
    result.tensors.emplace_back(number, tensor.id);
    return tensor;
  };
  const bool byInput = form.kind == ConvKind::BackwardInput, forward = form.kind == ConvKind::Forward;
  const Sizes output = sizesOf(form.batch, form.outputChannels, form.output, form.dims);
  const Tensor x = operand(byInput ? 2 : 0, sizesOf(form.batch, form.inputChannels, form.input, form.dims));
  const Tensor w =
      operand(forward   ? 1
              : byInput ? 0
                        : 2,
              sizesOf(form.outputChannels, form.inputChannels / form.groups, form.window, form.dims));
  if (form.bias) {
    const Tensor sums = graph.value(output), bias = operand(3, {1, form.outputChannels, 1, 1});
    graph.convolution(form, x, w, sums);
    graph.pointwise(CUDNN_POINTWISE_ADD, operand(2, output), sums, &bias);
  } else {
    graph.convolution(form, x, w, operand(forward ? 2 : 1, output));
  }
  Status status = graph.finish();
  return status ? Result<NamedGraph>(std::move(result)) : status.error();
}

NumericalNotes unwantedForConvolutions(DType dtype, bool tf32) {
  NumericalNotes notes = kVaries | noteOf(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  if (dtype == DType::F32 && tf32)
    return notes;
  notes |= noteOf(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  return dtype == DType::F32 ? notes | noteOf(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) : notes;
}

} // namespace ds::rt::cuda
