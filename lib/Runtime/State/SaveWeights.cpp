//===- SaveWeights.cpp - Writes states to a weights file ------------------------===//
//
// Rank 0 writes the tensors of all stages one after another, as the format orders them, each in pieces. What
// other ranks hold of a piece they send when its turn comes, in one message: it lies together in their
// memory, however their rows and rank 0's alternate in the piece. The memory for it is a piece and a message.
// When rank 0 cannot write it goes on receiving, so that nobody waits for it, and tells everybody at the end.
//
//===---------------------------------------------------------------------------===//
#include "LocalState.h"
#include "Program/Shape.h"
#include "Program/Stages.h"
#include "Program/StateNames.h"

#include "ds/Runtime/Comm/Communicator.h"
#include "ds/Runtime/Files/AtomicFile.h"
#include "ds/Runtime/Formats/SafeTensors.h"
#include "ds/Runtime/State/Weights.h"
#include "ds/Support/FileSizeLimit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <sys/stat.h>
#include <unordered_set>

namespace ds::rt {
namespace {

constexpr uint64_t kPieceBytes = uint64_t(8) << 20;

/// What will be written: names and types, and the state behind each name, of copies that on the first stage.
struct Contents {
  std::vector<TensorSource> tensors;
  std::vector<const State *> states;
};

Contents listContents(const Program &program) {
  Contents contents;
  const std::vector<const State *> masters = mastersOf(program);
  std::unordered_set<std::string> taken;
  for (size_t i = 0; i < program.states.size(); ++i) {
    const State &state = program.states[i];
    std::vector<std::string> names = state.aliases;
    names.insert(names.begin(), state.name);
    for (const std::string &name : names) {
      if (!isInFiles(state) || !taken.insert(name).second)
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
      : executor(executor), program(executor.whole()), communicator(communicator),
        collects(executor.rank() == 0), stages(program) {}

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

  /// The state's elements in order, each from the first of the ranks that hold it.
  Status add(const State &state) {
    const LocalState own(executor, state);
    std::vector<Holder> from;
    for (uint32_t rank : holders(program.mesh, state.layout, stages.firstRank(state.stage)))
      if (collects || rank == executor.rank())
        from.push_back({rank, ElementRuns(program.mesh, state.layout, state.logicalShape, rank), {}});
    const uint64_t elements = elementsOf(state.logicalShape);
    const uint64_t most = kPieceBytes / own.elementBytes();
    for (uint64_t first = 0; first < elements; first += most)
      if (Status status = addPiece(own, {first, std::min(most, elements - first)}, from); !status)
        return status;
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

  /// A rank that has elements of the state, as far as they have not been asked for.
  struct Holder {
    uint32_t rank;
    ElementRuns runs;
    std::vector<ElementRun> ofPiece;
  };
  /// Logical elements that are written at once.
  struct Piece {
    uint64_t first, count;
  };

  void write(std::span<const std::byte> bytes) {
    if (written)
      written = file->write(bytes);
  }

  /// Collects a piece and writes it, or gives what this rank has of it.
  Status addPiece(const LocalState &own, Piece piece, std::vector<Holder> &from) {
    for (Holder &holder : from) {
      holder.ofPiece.clear();
      uint64_t count = 0;
      while (const std::optional<ElementRun> run = holder.runs.next(piece.first + piece.count)) {
        holder.ofPiece.push_back(*run);
        count += run->count;
      }
      if (count == 0)
        continue;
      const uint64_t bytes = count * own.elementBytes();
      Status status =
          holder.rank == executor.rank()
              ? executor.inspect(own.address(holder.ofPiece.front().at), bytes,
                                 [&](const std::byte *host) { return give(host, bytes, own, piece, holder); })
              : collect(bytes, own, piece, holder);
      if (!status)
        return status;
    }
    return {};
  }

  Status give(const std::byte *data, uint64_t bytes, const LocalState &own, Piece piece,
              const Holder &holder) {
    if (!collects)
      return communicator->send(data, bytes, 0, kWhat);
    place(data, own, piece, holder);
    return {};
  }
  Status collect(uint64_t bytes, const LocalState &own, Piece piece, const Holder &holder) {
    message.resize(std::max<size_t>(bytes, message.size()));
    if (Status status = communicator->recv(message.data(), bytes, holder.rank, kWhat); !status)
      return status;
    place(message.data(), own, piece, holder);
    return {};
  }

  /// Puts what a rank has of a piece where it belongs, and writes the piece when it is whole.
  void place(const std::byte *data, const LocalState &own, Piece piece, const Holder &holder) {
    const uint64_t size = own.elementBytes();
    if (holder.ofPiece.front().count == piece.count)
      return write({data, piece.count * size});
    whole.resize(std::max<size_t>(piece.count * size, whole.size()));
    for (const ElementRun &run : holder.ofPiece) {
      std::memcpy(whole.data() + (run.first - piece.first) * size, data, run.count * size);
      data += run.count * size;
      placed += run.count;
    }
    if (placed < piece.count)
      return;
    write({whole.data(), piece.count * size});
    placed = 0;
  }

  const Executor &executor;
  const Program &program;
  Communicator *communicator;
  const bool collects;
  const StageGrid stages;
  std::optional<AtomicFile> file;
  Status written;
  std::vector<std::byte> message; ///< what another rank has of a piece
  std::vector<std::byte> whole;   ///< the piece
  uint64_t placed = 0;            ///< elements of it that are there
};

} // namespace

Status saveWeights(const Executor &executor, const std::string &path, Communicator *communicator) {
  const Program &program = executor.whole();
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
