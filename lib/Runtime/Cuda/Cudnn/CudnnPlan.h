//===- CudnnPlan.h - An engine of cuDNN for a graph -----------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNPLAN_H
#define DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNPLAN_H

#include "Cuda/Binding/AlgorithmCache.h"
#include "CudnnGraph.h"

namespace ds::rt::cuda {

/// What the library notes of an engine's numbers, as a set: those of engines that are not to be taken.
using NumericalNotes = uint32_t;
constexpr NumericalNotes noteOf(cudnnBackendNumericalNote_t note) { return 1u << note; }
inline constexpr NumericalNotes kVaries = noteOf(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);

/// A compiled engine, ready to run.
class CudnnPlan {
public:
  /// The first `most` of the engines that the library proposes which have none of the `unwanted` notes, need
  /// at most `workspaceBytes`, and can be compiled; that takes about a second each. Fails if there is none.
  static Result<std::vector<CudnnPlan>> candidates(const Cudnn &cudnn, const CudnnGraph &graph,
                                                   const Descriptor &device, uint64_t workspaceBytes,
                                                   NumericalNotes unwanted, size_t most);

  /// The engine that `kept` names, as `choice` gave it for a graph of the same sizes.
  static Result<CudnnPlan> recall(const Cudnn &cudnn, const CudnnGraph &graph, const Descriptor &device,
                                  const AlgorithmCache::Value &kept, uint64_t workspaceBytes);

  /// The engine's number, then its settings, two words each.
  AlgorithmCache::Value choice() const;
  uint64_t workspaceBytes() const { return workspace; }
  cudnnBackendDescriptor_t get() const { return plan.get(); }

private:
  static Result<CudnnPlan> compile(const Cudnn &cudnn, Descriptor configuration, const Descriptor &device,
                                   uint64_t workspaceBytes);

  Descriptor configuration, plan;
  uint64_t workspace = 0; ///< bytes
  const Cudnn *cudnn = nullptr;
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNPLAN_H
