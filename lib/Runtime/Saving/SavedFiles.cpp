//===- SavedFiles.cpp - The files of one rank in a checkpoint -------------------------===//
#include "SavedFiles.h"

#include "ds/Runtime/Checkpoint/ShardWriter.h"

#include <fmt/format.h>

#include <cstring>

namespace ds::rt {

Status SavedFiles::plan(const Program &program, uint32_t rank, std::span<const uint32_t> ranks) {
  Result<std::vector<ShardFile>> planned = planShards(program, rank, ranks);
  if (!planned)
    return Error{planned.error().code, "--save: " + planned.error().message, planned.error().hint};
  files = std::move(*planned);
  staged = std::make_unique<StagedWriter>(layer);
  return {};
}

Status SavedFiles::makeCopy() {
  Result<Snapshot> made = Snapshot::create(files);
  if (!made)
    return Error{made.error().code,
                 "--save: for the copy that is written while training continues: " + made.error().message,
                 "save with --save-mode sync, which needs no copy"};
  snapshot.emplace(std::move(*made));
  return {};
}

Result<std::vector<CheckpointFile>> SavedFiles::write(const Executor *executor, const std::string &directory,
                                                      uint64_t chunkBytes) const {
  std::vector<CheckpointFile> done;
  for (size_t i = 0; i < files.size(); ++i) {
    Result<ShardWriter> writer = ShardWriter::create(layer, *staged, directory, files[i].name,
                                                     files[i].header.size() + files[i].dataBytes, chunkBytes);
    if (!writer)
      return writer.error();
    if (Status status = writeFile(i, executor, *writer); !status)
      return status.error();
    Result<CheckpointFile> finished = writer->finish();
    if (!finished)
      return finished.error();
    done.push_back(std::move(*finished));
  }
  if (!files.empty())
    if (const int failure = layer.syncDirectory(directory))
      return Error{ExitCode::Io, fmt::format("cannot sync '{}': {}", directory, std::strerror(failure)), ""};
  return done;
}

Status SavedFiles::writeFile(size_t number, const Executor *executor, ShardWriter &writer) const {
  if (!executor)
    return writer.writeImage(snapshot->image(number));
  if (Status status = writer.write(std::as_bytes(std::span(files[number].header))); !status)
    return status;
  return visitPieces(*executor, files[number], [&](const std::byte *, std::span<const std::byte> bytes) {
    return writer.write(bytes);
  });
}

} // namespace ds::rt
