//===- HostTeam.h - The threads that work for the host stream ---------------------===//
//
// The compute stream's parallel regions are libgomp's, which makes a team for each thread that calls it, and
// lets its threads spin. What updates states beside compute must not take its cores by spinning: these
// threads sleep until there is work, take a part of it each, and sleep again. The price is one wake-up for
// each kernel.
//
//===-----------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CPU_HOSTTEAM_H
#define DS_LIB_RUNTIME_CPU_HOSTTEAM_H

#include "ds/Kernels/Parallel.h"
#include "ds/Support/Error.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace ds::rt {

class HostTeam final : public ParallelTeam {
public:
  /// A team of `threads`, the one that calls `run` among them. With `spares` the others keep off one
  /// processor of this process for each rank that shares them, where there are more: a thread that drives a
  /// device must not wait for its turn. Device where the system allows fewer threads.
  static Result<std::unique_ptr<HostTeam>> start(uint32_t threads, bool spares = false);
  ~HostTeam() override;

  void run(uint32_t count, void *context, Body body) override;

private:
  HostTeam() = default;
  void workerLoop(uint32_t index);

  std::vector<std::thread> workers;
  std::atomic<uint32_t> epoch{0};   ///< number of the current work; changing it starts it
  std::atomic<uint32_t> working{0}; ///< workers that have not finished it
  std::atomic<bool> stopping{false};
  uint32_t count = 0; ///< of those that take part; this and the next two are written before epoch
  void *context = nullptr;
  Body body = nullptr;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CPU_HOSTTEAM_H
