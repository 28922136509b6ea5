//===- CudnnGraph.cpp - A computation described to cuDNN -------------------------------===//
#include "CudnnGraph.h"

namespace ds::rt::cuda {

CudnnGraph::Sizes packedStrides(const CudnnGraph::Sizes &sizes) {
  return {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
}

/// Finalises a descriptor and keeps it as long as the graph, for others name it; as one of its operations if
/// asked.
void CudnnGraph::keep(Descriptor descriptor, const char *what, bool operation) {
  if (status)
    status = descriptor.finalize(what);
  if (operation)
    ops.push_back(descriptor.get());
  owned.push_back(std::move(descriptor));
}

CudnnGraph::Tensor CudnnGraph::tensor(const Sizes &sizes, const Sizes &strides, cudnnDataType_t type,
                                      const Place &place) {
  Descriptor tensor(*cudnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const Tensor result{tensor.get(), ++numTensors, sizes};
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, result.id)
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, sizes.size(), sizes.data())
      .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides.size(), strides.data())
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, place.alignment)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, place.intermediate)
      .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, place.byValue);
  if (place.order != CUDNN_TENSOR_REORDERING_NONE)
    tensor.set(CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TYPE_TENSOR_REORDERING_MODE, 1, &place.order);
  keep(std::move(tensor), "describing a tensor", false);
  return result;
}

CudnnGraph::Tensor CudnnGraph::memory(const Sizes &sizes, const Sizes &strides, cudnnDataType_t type,
                                      int64_t alignment) {
  return tensor(sizes, strides, type, {.alignment = alignment});
}
CudnnGraph::Tensor CudnnGraph::sums(const Sizes &sizes) {
  return tensor(sizes, packedStrides(sizes), CUDNN_DATA_FLOAT, {.order = CUDNN_TENSOR_REORDERING_F16x16});
}
CudnnGraph::Tensor CudnnGraph::scalar(cudnnDataType_t type) {
  return tensor({1, 1, 1, 1}, {1, 1, 1, 1}, type, {.byValue = true});
}
CudnnGraph::Tensor CudnnGraph::value(const Sizes &sizes, cudnnDataType_t type) {
  return value(sizes, packedStrides(sizes), type);
}
CudnnGraph::Tensor CudnnGraph::value(const Sizes &sizes, const Sizes &strides, cudnnDataType_t type) {
  return tensor(sizes, strides, type, {.intermediate = true});
}

void CudnnGraph::matmul(const Tensor &x, const Tensor &y, const Tensor &to) {
  Descriptor matmul(*cudnn, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  matmul.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  const cudnnBackendDescriptor_t how = matmul.get();
  keep(std::move(matmul), "describing a product", false);
  Descriptor operation(*cudnn, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how)
      .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, x.descriptor)
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, y.descriptor)
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, to.descriptor);
  keep(std::move(operation), "describing a product", true);
}

namespace {

/// The attributes of the operation of each kind of convolution.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, how, x, w, y;
};
constexpr ConvolutionNames kConvolutions[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};

} // namespace

/// What slides: `form`'s windows in two dimensions, of numbers that default to `missing`.
static std::array<int64_t, 2> slides(const ConvForm &form, const int64_t *values, int64_t missing) {
  return form.dims == 1 ? std::array{missing, values[0]} : std::array{values[0], values[1]};
}

void CudnnGraph::convolution(const ConvForm &form, const Tensor &x, const Tensor &w, const Tensor &y) {
  const auto stride = slides(form, form.stride, 1), padding = slides(form, form.padding, 0),
             dilation = slides(form, form.dilation, 1);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  Descriptor convolution(*cudnn, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t(2))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride.data())
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, padding.data())
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, padding.data())
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation.data());
  const cudnnBackendDescriptor_t how = convolution.get();
  keep(std::move(convolution), "describing a convolution", false);
  const ConvolutionNames &names = kConvolutions[static_cast<int>(form.kind)];
  const float one = 1, zero = 0;
  Descriptor operation(*cudnn, names.type);
  operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1, &one)
      .set(names.beta, CUDNN_TYPE_FLOAT, 1, &zero)
      .set(names.how, how)
      .set(names.x, x.descriptor)
      .set(names.w, w.descriptor)
      .set(names.y, y.descriptor);
  keep(std::move(operation), "describing a convolution", true);
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t kind, const Tensor &x, const Tensor &to) {
  Descriptor reduction(*cudnn, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  reduction.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &kind)
      .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  const cudnnBackendDescriptor_t how = reduction.get();
  keep(std::move(reduction), "describing a reduction", false);
  Descriptor operation(*cudnn, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.descriptor)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to.descriptor);
  keep(std::move(operation), "describing a reduction", true);
}

void CudnnGraph::reshape(const Tensor &x, const Tensor &to) {
  Descriptor operation(*cudnn, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.descriptor)
      .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, to.descriptor);
  keep(std::move(operation), "describing a change of shape", true);
}

Descriptor CudnnGraph::beginPointwise(cudnnPointwiseMode_t mode, cudnnDataType_t type,
                                      std::optional<int64_t> axis) {
  Descriptor pointwise(*cudnn, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  pointwise.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, type);
  if (axis)
    pointwise.set(CUDNN_ATTR_POINTWISE_AXIS, *axis);
  const cudnnBackendDescriptor_t how = pointwise.get();
  keep(std::move(pointwise), "describing an operation", false);
  Descriptor operation(*cudnn, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  return operation;
}

void CudnnGraph::add(const Pointwise &what) {
  Descriptor operation = beginPointwise(what.mode, what.type, what.axis);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, what.x.descriptor)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, what.to.descriptor);
  if (what.y)
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, what.y->descriptor);
  if (what.condition)
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, what.condition->descriptor);
  keep(std::move(operation), "describing an operation", true);
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const Tensor &to, const Tensor &x, const Tensor *y) {
  add({.mode = mode, .type = CUDNN_DATA_FLOAT, .to = to, .x = x, .y = y});
}

CudnnGraph::Tensor CudnnGraph::apply(cudnnPointwiseMode_t mode, const Tensor &x, const Tensor *y) {
  const Tensor to = value(x.sizes);
  pointwise(mode, to, x, y);
  return to;
}

CudnnGraph::Tensor CudnnGraph::applyBackward(cudnnPointwiseMode_t mode, const Tensor &dy, const Tensor &x) {
  const Tensor to = value(x.sizes);
  Descriptor operation = beginPointwise(mode, CUDNN_DATA_FLOAT, std::nullopt);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, dy.descriptor)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, to.descriptor);
  keep(std::move(operation), "describing an operation", true);
  return to;
}

Status CudnnGraph::finish() {
  if (!status)
    return status;
  graph = Descriptor(*cudnn, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(ops.size()),
            ops.data());
  return status = graph.finalize("describing a graph");
}

} // namespace ds::rt::cuda
