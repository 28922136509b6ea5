//===- StateWriter.cpp - Gives many states their values, as fast as the machine allows -===//
#include "StateWriter.h"

#include "Cpu/HostTeam.h"

#include "ds/Kernels/Parallel.h"
#include "ds/Runtime/Engine/Device.h"
#include "ds/Runtime/Storage/Storage.h"
#include "ds/Support/Align.h"
#include "ds/Support/Processors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

namespace ds::rt {
namespace {

constexpr uint64_t kPieceBytes = uint64_t(32) << 20;
constexpr uint64_t kLeastBytes = uint64_t(1) << 20; ///< of a longer state that are worth a copy of their own
constexpr uint64_t kStepBytes = uint64_t(64) << 20; ///< of states that pass through memory
constexpr uint64_t kGrain = uint64_t(1) << 19;      ///< elements that one thread makes at once
constexpr uint32_t kMostThreads = 32;               ///< more are not faster than memory

/// No smaller than any standard normal that Random.cpp makes: sqrt(-2 ln 2^-25) is 5.89.
constexpr float kLargestNormal = 6;

/// The failure of the first range that has one, from any thread.
class FirstFailure {
public:
  void add(uint64_t first, const Status &status) {
    if (status)
      return;
    const std::lock_guard lock(mutex);
    if (error && at <= first)
      return;
    at = first;
    error = status.error();
  }
  Status take() { return error ? Status(std::move(*error)) : Status(); }

private:
  std::mutex mutex;
  uint64_t at = 0;
  std::optional<Error> error;
};

/// Whether every number of `call` is one of `dtype`.
bool holds(DType dtype, const RandomCall &call) {
  constexpr float kLargestHalf = 65504;
  const float most = std::fabs(call.offset) + std::fabs(call.scale) * (call.normal ? kLargestNormal : 1);
  return dtype == DType::F32 || dtype == DType::BF16 || (dtype == DType::F16 && most < kLargestHalf);
}

} // namespace

StateWriter::StateWriter(Executor &executor)
    : executor(executor), device(executor.device), threads(executor.program().threads) {
  if (!device)
    return;
  threads = std::min(processorsLeft(processorShare()), kMostThreads);
  if (Result<std::unique_ptr<HostTeam>> started = HostTeam::start(threads))
    team = std::move(*started);
  else
    threads = 1;
}

/// Memory that is still copied from stays until that is done.
StateWriter::~StateWriter() {
  if (std::ranges::any_of(pieces, [](const Piece &piece) { return piece.isPending; }))
    (void)device->synchronize(); // whoever asks the device next learns of its failure
  for (const Piece &piece : pieces)
    if (piece.memory)
      device->release(piece.memory);
}

/// Makes elements on all threads, which take the next range when they are done with one.
Status StateWriter::make(uint64_t first, uint64_t count, uint64_t elementBytes, std::byte *to,
                         const Make &make) {
  struct Work {
    const Make &make;
    uint64_t first, count, elementBytes;
    std::byte *to;
    FirstFailure failure = {};
  } work{make, first, count, elementBytes, to};
  setParallelTeam(team.get());
  parallelTasks(static_cast<int64_t>((count + kGrain - 1) / kGrain), threads, &work,
                [](void *context, int64_t index, uint32_t) {
                  Work &work = *static_cast<Work *>(context);
                  const uint64_t at = static_cast<uint64_t>(index) * kGrain;
                  work.failure.add(at, work.make(work.first + at, std::min(kGrain, work.count - at),
                                                 work.to + at * work.elementBytes));
                });
  setParallelTeam(nullptr);
  return work.failure.take();
}

/// Of states in storage, by way of its own staging memory.
Status StateWriter::writeBySteps(std::byte *address, uint64_t elements, uint64_t elementBytes,
                                 const Make &made) {
  const uint64_t most = std::max<uint64_t>(kStepBytes / elementBytes, 1);
  for (uint64_t done = 0; done < elements; done += most) {
    const uint64_t count = std::min(most, elements - done);
    Status status =
        executor.change(address + done * elementBytes, count * elementBytes,
                        [&](std::byte *host) { return make(done, count, elementBytes, host, made); });
    if (!status)
      return status;
  }
  return {};
}

/// A piece with room for `bytes`, or for a good part of them.
Result<StateWriter::Piece *> StateWriter::pieceFor(uint64_t bytes) {
  if (pieces[current].used + std::min(bytes, kLeastBytes) > kPieceBytes) {
    current = 1 - current;
    if (pieces[current].isPending) {
      if (Status status = device->synchronize(); !status)
        return status.error();
      for (Piece &piece : pieces)
        piece.isPending = false;
    }
    pieces[current].used = 0;
  }
  Piece &piece = pieces[current];
  if (!piece.memory) {
    Result<std::byte *> memory = device->allocate(Space::Host, kPieceBytes, "values of states on their way");
    if (!memory)
      return memory.error();
    piece.memory = *memory;
  }
  return &piece;
}

Status StateWriter::writeByPieces(std::byte *address, uint64_t elements, uint64_t elementBytes,
                                  const Make &made) {
  for (uint64_t done = 0; done < elements;) {
    Result<Piece *> piece = pieceFor((elements - done) * elementBytes);
    if (!piece)
      return piece.error();
    const uint64_t count = std::min((kPieceBytes - (*piece)->used) / elementBytes, elements - done);
    const uint64_t bytes = count * elementBytes;
    std::byte *from = (*piece)->memory + (*piece)->used;
    if (Status status = make(done, count, elementBytes, from, made); !status)
      return status;
    (*piece)->used += alignTo(bytes, 16);
    (*piece)->isPending = true;
    if (Status status = device->streams().copy(address + done * elementBytes, from, bytes); !status)
      return status;
    done += count;
  }
  return {};
}

Status StateWriter::write(std::byte *address, uint64_t elements, uint64_t elementBytes, const Make &made) {
  if (elements == 0)
    return {};
  if (executor.storage && executor.storage->addresses().holds(address))
    return writeBySteps(address, elements, elementBytes, made);
  return executor.engine->isRemote(address) ? writeByPieces(address, elements, elementBytes, made)
                                            : make(0, elements, elementBytes, address, made);
}

Status StateWriter::clear(std::byte *address, uint64_t bytes) {
  if (bytes > 0 && executor.engine->isRemote(address))
    return device->streams().fill(address, 0, bytes);
  return write(address, bytes, 1, [](uint64_t, uint64_t count, std::byte *to) -> Status {
    std::memset(to, 0, count);
    return {};
  });
}

Result<bool> StateWriter::draw(std::byte *address, DType dtype, const RandomCall &call) {
  if (!device || !executor.engine->isRemote(address) || !holds(dtype, call))
    return false;
  Status status = device->draw(address, dtype, call);
  return status ? Result<bool>(true) : status.error();
}

Status StateWriter::finish() {
  if (!device)
    return {};
  Status status = device->synchronize();
  for (Piece &piece : pieces)
    piece.isPending = false;
  return status;
}

} // namespace ds::rt
