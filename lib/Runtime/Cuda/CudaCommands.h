//===- CudaCommands.h - The commands of a program, bound to a GPU ----------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDACOMMANDS_H
#define DS_LIB_RUNTIME_CUDA_CUDACOMMANDS_H

#include "CudaRanks.h"

#include <deque>

namespace ds::rt::cuda {

class CudaCommands {
public:
  /// All outlive the commands.
  CudaCommands(const CudaContext &context, const CudaStreams &streams, CudaRanks &ranks)
      : context(context), streams(streams), ranks(ranks) {}

  /// Loads the kernels of `loaded`, which outlives the commands, if it was compiled for this device.
  Status load(const Program &loaded);
  Status bind(uint32_t command, const Device::Address &address);
  /// Chooses algorithms for what was bound, the same on all ranks.
  Status choose();
  Status issue(uint32_t command, uint32_t microBatch);
  /// What Device has of this name.
  Status draw(std::byte *at, DType dtype, const RandomCall &call);

  /// What libraries do, for the head of a run; empty before a program is loaded.
  std::string describe() const { return libraries ? libraries->describe() + assembled : ""; }

  /// Gives up what is bound, while the other ranks are there; then the code, when streams are gone.
  void unbind() { tasks.clear(); }
  void unload();
  /// In place of `unload`: leaves everything where it is.
  void abandon() { (void)libraries.release(); }

private:
  Status checkTarget() const;
  Status loadModule();
  Binding bindingFor(CUstream stream, const std::function<std::byte *(uint32_t buffer)> &place) const;
  void leaveOut();

  const CudaContext &context;
  const CudaStreams &streams;
  CudaRanks &ranks;
  const Program *program = nullptr;
  CUmodule module = nullptr;
  std::string
      assembled; ///< of kernels that are another device's, which the driver has assembled for this one
  std::unique_ptr<Libraries> libraries;
  /// By micro-batch: what bound commands ask for addresses. They keep references.
  std::deque<std::function<std::byte *(uint32_t buffer)>> places;
  const std::function<Result<NcclRanks *>()> others = [this] { return ranks.connect(); };
  /// By command: one for each place of its operands, which is that of the micro-batch; empty for events.
  std::vector<std::vector<std::unique_ptr<CudaTask>>> tasks;
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDACOMMANDS_H
