//===- GpuBench.h - Single library commands on a GPU ------------------------------===//
//
// Commands are bound by the code that binds a program's and are timed by the device's own events, many runs
// between two of them. Memory holds random small numbers: products of zeros are faster than products.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CALIBRATE_GPUBENCH_H
#define DS_LIB_RUNTIME_CALIBRATE_GPUBENCH_H

#include "CommandList.h"
#include "Sampling.h"

#include "ds/Runtime/Engine/Device.h"

namespace ds::rt {

class GpuBench : public CommandList {
public:
  /// `streams` streams, the first of which computes.
  GpuBench(const DeviceOptions &options, bool quick, uint32_t streams = 1);

  /// Opens the device, takes memory and binds all commands, each with the workspace that a plan gives it.
  Status bind();
  /// Takes what `bind` needs of `bytes` of pinned memory too.
  Result<std::byte *> pinned(uint64_t bytes);

  /// Seconds of one run of what `issue` puts on the compute stream.
  Result<Sample> time(const std::function<Status()> &issue);
  Result<Sample> time(uint32_t command);
  /// The same of what `record` issues, started as a graph.
  Result<Sample> timeGraph(const std::function<Status()> &record);
  /// Seconds of the host's clock from the start of a graph to its end.
  Result<Sample> waitForGraph(const std::function<Status()> &record);

  Device &gpu() { return *device; }
  std::byte *address(uint32_t buffer) const { return base + program.buffers[buffer].offset; }

private:
  void addWorkspaces();
  Status fillMemory();
  Status fillIds();
  Result<double> secondsOf(const std::function<Status()> &issue, uint32_t runs);
  Result<GraphId> record(const std::function<Status()> &record);

  const DeviceOptions options;
  const bool quick;
  std::byte *base = nullptr;
  std::unique_ptr<Device> device;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CALIBRATE_GPUBENCH_H
