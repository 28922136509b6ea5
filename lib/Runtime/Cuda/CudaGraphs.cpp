//===- CudaGraphs.cpp - Recorded work of one GPU -------------------------------------===//
#include "CudaGraphs.h"

#include <utility>

namespace ds::rt::cuda {

Status CudaGraphs::begin() {
  return context.check(context.driver.streamBeginCapture(streams.compute(), CU_STREAM_CAPTURE_MODE_RELAXED),
                       "recording a graph");
}

Result<GraphId> CudaGraphs::end() {
  CUgraph graph = nullptr;
  const CUresult captured = context.driver.streamEndCapture(streams.compute(), &graph);
  if (captured != CUDA_SUCCESS || !graph)
    return Error{ExitCode::Invalid, "the step cannot be recorded: " + spell(context.driver, captured), ""};
  CUgraphExec executable = nullptr;
  const CUresult result = context.driver.graphInstantiate(&executable, graph, 0);
  context.driver.graphDestroy(graph);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free = 0, total = 0;
    context.driver.memGetInfo(&free, &total);
    return context.outOfMemory(0, "graph of a step", free, total);
  }
  if (Status status = context.check(result, "making the graph of a step"); !status)
    return status.error();
  graphs.push_back(executable);
  return static_cast<GraphId>(graphs.size() - 1);
}

void CudaGraphs::abandon() {
  CUgraph graph = nullptr;
  if (context.driver.streamEndCapture(streams.compute(), &graph) == CUDA_SUCCESS && graph)
    context.driver.graphDestroy(graph);
}

Status CudaGraphs::launch(GraphId graph) {
  if (!graphs[graph])
    return Error{ExitCode::Device, "the graph of a step is gone: its collectives have been aborted", ""};
  return context.check(context.driver.graphLaunch(graphs[graph], streams.compute()),
                       "starting the graph of a step");
}

void CudaGraphs::drop() {
  for (CUgraphExec &graph : graphs)
    if (graph)
      context.driver.graphExecDestroy(std::exchange(graph, nullptr));
}

} // namespace ds::rt::cuda
