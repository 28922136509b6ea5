//===- CudnnSession.h - cuDNN on a device, and the engines that commands share ------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNSESSION_H
#define DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNSESSION_H

#include "Cuda/Binding/Binding.h"
#include "Cuda/Binding/Choices.h"
#include "CudnnPlan.h"

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ds::rt::cuda {

/// A graph, and the engine that is chosen for it.
struct CudnnEngine {
  std::string key; ///< everything that the engine depends on
  NamedGraph graph;
  uint64_t workspaceBytes; ///< that it may use
  NumericalNotes unwanted;
  CudnnPlan plan = {};
  std::unique_ptr<CudnnCandidates> candidates = {}; ///< that are compiled ahead of a choice
};

/// What an engine is looked for.
struct CudnnRequest {
  std::string key;         ///< everything that the engine depends on besides the device and the library
  uint64_t workspaceBytes; ///< that it may use
  NumericalNotes unwanted;
  std::function<Result<NamedGraph>()> describe;
};

class CudnnTask;

/// The open library with a handle for the device that is current.
class CudnnSession {
public:
  static Result<std::unique_ptr<CudnnSession>> open(const Hardware &hardware);
  ~CudnnSession();

  /// The graph of a request, which equal requests share; without an engine yet.
  Result<std::shared_ptr<CudnnEngine>> find(const CudnnRequest &request);
  /// What `task`, which outlives it, waits for: the fastest of the engines, timed on `stream`, or the one
  /// that a value names.
  Choice choiceFor(const Driver &driver, CUstream stream, CudnnTask &task) const;

  const Cudnn &library() const { return *cudnn; }
  cudnnHandle_t device() const { return handle; }

private:
  CudnnSession() = default;
  Status start(const Hardware &hardware);
  std::unique_ptr<CudnnCandidates> propose(const CudnnEngine &engine, bool byTime) const;
  Result<Choice::Value> choose(const Driver &driver, CUstream stream, CudnnTask &task, bool byTime) const;
  Status take(CudnnEngine &engine, const Choice::Value &value) const;

  std::unique_ptr<Cudnn> cudnn;
  cudnnHandle_t handle = nullptr;
  Descriptor properties;
  std::string prefix;                                                ///< of keys: device, driver and version
  std::unordered_map<std::string, std::shared_ptr<CudnnEngine>> all; ///< by key
  std::unordered_map<std::string, Error> refused;                    ///< by key
};

/// Runs of one engine, one after another.
class CudnnTask final : public CudaTask {
public:
  CudnnTask(const CudnnSession &session, std::shared_ptr<CudnnEngine> engine, const char *what)
      : session(session), engine(std::move(engine)), what(what) {}

  /// Adds a run on the memory that `place` gives for each tensor's name.
  Status add(const std::function<void *(int name)> &place, void *workspace);
  Status issue(CUstream stream) override { return issue(stream, runs.size()); }
  /// The first of its runs, which all are alike.
  Status issueOne(CUstream stream) { return issue(stream, 1); }
  CudnnEngine &shared() const { return *engine; }
  /// Keeps host memory that the library reads when a run is started.
  void keep(std::shared_ptr<void> memory) { kept = std::move(memory); }

private:
  Status issue(CUstream stream, size_t count);

  const CudnnSession &session;
  std::shared_ptr<CudnnEngine> engine;
  const char *what; ///< "computing attention"
  std::vector<Descriptor> runs;
  std::shared_ptr<void> kept;
};

/// What engines want of addresses.
inline bool isCudnnAligned(const void *address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNSESSION_H
