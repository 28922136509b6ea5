//===- CudnnGraph.h - A computation described to cuDNN ---------------------------------===//
//
// Tensors have four dimensions. Those of memory are named by a number, by which an execution finds their
// address; the others exist only inside the engine. All arithmetic is in f32.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNGRAPH_H
#define DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNGRAPH_H

#include "Cudnn.h"

#include "ds/Runtime/Program/ConvForm.h"

#include <array>
#include <optional>
#include <vector>

namespace ds::rt::cuda {

class CudnnGraph {
public:
  using Sizes = std::array<int64_t, 4>;
  struct Tensor {
    cudnnBackendDescriptor_t descriptor;
    int64_t id; ///< unique in the graph, from 1
    Sizes sizes;
  };

  /// An operation on each element.
  struct Pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t type; ///< in which it computes
    const Tensor &to, &x;
    const Tensor *y = nullptr, *condition = nullptr;
    std::optional<int64_t> axis = {}; ///< of an index
  };

  explicit CudnnGraph(const Cudnn &cudnn) : cudnn(&cudnn) {}

  /// Memory that an execution brings; strides in elements. Lies on so many bytes.
  Tensor memory(const Sizes &sizes, const Sizes &strides, cudnnDataType_t type, int64_t alignment = 16);
  /// f32 memory of packed rows that a product adds to, in an order of its own; it is to be 0 before.
  Tensor sums(const Sizes &sizes);
  /// One number that an execution brings in host memory.
  Tensor scalar(cudnnDataType_t type = CUDNN_DATA_FLOAT);
  /// An intermediate in row-major order, or by `strides`.
  Tensor value(const Sizes &sizes, cudnnDataType_t type = CUDNN_DATA_FLOAT);
  Tensor value(const Sizes &sizes, const Sizes &strides, cudnnDataType_t type);

  /// to[b, h] = x[b, h] y[b, h]; heads of the one are shared by several of the other where it has fewer.
  void matmul(const Tensor &x, const Tensor &y, const Tensor &to);
  /// What `form` asks for of y = x * w with its windows: the tensor of its kind is written, the others are
  /// read. Two sliding dimensions, or one behind a size of 1. Groups follow from the channels.
  void convolution(const ConvForm &form, const Tensor &x, const Tensor &w, const Tensor &y);
  /// Combines over the dimensions in which `to` has size 1, or fewer heads.
  void reduce(cudnnReduceTensorOp_t operation, const Tensor &x, const Tensor &to);
  /// The same memory order, other sizes or strides.
  void reshape(const Tensor &x, const Tensor &to);
  void add(const Pointwise &what);
  /// The same in f32.
  void pointwise(cudnnPointwiseMode_t mode, const Tensor &to, const Tensor &x, const Tensor *y = nullptr);
  /// As pointwise, into an f32 intermediate of x's size.
  Tensor apply(cudnnPointwiseMode_t mode, const Tensor &x, const Tensor *y = nullptr);
  /// The gradient of what `mode`, a backward one, has made of x, from the gradient `dy` of its result.
  Tensor applyBackward(cudnnPointwiseMode_t mode, const Tensor &dy, const Tensor &x);

  /// Ends the description: the first thing that the library refused, if any.
  Status finish();
  /// Requires a successful `finish`.
  cudnnBackendDescriptor_t operations() const { return graph.get(); }

private:
  struct Place {
    bool intermediate = false, byValue = false;
    int64_t alignment = 16; ///< bytes
    cudnnBackendTensorReordering_t order = CUDNN_TENSOR_REORDERING_NONE;
  };
  Tensor tensor(const Sizes &sizes, const Sizes &strides, cudnnDataType_t type, const Place &place);
  /// An operation on each element, whose operands are still to be set.
  Descriptor beginPointwise(cudnnPointwiseMode_t mode, cudnnDataType_t type, std::optional<int64_t> axis);
  void keep(Descriptor descriptor, const char *what, bool operation);

  const Cudnn *cudnn;
  Status status;
  std::vector<Descriptor> owned;
  std::vector<cudnnBackendDescriptor_t> ops;
  Descriptor graph;
  int64_t numTensors = 0;
};

/// A graph, and the number in it of each tensor that an execution brings, by the describer's own name for it.
struct NamedGraph {
  CudnnGraph graph;
  std::vector<std::pair<int, int64_t>> tensors;
};

/// Row-major strides.
CudnnGraph::Sizes packedStrides(const CudnnGraph::Sizes &sizes);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNGRAPH_H
