//===- CudaDevice.h - One GPU as a Device -----------------------------------------===//
//
// The primary context, so that libraries share it; a stream for each of the program's, an event for each of
// the program's. Marks are words of pinned memory that streams write: they can still be read when an error
// has made the context unusable.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDADEVICE_H
#define DS_LIB_RUNTIME_CUDA_CUDADEVICE_H

#include "Cuda/Binding/Binding.h"
#include "Cuda/Binding/Driver.h"
#include "CudaPlugin.h"
#include "Nccl.h"

#include <deque>
#include <functional>
#include <optional>
#include <vector>

namespace ds::rt::cuda {

/// The device of one context. Its methods are the Device's and their parts.
/// Size: Device asks for 29 of its methods; context, memory, streams, graphs and libraries end in one
/// order, and are still to be parted.
class CudaDevice final : public Device {
public:
  static Result<std::unique_ptr<CudaDevice>> open(const CudaOptions &options);
  ~CudaDevice() override;

  std::string describe() const override;
  Status load(const Program &program, uint32_t rank, std::vector<GroupUse> groups) override;
  Result<std::byte *> allocate(Space space, uint64_t bytes, const char *what) override;
  Status bind(uint32_t command, const Address &address) override;
  Status choose() override;
  Status issue(uint32_t command, uint32_t microBatch) override;
  Status record(uint32_t event, uint32_t stream) override;
  Status wait(uint32_t event, uint32_t stream) override;
  Status callHost(uint32_t stream, void (*body)(void *), void *argument) override;
  Status fork() override;
  Status join() override;
  Status copy(std::byte *to, const std::byte *from, uint64_t bytes) override;
  Status fill(std::byte *at, uint8_t byte, uint64_t bytes) override;
  Status beginGraph() override;
  Result<GraphId> endGraph() override;
  void abandonGraph() override;
  Status launch(GraphId graph) override;
  Status mark(uint32_t stream, uint32_t command) override;
  uint32_t reached(uint32_t stream) const override;
  void resetMarks(uint32_t command) override;
  Status stamp(uint32_t index, uint32_t stream) override;
  Result<double> secondsBetween(uint32_t from, uint32_t to) override;
  bool startObserving() override;
  void observe(uint32_t index) override;
  std::vector<Observed> takeObserved() override;
  Status synchronize() override;
  DeviceMemory memory() const override;
  void beginRange(const char *name) override;
  void endRange() override;

private:
  CudaDevice(const Driver &driver, const CudaOptions &options) : driver(driver), options(options) {}
  Status start();
  Status checkTarget() const;
  Status loadModule(const Program &program);
  Status makeStreams();
  Result<CUevent> makeEvent(unsigned flags);
  Result<NcclRanks *> connectRanks();
  Status watch();
  void dropGraphs();
  void leaveRanks();
  void destroyStreams();
  std::string waitedFor() const;
  int attribute(CUdevice_attribute which) const;
  Status check(CUresult result, const char *what) const;
  Error outOfMemory(uint64_t bytes, const char *what, uint64_t free, uint64_t total) const;

  const Driver &driver;
  const CudaOptions options;
  CUdevice handle = 0;
  CUcontext context = nullptr;
  std::string name, busId;
  Hardware hardware;
  uint64_t freeAtStart = 0;            ///< bytes, the context made
  std::optional<uint64_t> usedAtStart; ///< bytes, by all processes, before there was a context
  const Program *program = nullptr;
  std::vector<GroupUse> groups; ///< of the program's collectives, of all stages
  CUmodule module = nullptr;
  uint32_t computeStream = 0;
  std::vector<CUstream> streams;
  std::vector<CUevent> events;     ///< the program's
  std::vector<CUevent> meetings;   ///< by stream: where it stands when streams fork or join
  std::vector<CUevent> stamps;     ///< with times; made when first used
  std::vector<CUgraphExec> graphs; ///< null once dropped; they go before anything that they use
  /// By command: one for each place of its operands, which is that of the micro-batch; empty for events.
  std::vector<std::vector<std::unique_ptr<CudaTask>>> tasks;
  std::vector<CUdeviceptr> deviceMemory;
  std::vector<uint64_t> deviceBytes; ///< of each
  std::vector<void *> hostMemory;
  uint64_t arenas = 0;                ///< bytes of deviceMemory
  volatile uint32_t *marks = nullptr; ///< by stream; pinned
  CUdeviceptr marksOnDevice = 0;
  std::unique_ptr<Libraries> libraries;
  /// By micro-batch: what bound commands ask for addresses. They keep references.
  std::deque<std::function<std::byte *(uint32_t buffer)>> places;
  const std::function<Result<NcclRanks *>()> others = [this] { return connectRanks(); };
  std::unique_ptr<NcclRanks> ranks; ///< null until a collective of several ranks is bound
};

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDADEVICE_H
