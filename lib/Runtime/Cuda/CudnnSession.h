//===- CudnnSession.h - cuDNN on a device, and the engines that commands share ------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNNSESSION_H
#define DS_LIB_RUNTIME_CUDA_CUDNNSESSION_H

#include "AlgorithmCache.h"
#include "Commands.h"
#include "CudnnPlan.h"

#include <functional>
#include <unordered_map>
#include <vector>

namespace ds::rt::cuda {

/// A graph and its engine.
struct CudnnEngine {
  NamedGraph graph;
  CudnnPlan plan;
};

/// What an engine is looked for.
struct CudnnRequest {
  std::string key;         ///< everything that the engine depends on besides the device and the library
  uint64_t workspaceBytes; ///< that it may use
  NumericalNotes unwanted;
  std::function<Result<NamedGraph>()> describe;
  std::function<void *(int name)> place; ///< memory of each tensor, for a run by which engines are timed
  void *workspace;                       ///< of that run
};

/// The open library with a handle for the device that is current.
class CudnnSession {
public:
  static Result<std::unique_ptr<CudnnSession>> open(const Hardware &hardware);
  ~CudnnSession();

  /// The engine of a request: one that was found before, that the cache on disk names, or that is chosen now.
  /// The fastest one is chosen, where the choice can be kept.
  Result<std::shared_ptr<CudnnEngine>> find(const Binding &binding, const CudnnRequest &request);

  const Cudnn &library() const { return *cudnn; }
  cudnnHandle_t device() const { return handle; }

private:
  CudnnSession() = default;
  Status start(const Hardware &hardware);
  Result<std::shared_ptr<CudnnEngine>> make(const Binding &binding, const CudnnRequest &request);
  Status choose(const Binding &binding, const CudnnRequest &request, const std::string &key,
                const std::shared_ptr<CudnnEngine> &engine);

  std::unique_ptr<Cudnn> cudnn;
  cudnnHandle_t handle = nullptr;
  Descriptor properties;
  AlgorithmCache cache;
  std::string prefix; ///< of keys of the cache: device and version
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
  Status issue(CUstream stream) override;
  /// Keeps host memory that the library reads when a run is started.
  void keep(std::shared_ptr<void> memory) { kept = std::move(memory); }

private:
  const CudnnSession &session;
  std::shared_ptr<CudnnEngine> engine;
  const char *what; ///< "computing attention"
  std::vector<Descriptor> runs;
  std::shared_ptr<void> kept;
};

/// What engines want of addresses.
inline bool isCudnnAligned(const void *address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNNSESSION_H
