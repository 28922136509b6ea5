//===- CudnnPlan.h - An engine of cuDNN for a graph -----------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNPLAN_H
#define DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNPLAN_H

#include "Cuda/Binding/AlgorithmCache.h"
#include "CudnnGraph.h"

#include <functional>
#include <optional>

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
  friend class CudnnCandidates;
  static Result<CudnnPlan> compile(const Cudnn &cudnn, Descriptor configuration, const Descriptor &device,
                                   uint64_t workspaceBytes);

  Descriptor configuration, plan;
  uint64_t workspace = 0; ///< bytes
  const Cudnn *cudnn = nullptr;
};

/// The engines that the library proposes for a graph, which outlives them, and of which the first `most` that
/// do are taken (CudnnPlan::candidates).
class CudnnCandidates {
public:
  CudnnCandidates(const Cudnn &cudnn, const CudnnGraph &graph, const Descriptor &device,
                  uint64_t workspaceBytes, NumericalNotes unwanted, size_t most);

  /// Jobs that compile one each of those that will be taken, unless one cannot be: on any threads, at once.
  std::vector<std::function<void()>> jobs();
  /// Compiles what is still to be and takes it, whatever jobs were done; once. Fails if there is none.
  Result<std::vector<CudnnPlan>> take();

private:
  struct Proposal {
    Descriptor configuration;
    uint64_t bytes; ///< of workspace, as far as is known before it is compiled
    std::optional<Result<CudnnPlan>> plan = {};
  };
  void compile(Proposal &proposal) const;

  const Cudnn &cudnn;
  const Descriptor &device;
  uint64_t workspaceBytes;
  size_t most;
  std::vector<Proposal> proposals; ///< best first
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNPLAN_H
