//===- CudaGraphs.h - Recorded work of one GPU ---------------------------------------===//
//
// Graphs hold collectives, kernels and the libraries' code: nothing of these may go before them, and NCCL
// waits until they are gone.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDAGRAPHS_H
#define DS_LIB_RUNTIME_CUDA_CUDAGRAPHS_H

#include "CudaStreams.h"

namespace ds::rt::cuda {

class CudaGraphs final : public DeviceGraphs {
public:
  /// Both outlive the graphs.
  CudaGraphs(const CudaContext &context, const CudaStreams &streams) : context(context), streams(streams) {}

  Status begin() override;
  Result<GraphId> end() override;
  void abandon() override;
  Status launch(GraphId graph) override;

  /// Destroys them all. What runs of one ends by itself, or when its collectives are aborted.
  void drop();

private:
  const CudaContext &context;
  const CudaStreams &streams;
  std::vector<CUgraphExec> graphs; ///< null once dropped
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDAGRAPHS_H
