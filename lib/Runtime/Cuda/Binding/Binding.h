//===- Binding.h - What binding a command to a GPU needs to know -----------------===//
#ifndef DS_LIB_RUNTIME_CUDA_BINDING_BINDING_H
#define DS_LIB_RUNTIME_CUDA_BINDING_BINDING_H

#include "Driver.h"

#include "ds/Runtime/Program/Program.h"
#include "ds/Support/Environment.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ds::rt::cuda {

/// What choosing algorithms and launches needs to know of a GPU.
struct Hardware {
  int major = 0, minor = 0; ///< compute capability
  int multiprocessors = 0;
  int maxSharedBytes = 0; ///< of a block that has asked for it
  std::string name;
  std::string driver; ///< its version: "580.65.06", or "CUDA 13.0"
};

/// A command that puts its work on a stream.
class CudaTask {
public:
  virtual ~CudaTask() = default;
  virtual Status issue(CUstream stream) = 0;
  /// Other commands, by index, that need not run: it does what they do. Known once choices are made.
  virtual std::vector<uint32_t> replaced() const { return {}; }
};

/// A command that has nothing to do: an empty tensor, or another command does it.
class NoTask final : public CudaTask {
  Status issue(CUstream) override { return {}; }
};

class CudnnCommands;
class BlasLt;
class Choices;
class NcclRanks;

/// The libraries that a program's commands need, opened when the first asks.
struct Libraries {
  std::unique_ptr<BlasLt> blas;
  std::unique_ptr<CudnnCommands> cudnn;
  CUmodule kernels = nullptr;       ///< the runtime's own; the device unloads it
  std::unique_ptr<Choices> choices; ///< that bound commands wait for
  std::string notice;               ///< what is to be told of the kept ones; may be empty
  Libraries();
  ~Libraries();
  /// What does what, for the head of a run: "; attention by cuDNN 9.19.0; GELU within 24 of 24 products".
  std::string describe() const;
};

/// What binding needs to know of the device. What it refers to outlives the tasks; it may be copied.
struct Binding {
  const Driver &driver;
  const Hardware &hardware;
  const Program &program;
  CUmodule module; ///< the program's generated kernels; null if it has none
  CUstream stream; ///< the command's
  Libraries &libraries;
  const std::function<std::byte *(uint32_t buffer)> &address;
  /// The other ranks, connected when the first collective asks.
  const std::function<Result<NcclRanks *>()> &ranks;
};

/// Whether products and convolutions of f32 may lose bits of their factors to tf32: only on demand, the
/// program's or the user's.
inline bool allowsTf32(const Program &program) { return isSet("DS_CUDA_TF32", program.tf32); }

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_BINDING_BINDING_H
