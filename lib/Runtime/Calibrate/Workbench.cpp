//===- Workbench.cpp - Single library commands to measure ------------------------===//
#include "Workbench.h"

#include "ds/Runtime/Onednn/OnednnPlugin.h"
#include "ds/Runtime/Onednn/ProductBlocks.h"
#include "ds/Runtime/Program/Library.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ds::rt {
namespace {

/// Successive runs walk through as much memory as this, but through at most so many places. A step finds in a
/// shared cache what the last command wrote, and not its weights: between all of it and nothing.
constexpr uint64_t kFootprint = uint64_t(32) << 20, kMostPlaces = 12;

} // namespace

Result<Pool> Pool::create(uint64_t bytes) {
  Result<Arena> arena = Arena::create(bytes, "calibration");
  if (!arena)
    return arena.error();
  Pool pool;
  pool.arena = std::move(*arena);
  pool.refill(bytes);
  return pool;
}

void Pool::refill(uint64_t count) {
  // 0.0625 to 0.12: as bf16 and f16, read from the same bytes, small numbers too.
  auto *start = reinterpret_cast<float *>(data());
  constexpr uint64_t kPattern = 15 * 4096;
  const uint64_t total = count / sizeof(float);
  for (uint64_t i = 0; i < std::min(kPattern, total); ++i)
    start[i] = 0.0625f * (1.0f + static_cast<float>(i % 15) / 16.0f);
  for (uint64_t i = kPattern; i < total; i += kPattern)
    std::memcpy(start + i, start, std::min(kPattern, total - i) * sizeof(float));
}

Workbench::Workbench(Pool &pool, uint32_t threads) : pool(pool) {
  program.threads = threads;
  program.streams = {StreamKind::Compute};
  program.strings = {"calibration"};
}

Status Workbench::addWorkspace(Command &command) {
  const std::vector<const Buffer *> operands = operandsOf(command);
  const auto fn = static_cast<LibraryFn>(command.callee);
  uint64_t bytes = libraryWorkspaceBytes(fn, operands, program.threads);
  if (fn == LibraryFn::Matmul) {
    const int64_t *params = program.params.data() + command.firstParam;
    const Result<uint64_t> needed = productWorkspaceBytes(
        describeMatmul(*operands[0], *operands[1], *operands[2],
                       matmulExtras(operands, {params, command.numParams}).bias, params),
        program.threads, formOf({params, command.numParams}));
    if (!needed)
      return needed.error();
    bytes = *needed;
  }
  if (bytes > 0)
    command.workspace = buffer(DType::U8, {static_cast<int64_t>(bytes)});
  return {};
}

void Workbench::fillIds() {
  for (auto [index, limit] : ids) {
    const Buffer &buffer = program.buffers[index];
    const int64_t count = static_cast<int64_t>(numElements(buffer));
    for (uint64_t place = 0; place < places; ++place) {
      auto *to = reinterpret_cast<int64_t *>(pool.data() + place * used + buffer.offset);
      for (int64_t i = 0; i < count; ++i)
        to[i] =
            (i * 7919 + static_cast<int64_t>(place)) % limit; // a prime: no order that a cache would guess
    }
  }
}

Status Workbench::bind() {
  for (Command &command : program.commands)
    if (Status status = addWorkspace(command); !status)
      return status;
  if (used > pool.size())
    return Error{ExitCode::Internal,
                 fmt::format("calibration: a command needs {} bytes, but {} are there", used, pool.size()),
                 ""};
  places =
      std::clamp<uint64_t>(std::min(kFootprint, pool.size()) / std::max<uint64_t>(used, 1), 1, kMostPlaces);
  pool.refill(std::min(places * used, pool.size()));
  fillIds();
  for (uint64_t place = 0; place < places; ++place) {
    const Binding binding{program, image,
                          [this, place](uint32_t buffer) {
                            return pool.data() + place * used + program.buffers[buffer].offset;
                          },
                          bestIsa(), noRanks};
    tasks.emplace_back();
    for (uint32_t i = 0; i < program.commands.size(); ++i) {
      Result<std::unique_ptr<Task>> task = bindCommand(binding, i);
      if (!task)
        return task.error();
      tasks.back().push_back(std::move(*task));
    }
  }
  return {};
}

Status Workbench::run(uint32_t command, uint32_t run) { return tasks[run % places][command]->run(); }

Result<Sample> Workbench::measure(uint32_t command, const SamplingOptions &options,
                                  const CalibrationClock &clock) {
  SamplingOptions withPlaces = options;
  withPlaces.warmUps = std::max(options.warmUps, static_cast<uint32_t>(places));
  return measureRepeatedly([&](uint32_t i) { return run(command, i); }, withPlaces, clock);
}

} // namespace ds::rt
