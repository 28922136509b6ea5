//===- GpuBench.cpp - Single library commands on a GPU ----------------------------===//
#include "GpuBench.h"

#include "Process/Clock.h"

#include "ds/Runtime/Program/AttentionPieces.h"
#include "ds/Runtime/Program/Library.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include <algorithm>
#include <cstring>

namespace ds::rt {
namespace {

/// What NVIDIA recommends for cuBLASLt on sm_90.
constexpr int64_t kProductWorkspace = int64_t(32) << 20;
constexpr double kEnough = 0.004; ///< seconds between two events, whose times are half a microsecond off
constexpr uint32_t kMostRuns = 400;

/// Random signs and mantissas of numbers around 0.07 in bf16 and f32, 1.5 in f16.
std::vector<uint16_t> smallNumbers(size_t count) {
  std::vector<uint16_t> words(count);
  uint64_t state = 1;
  for (uint16_t &word : words) {
    state = state * 6364136223846793005 + 1442695040888963407;
    word = static_cast<uint16_t>(0x3d80 | (state >> 33 & 0x807f));
  }
  return words;
}

} // namespace

GpuBench::GpuBench(const DeviceOptions &options, bool quick, uint32_t streams)
    : options(options), quick(quick) {
  alignment = 256;
  program.target = "cuda:sm_50"; // no kernels of its own: any device will do
  program.strings = {"calibration"};
  program.streams.assign(streams, StreamKind::Gather);
  program.streams[0] = StreamKind::Compute;
}

void GpuBench::addWorkspaces() {
  uint32_t products = UINT32_MAX; // one for all: they run one after another
  for (Command &command : program.commands) {
    const auto fn = static_cast<LibraryFn>(command.callee);
    if (fn == LibraryFn::Matmul) {
      if (products == UINT32_MAX)
        products = buffer(DType::U8, {quick ? 1 << 16 : kProductWorkspace});
      command.workspace = products;
      continue;
    }
    const std::vector<const Buffer *> operands = operandsOf(command);
    uint64_t bytes = cudaWorkspaceBytes(fn, operands);
    if (fn == LibraryFn::AttentionForward || fn == LibraryFn::AttentionBackward) {
      const std::optional<AttentionPieces> pieces = attentionPieces(fn, operands, {.isCausal = true});
      bytes = pieces ? pieces->workspaceBytes : 0;
    }
    if (bytes > 0)
      command.workspace = buffer(DType::U8, {static_cast<int64_t>(bytes)});
  }
}

Status GpuBench::bind() {
  addWorkspaces();
  Result<std::unique_ptr<Device>> opened = openCudaDevice(options);
  if (!opened)
    return opened.error();
  device = std::move(*opened);
  if (Status status = device->load(program, 0, {}); !status)
    return status;
  Result<std::byte *> memory = device->allocate(Space::Device, std::max<uint64_t>(used, 256), "calibration");
  if (!memory)
    return memory.error();
  base = *memory;
  for (Status (GpuBench::*fill)() : {&GpuBench::fillMemory, &GpuBench::fillIds})
    if (Status status = (this->*fill)(); !status)
      return status;
  for (uint32_t i = 0; i < program.commands.size(); ++i)
    if (Status status = device->bind(i, [this](uint32_t buffer, uint32_t) { return address(buffer); });
        !status)
      return status;
  if (Status status = device->choose(); !status)
    return status;
  return device->synchronize();
}

Status GpuBench::fillMemory() {
  const std::vector<uint16_t> words = smallNumbers(std::min<uint64_t>(used / 2 + 1, uint64_t(8) << 20));
  const auto *from = reinterpret_cast<const std::byte *>(words.data());
  for (uint64_t at = 0; at < used; at += 2 * words.size())
    if (Status status =
            device->streams().copy(base + at, from, std::min<uint64_t>(used - at, 2 * words.size()));
        !status)
      return status;
  return device->synchronize();
}

Status GpuBench::fillIds() {
  for (auto [index, limit] : ids) {
    std::vector<int64_t> values(static_cast<size_t>(numElements(program.buffers[index])));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<int64_t>(i) * 7919 % limit; // a prime: no order that a cache would guess
    Status status = device->streams().copy(address(index), reinterpret_cast<const std::byte *>(values.data()),
                                           values.size() * sizeof(int64_t));
    if (status)
      status = device->synchronize();
    if (!status)
      return status;
  }
  return {};
}

Result<std::byte *> GpuBench::pinned(uint64_t bytes) {
  return device->allocate(Space::Host, bytes, "calibration");
}

Result<double> GpuBench::secondsOf(const std::function<Status()> &issue, uint32_t runs) {
  Status status = device->telemetry().stamp(0, 0);
  for (uint32_t i = 0; i < runs && status; ++i)
    status = issue();
  if (status)
    status = device->telemetry().stamp(1, 0);
  const Status ended = device->synchronize();
  if (!status || !ended)
    return (status ? ended : status).error();
  return device->telemetry().secondsBetween(0, 1);
}

Result<Sample> GpuBench::time(const std::function<Status()> &issue) {
  Result<double> first = secondsOf(issue, 2);
  for (int warmUp = 0; warmUp < 2 && first; ++warmUp)
    first = secondsOf(issue, 1);
  if (!first)
    return first.error();
  const uint32_t most = quick ? 2 : kMostRuns;
  const auto runs = static_cast<uint32_t>(std::clamp(kEnough / std::max(*first, 1e-9), 1.0, double(most)));
  std::vector<double> seconds;
  for (int i = 0; i < (quick ? 2 : 7); ++i) {
    const Result<double> taken = secondsOf(issue, runs);
    if (!taken)
      return taken.error();
    seconds.push_back(*taken / runs);
  }
  const Sample sample = summarize(std::move(seconds));
  if (!(sample.seconds > 0))
    return Error{ExitCode::Device, "calibration: the device's clock stands still while commands run", ""};
  return sample;
}

Result<Sample> GpuBench::time(uint32_t command) {
  return time([this, command] { return device->issue(command, /*microBatch=*/0); });
}

Result<GraphId> GpuBench::record(const std::function<Status()> &record) {
  if (Status status = record(); !status) // what libraries prepare is not recorded
    return status.error();
  if (Status status = device->synchronize(); !status)
    return status.error();
  if (Status status = device->graphs().begin(); !status)
    return status.error();
  const Status issued = record();
  Result<GraphId> graph = device->graphs().end();
  if (!issued)
    return issued.error();
  return graph;
}

Result<Sample> GpuBench::timeGraph(const std::function<Status()> &issue) {
  const Result<GraphId> graph = record(issue);
  if (!graph)
    return graph.error();
  return time([&] { return device->graphs().launch(*graph); });
}

Result<Sample> GpuBench::waitForGraph(const std::function<Status()> &issue) {
  const Result<GraphId> graph = record(issue);
  if (!graph)
    return graph.error();
  const auto body = [&](uint32_t) {
    Status status = device->graphs().launch(*graph);
    return status ? device->synchronize() : status;
  };
  return measureRepeatedly(body, {3, 3, quick ? 3u : 41u, 0.05, {}}, nowNs);
}

} // namespace ds::rt
