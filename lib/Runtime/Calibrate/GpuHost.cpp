//===- GpuHost.cpp - What the host updates beside a GPU ----------------------------===//
//
// States that are offloaded are updated by the host's cores, in memory that the device copies from and to.
// How fast depends on how many of them a process has and on how that memory was taken, and a machine's
// datasheet says neither.
//
//===---------------------------------------------------------------------------===//
#include "Gpu.h"

#include "Cpu/HostTeam.h"
#include "Engine/PinnedMemory.h"
#include "Process/Clock.h"

#include "ds/Kernels/Kernels.h"
#include "ds/Kernels/Parallel.h"
#include "ds/Support/Processors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace ds::rt {
namespace {

constexpr int64_t kStreams = 4; ///< of an update: gradient, master, two moments

/// Threads that work on memory of kStreams times `elements` floats.
class HostBench {
public:
  HostBench(std::byte *memory, int64_t elements, bool quick)
      : base(reinterpret_cast<float *>(memory)), elements(elements), quick(quick) {}

  /// Seconds of an update as the loops of generated kernels make it.
  Result<Sample> update(HostTeam &team, uint32_t threads) const {
    return time(team, [&] {
      probe({ProbeKind::Update, base, base, base + elements, elements, threads}, bestIsa());
    });
  }
  /// Seconds of a copy of half of the memory to the other half.
  Result<Sample> copy(HostTeam &team, uint32_t threads) const {
    return time(team, [&] {
      constexpr int64_t kGrain = int64_t(1) << 16;
      const auto half = kStreams / 2 * elements * static_cast<int64_t>(sizeof(float));
      std::pair<char *, int64_t> work(reinterpret_cast<char *>(base), half);
      parallelRanges(half, kGrain, threads, &work, [](void *context, int64_t begin, int64_t end) {
        const auto [from, half] = *static_cast<std::pair<char *, int64_t> *>(context);
        std::memcpy(from + half + begin, from + begin, static_cast<size_t>(end - begin));
      });
    });
  }

private:
  Result<Sample> time(HostTeam &team, const std::function<void()> &body) const {
    setParallelTeam(&team);
    Result<Sample> sample = measureRepeatedly([&](uint32_t) { return body(), Status(); },
                                              {1, 3, quick ? 3u : 9u, 1.0, {}}, nowNs);
    setParallelTeam(nullptr);
    return sample;
  }

  float *base;
  int64_t elements;
  bool quick;
};

/// One thread, half of those that a run has beside the one that launches, and all of those.
std::set<uint32_t> threadCounts() {
  const uint32_t most = std::max<uint32_t>(processorsLeft(processorShare()), 2) - 1;
  return {1, std::max<uint32_t>(most / 2, 1), most};
}

} // namespace

Status measureGpuHost(GpuCalibration &c) {
  const int64_t elements = c.quick ? int64_t(1) << 14 : int64_t(64) << 20;
  const uint64_t bytes = static_cast<uint64_t>(kStreams * elements) * sizeof(float);
  GpuBench bench(c.device, c.quick);
  if (Status status = bench.bind(); !status)
    return status;
  const std::set<uint32_t> counts = threadCounts();
  Result<std::unique_ptr<HostTeam>> team = HostTeam::start(*counts.rbegin(), /*spares=*/true);
  if (!team)
    return team.error();
  double rate = 0, spread = 0;
  for (const bool large : {false, true}) {
    Result<std::byte *> memory = large ? takePinned(bench.gpu(), bytes, "calibration") : bench.pinned(bytes);
    if (!memory)
      return memory.error();
    const HostBench host(*memory, elements, c.quick);
    for (const uint32_t threads : counts)
      for (const bool updates : {false, true}) {
        const Result<Sample> sample = updates ? host.update(**team, threads) : host.copy(**team, threads);
        if (!sample)
          return sample.error();
        const double moved = static_cast<double>(bytes) * (updates ? 7.0 / kStreams : 1);
        c.tell(fmt::format("{} on the host, {} thread{}, {}", updates ? "update" : "copy", threads,
                           threads == 1 ? "" : "s", large ? "large pages" : "the driver's pages"),
               moved / sample->seconds, spellRate(moved / sample->seconds, "B/s"), sample->spread);
        if (updates && large && threads == *counts.rbegin())
          rate = moved / sample->seconds, spread = sample->spread;
      }
    if (!large)
      bench.gpu().release(*memory);
  }
  const uint32_t processors = processorsLeft(processorShare());
  c.figures.number(
      "host.core_bytes_per_second", rate / processors,
      fmt::format("{}; {} threads on {} processors", c.provenance(spread), *counts.rbegin(), processors));
  return {};
}

} // namespace ds::rt
