//===- Snapshot.cpp - A copy of what a rank saves, as its files will be ---------------===//
#include "Snapshot.h"

#include "State/LocalState.h"

#include "ds/Kernels/Parallel.h"
#include "ds/Runtime/Files/FileLayer.h"
#include "ds/Support/Align.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace ds::rt {

using TakePart = std::function<Status(const std::byte *, std::span<const std::byte>)>;

/// Of what lies elsewhere there is a copy of so many bytes.
static constexpr uint64_t kMostAtOnce = uint64_t(64) << 20;

/// Calls `take` with runs [run, last) of `piece`, which lie within kMostAtOnce.
static Status visitRuns(const Executor &executor, const LocalState &local, const ShardPiece &piece,
                        uint64_t run, uint64_t last, const TakePart &take) {
  const uint64_t size = piece.bytes / piece.runs();
  const std::byte *const begin = local.address(piece.runAt(run));
  const std::byte *const end = local.address(piece.runAt(last - 1)) + size;
  return executor.inspect(begin, static_cast<uint64_t>(end - begin), [&](const std::byte *host) -> Status {
    for (; run < last; ++run) {
      const std::byte *address = local.address(piece.runAt(run));
      if (Status status = take(address, {host + (address - begin), size}); !status)
        return status;
    }
    return {};
  });
}

/// Calls `take` with one run, which may be longer.
static Status visitRun(const Executor &executor, const std::byte *begin, uint64_t size,
                       const TakePart &take) {
  for (uint64_t done = 0; done < size; done += kMostAtOnce) {
    const std::byte *address = begin + done;
    const uint64_t bytes = std::min(kMostAtOnce, size - done);
    Status status = executor.inspect(address, bytes, [&](const std::byte *host) {
      return take(address, {host, static_cast<size_t>(bytes)});
    });
    if (!status)
      return status;
  }
  return {};
}

Status visitPieces(const Executor &executor, const ShardFile &file, const TakePart &take) {
  std::unordered_map<std::string_view, const State *> states;
  for (const State &state : executor.program().states)
    states.emplace(state.name, &state);
  for (const ShardPiece &piece : file.pieces) {
    const LocalState local(executor, *states.at(piece.state));
    const uint64_t runs = piece.runs(), size = piece.bytes / runs;
    for (uint64_t run = 0, last = 1; run < runs; run = last++) {
      while (last < runs &&
             static_cast<uint64_t>(local.address(piece.runAt(last)) - local.address(piece.runAt(run))) +
                     size <=
                 kMostAtOnce)
        ++last;
      Status status = last == run + 1 ? visitRun(executor, local.address(piece.runAt(run)), size, take)
                                      : visitRuns(executor, local, piece, run, last, take);
      if (!status)
        return status;
    }
  }
  return {};
}

Result<Snapshot> Snapshot::create(const std::vector<ShardFile> &files) {
  uint64_t bytes = 0;
  for (const ShardFile &file : files)
    bytes += alignTo(file.header.size() + file.dataBytes, kDirectUnit);
  Result<Arena> arena = Arena::create(bytes, "checkpoint");
  if (!arena)
    return arena.error();
  Snapshot made;
  made.arena = std::move(*arena);
  std::byte *at = made.arena.data();
  for (const ShardFile &file : files) {
    const uint64_t size = file.header.size() + file.dataBytes;
    std::memcpy(at, file.header.data(), file.header.size());
    made.images.emplace_back(at, static_cast<size_t>(size));
    at += alignTo(size, kDirectUnit);
  }
  return made;
}

/// Copies what of `parts`, which ascend, goes to `piece`.
static void copyParts(std::span<const Snapshot::Part> parts, std::span<std::byte> piece) {
  std::byte *const begin = piece.data(), *const end = begin + piece.size();
  auto part = std::partition_point(parts.begin(), parts.end(),
                                   [&](const Snapshot::Part &each) { return each.to + each.bytes <= begin; });
  for (; part != parts.end() && part->to < end; ++part) {
    std::byte *const first = std::max(begin, part->to), *const last = std::min(end, part->to + part->bytes);
    std::memcpy(first, part->from + (first - part->to), static_cast<size_t>(last - first));
  }
}

/// What is to be copied, by ascending destination. What does not lie in the host's memory is copied at once.
Result<std::vector<Snapshot::Part>> Snapshot::collect(const Executor &executor,
                                                      const std::vector<ShardFile> &files) {
  std::vector<Part> parts;
  for (size_t i = 0; i < files.size(); ++i) {
    std::byte *to = images[i].data() + files[i].header.size();
    Status status = visitPieces(executor, files[i],
                                [&](const std::byte *address, std::span<const std::byte> bytes) -> Status {
                                  if (bytes.data() == address)
                                    parts.push_back({to, address, bytes.size()});
                                  else
                                    std::memcpy(to, bytes.data(), bytes.size());
                                  to += bytes.size();
                                  return {};
                                });
    if (!status)
      return status.error();
  }
  return parts;
}

Status Snapshot::take(const Executor &executor, const std::vector<ShardFile> &files) {
  constexpr size_t kPiece = size_t(4) << 20;
  const Result<std::vector<Part>> parts = collect(executor, files);
  if (!parts)
    return parts.error();
  struct Work {
    std::span<const Part> parts;
    std::vector<std::span<std::byte>> pieces;
  } work{*parts, {}};
  for (const std::span<std::byte> image : images)
    for (size_t at = 0; at < image.size(); at += kPiece)
      work.pieces.push_back(image.subspan(at, std::min(kPiece, image.size() - at)));
  parallelTasks(static_cast<int64_t>(work.pieces.size()), executor.program().threads, &work,
                [](void *context, int64_t index, uint32_t) {
                  const Work &all = *static_cast<const Work *>(context);
                  copyParts(all.parts, all.pieces[static_cast<size_t>(index)]);
                });
  return {};
}

} // namespace ds::rt
