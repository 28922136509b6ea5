//===- Calibrate.cpp - Measures this machine for the planner ---------------------===//
//
// The order is that of the file's sections. What cannot be measured, how large the machine is, is asked of
// the operating system in the same way as ds-opt asks.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Calibrate/Calibrate.h"

#include "Context.h"
#include "Process/Clock.h"

#include "ds/Runtime/Files/AtomicFile.h"
#include "ds/Support/HostMemory.h"
#include "ds/Support/Processors.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>
#include <thread>

namespace ds::rt {
namespace {

/// Of the process beyond its arenas: what docs and tests hold it to.
constexpr int64_t kContextBytes = int64_t(150) << 20;

} // namespace

std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown processor";
}

namespace {

/// What is no measurement: names and sizes.
Status describeMachine(Calibration &c) {
  Result<HostMemory> memory = hostMemory();
  if (!memory)
    return memory.error();
  const auto ranks = static_cast<int64_t>(c.world());
  c.figures.text("name", fmt::format("{} x {} cores of {}", ranks, c.threads, c.processor), "");
  c.figures.count("nodes", 1, "");
  c.figures.count("devices_per_node", ranks, "ranks that measured at the same time");
  c.figures.text("device.name", fmt::format("{} cores of {}", c.threads, c.processor), "");
  c.figures.text("device.architecture", "cpu", "");
  c.figures.count("device.memory_bytes", std::max(memory->bytes / ranks, 2 * kContextBytes),
                  "a rank's part of " + memory->source);
  c.figures.count("device.context_bytes", kContextBytes, "the process beyond its arenas");
  return {};
}

Status describeHost(Calibration &c, double memoryRate) {
  Result<HostMemory> memory = hostMemory();
  if (!memory)
    return memory.error();
  c.figures.count("host.memory_bytes", memory->bytes, memory->source);
  c.figures.count("host.cores", static_cast<int64_t>(c.threads) * c.world(), "");
  c.figures.number("host.memory_bytes_per_second", memoryRate * c.world(), "of all ranks at once, as above");
  return measureHost(c);
}

Status measureAll(Calibration &c) {
  if (Status status = describeMachine(c); !status)
    return status;
  c.progress("launches and memory");
  for (Status (*part)(Calibration &) :
       {measureLaunches, measureMemory, measureProducts, measureAttention, measureFunctions})
    if (Status status = part(c); !status)
      return status;
  if (c.world() > 1)
    c.figures.add("device.contention", "1", "exchanges run on the cores that compute");
  if (Status status = describeHost(c, c.memoryRate); !status)
    return status;
  if (Status status = measureExchanges(c); !status)
    return status;
  return measureStorage(c);
}

Status writeResult(const Calibration &c, const CalibrateOptions &options, AtomicFile *file, double seconds) {
  std::vector<std::string> heading = {
      fmt::format("Written by ds-run --calibrate{} on {}: {} rank{} of {} thread{}, {:.0f} s.",
                  options.quick ? "=quick" : "", c.date, c.world(), c.world() == 1 ? "" : "s", c.threads,
                  c.threads == 1 ? "" : "s", seconds),
      "Medians; the spread is the distance of the quartiles, the largest of those that a figure comes from."};
  if (options.quick)
    heading.emplace_back("Quick: few sizes and repetitions. To test what reads it, not to plan with.");
  const std::string text = c.figures.write(heading);
  if (!file) {
    const bool arrived =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    return arrived ? Status()
                   : Status(Error{ExitCode::Io,
                                  fmt::format("cannot write to standard output: {}", std::strerror(errno)),
                                  "name a file with -o"});
  }
  if (Status status = file->write(text); !status)
    return status;
  return file->commit();
}

std::string temporaryDirectory() {
  const char *directory = std::getenv("TMPDIR");
  return directory && *directory ? directory : "/tmp";
}

Status run(const CalibrateOptions &options, RankGroup &group) {
  const int64_t begin = nowNs();
  std::optional<AtomicFile> file;
  if (group.rank() == 0 && !options.output.empty()) {
    Result<AtomicFile> made = AtomicFile::create(options.output);
    if (!made)
      return made.error();
    file = std::move(*made);
  }
  Result<Pool> pool = Pool::create((options.quick ? uint64_t(16) : uint64_t(224)) << 20);
  if (!pool)
    return pool.error();
  Calibration c{.quick = options.quick,
                .threads = processorsLeft(processorShare()),
                .group = &group,
                .clock = nowNs,
                .date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))),
                .processor = processorName(),
                .storageDirectory = temporaryDirectory(),
                .nvmeDirectory = options.nvme,
                .pool = std::move(*pool),
                .figures = {},
                .begin = begin,
                .worstFigure = {}};
  if (Status status = measureAll(c); !status)
    return status;
  const double seconds = static_cast<double>(nowNs() - begin) * 1e-9;
  if (!c.quick)
    c.progress(fmt::format("done in {:.0f} s; largest spread {:.0f} % ({}){}", seconds, c.worstSpread * 100,
                           c.worstFigure,
                           c.worstSpread > 0.5 ? ": others used this machine, measure again" : ""));
  return group.rank() == 0 ? writeResult(c, options, file ? &*file : nullptr, seconds) : Status();
}

} // namespace

Status calibrate(const CalibrateOptions &options) {
  if (options.device == "cuda")
    return calibrateGpu(options);
  ConnectOptions connectOptions;
  connectOptions.timeout = options.timeout;
  connectOptions.channels = 1;
  Result<std::unique_ptr<RankGroup>> group = connect(options.place, connectOptions);
  if (!group)
    return group.error();
  if (Status status = run(options, **group); !status) {
    if (status.error().code != ExitCode::Peer)
      (*group)->abort(status.error().message);
    return status;
  }
  return (*group)->finish();
}

} // namespace ds::rt
