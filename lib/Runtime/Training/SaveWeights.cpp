//===- SaveWeights.cpp - Writes states to a weights file ------------------------===//
//
// Rank 0 writes the tensors one after another, as the format orders them. What other ranks hold of a tensor
// they send in pieces, each when its turn comes: the memory for it is one piece. When rank 0 cannot write it
// goes on receiving, so that nobody waits for it, and tells everybody at the end.
//
//===---------------------------------------------------------------------------===//
#include "Program/StateSlice.h"

#include "ds/Runtime/Communicator.h"
#include "ds/Runtime/Formats/AtomicFile.h"
#include "ds/Runtime/Formats/SafeTensors.h"
#include "ds/Runtime/Weights.h"
#include "ds/Support/FileSizeLimit.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sys/stat.h>

namespace ds::rt {
namespace {

constexpr uint64_t kPieceBytes = uint64_t(8) << 20;

/// What will be written: names and types, and the state behind each name.
struct Contents {
  std::vector<TensorSource> tensors;
  std::vector<const State *> states;
};

Contents listContents(const Program &program) {
  Contents contents;
  const std::vector<const State *> masters = mastersOf(program);
  for (size_t i = 0; i < program.states.size(); ++i) {
    const State &state = program.states[i];
    std::vector<std::string> names = state.aliases;
    names.insert(names.begin(), state.name);
    for (const std::string &name : names) {
      if (!isInFiles(state))
        continue;
      const DType dtype = program.buffers[masters[i]->buffer].dtype;
      contents.tensors.push_back({name, toFileDType(dtype), state.logicalShape, nullptr});
      contents.states.push_back(masters[i]);
    }
  }
  return contents;
}

/// One rank's side of writing a file. On rank 0 a failure to write is kept until the end.
class Writer {
public:
  Writer(const Executor &executor, Communicator *communicator)
      : executor(executor), program(executor.program()), communicator(communicator),
        collects(executor.rank() == 0) {}

  void open(const std::string &path, const SafeTensorsHeader &header) {
    if (!collects)
      return;
    Result<AtomicFile> created = AtomicFile::create(path);
    if (!created) {
      written = created.error();
      return;
    }
    file.emplace(std::move(*created));
    written = file->reserve(header.bytes.size() + header.dataBytes);
    write(std::as_bytes(std::span(header.bytes)));
  }

  /// The state's elements in order: from this rank, then from each of the others.
  Status add(const State &state) {
    const uint64_t size = byteSize(program.buffers[state.buffer].dtype);
    const uint32_t holders = state.partition.sharded ? program.world : 1;
    for (uint32_t holder = 0; holder < holders; ++holder) {
      const uint64_t bytes = sliceOf(program, state, holder).count * size;
      if (bytes == 0)
        continue;
      if (holder == executor.rank())
        if (Status status = executor.inspect(localSlice(executor, state).data, bytes,
                                             [&](const std::byte *host) { return give(host, bytes); });
            !status)
          return status;
      if (collects && holder != 0)
        if (Status status = collect(holder, bytes); !status)
          return status;
    }
    return {};
  }

  /// Makes the file final, unless something failed, and lets every rank know.
  Status finish() {
    if (collects && written)
      written = file->commit();
    if (!communicator)
      return written;
    uint8_t failed = !written;
    if (Status told = communicator->broadcast(&failed, 1, 0, kWhat); !told)
      return written ? told : written;
    if (failed && !collects)
      return Error{ExitCode::Io, "rank 0 could not write the weights", "see the message of rank 0"};
    return written;
  }

private:
  static constexpr const char *kWhat = "saving of weights";

  void write(std::span<const std::byte> bytes) {
    if (written)
      written = file->write(bytes);
  }
  Status give(const std::byte *data, uint64_t bytes) {
    if (collects) {
      write({data, bytes});
      return {};
    }
    for (uint64_t done = 0; done < bytes; done += kPieceBytes)
      if (Status status = communicator->send(data + done, std::min(kPieceBytes, bytes - done), 0, kWhat);
          !status)
        return status;
    return {};
  }
  Status collect(uint32_t from, uint64_t bytes) {
    piece.resize(std::min(kPieceBytes, std::max<uint64_t>(bytes, piece.size())));
    for (uint64_t done = 0; done < bytes; done += kPieceBytes) {
      const uint64_t length = std::min(kPieceBytes, bytes - done);
      if (Status status = communicator->recv(piece.data(), length, from, kWhat); !status)
        return status;
      write({piece.data(), length});
    }
    return {};
  }

  const Executor &executor;
  const Program &program;
  Communicator *communicator;
  const bool collects;
  std::optional<AtomicFile> file;
  Status written;
  std::vector<std::byte> piece;
};

} // namespace

Status saveWeights(const Executor &executor, const std::string &path, Communicator *communicator) {
  const Program &program = executor.program();
  if (program.world > 1 && !communicator)
    return Error{ExitCode::Internal, fmt::format("{}: no way to the other {} ranks", path, program.world - 1),
                 ""};
  const Contents contents = listContents(program);
  Result<SafeTensorsHeader> header = serialiseHeader(contents.tensors, {{"format", "pt"}});
  if (!header)
    return Error{header.error().code, path + ": " + header.error().message, header.error().hint};
  Writer writer(executor, communicator);
  writer.open(path, *header);
  for (size_t index : header->order)
    if (Status status = writer.add(*contents.states[index]); !status)
      return status;
  return writer.finish();
}

Status checkWeightsFit(const Program &program, const std::string &path) {
  struct stat status;
  if (path.empty() || (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)))
    return {};
  const Result<SafeTensorsHeader> header = serialiseHeader(listContents(program).tensors, {{"format", "pt"}});
  const uint64_t bytes = header ? header->bytes.size() + header->dataBytes : 0; // else saveWeights says why
  if (bytes <= fileSizeLimit())
    return {};
  return Error{ExitCode::Io,
               fmt::format("cannot write '{}': it will have {} bytes, but the limit is {}", path, bytes,
                           fileSizeLimit()),
               fileSizeHint()};
}

} // namespace ds::rt
