//===- Checkpoint.cpp - A checkpoint that is open for reading ------------------------===//
//
// Requests are sorted by place, so that a disk is read forwards and each chunk once, even if a thousand
// small tensors lie in it.
//
//===---------------------------------------------------------------------------===//

#include "ds/Runtime/Checkpoint/Checkpoint.h"

#include "ChunkReader.h"
#include "Files/Text.h"
#include "Program/Shape.h"

#include "ds/Runtime/Checkpoint/Store.h"
#include "ds/Runtime/Formats/SafeTensors.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

namespace ds::rt {
namespace {

uint64_t elementBytes(const CheckpointTensor &tensor) { return bitSize(tensor.dtype) / 8; }

/// Where the parts in a file begin, by name; a name that is missing begins at 0.
using Offsets = std::unordered_map<std::string, std::vector<int64_t>>;

std::optional<Offsets> readOffsets(const SafeTensorsFile &file) {
  Offsets offsets;
  for (const MetadataEntry &entry : file.metadata()) {
    if (entry.key != "DCP_SHARDING_INFO")
      continue;
    const nlohmann::json info = nlohmann::json::parse(entry.value, nullptr, /*allow_exceptions=*/false);
    if (!info.is_object())
      return std::nullopt;
    for (const auto &[name, value] : info.items()) {
      if (!value.is_object() || !value.contains("saved_offsets") || !value["saved_offsets"].is_array())
        return std::nullopt;
      for (const nlohmann::json &offset : value["saved_offsets"])
        if (!offset.is_number_unsigned() || offset.get<uint64_t>() > INT64_MAX)
          return std::nullopt;
        else
          offsets[name].push_back(offset.get<int64_t>());
    }
  }
  return offsets;
}

/// Whether the box lies in a tensor of this shape.
bool isWithin(const Box &box, std::span<const int64_t> shape) {
  if (box.offsets.size() != shape.size() || box.shape.size() != shape.size())
    return false;
  for (size_t d = 0; d < shape.size(); ++d)
    if (box.offsets[d] > shape[d] || box.shape[d] > shape[d] - box.offsets[d])
      return false;
  return true;
}

} // namespace

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

Result<Checkpoint> Checkpoint::open(const std::string &directory) {
  Result<Manifest> manifest = readManifest(directory);
  if (!manifest)
    return manifest.error();
  Checkpoint checkpoint;
  checkpoint.path = directory;
  checkpoint.content = std::move(*manifest);
  const std::vector<CheckpointTensor> &tensors = checkpoint.content.tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    checkpoint.numbers.emplace(tensors[i].name, i);
    for (const std::string &alias : tensors[i].aliases)
      checkpoint.numbers.emplace(alias, i);
  }
  checkpoint.stored.resize(tensors.size());
  if (Status status = checkpoint.readHeaders(); !status)
    return status.error();
  if (Status status = checkpoint.checkCover(); !status)
    return status.error();
  return checkpoint;
}

Status Checkpoint::readHeaders() {
  for (uint32_t file = 0; file < content.files.size(); ++file)
    if (Status status = readHeader(file); !status)
      return status;
  return {};
}

/// Notes the parts that a file has. Only its first chunks are touched, and compared with their digests.
Status Checkpoint::readHeader(uint32_t number) {
  const CheckpointFile &entry = content.files[number];
  Result<SafeTensorsFile> file = SafeTensorsFile::open(path + "/" + entry.name);
  if (!file)
    return file.error();
  const auto corrupt = [&](const std::string &what) {
    return Error{ExitCode::Corrupt, quote(file->path()) + " " + what, ""};
  };
  const std::span<const std::byte> all = file->file().bytes();
  const std::byte *begin = all.data();
  const uint64_t header =
      file->entries().empty() ? all.size() : static_cast<uint64_t>(file->entries()[0].data - begin);
  for (uint64_t chunk = 0; chunk * content.chunkBytes < header; ++chunk) {
    const uint64_t offset = chunk * content.chunkBytes,
                   bytes = std::min(content.chunkBytes, all.size() - offset);
    if (digestOf(all.subspan(offset, bytes)) != entry.digests[chunk])
      return corrupt(
          fmt::format("is damaged: bytes {} to {} are not what was written", offset, offset + bytes - 1));
  }
  const std::optional<Offsets> offsets = readOffsets(*file);
  if (!offsets)
    return corrupt("has no readable DCP_SHARDING_INFO");
  for (const TensorEntry &part : file->entries()) {
    const auto found = numbers.find(std::string(part.name));
    if (found == numbers.end())
      return corrupt(fmt::format("has {}, which the manifest does not know", quote(part.name)));
    const CheckpointTensor &tensor = content.tensors[found->second];
    Box box{std::vector<int64_t>(part.shape.size()), {part.shape.begin(), part.shape.end()}};
    if (const auto saved = offsets->find(std::string(part.name)); saved != offsets->end())
      box.offsets = saved->second;
    if (part.dtype != tensor.dtype || !isWithin(box, tensor.shape))
      return corrupt(fmt::format("has a part of {} that does not belong to it", quote(part.name)));
    const uint64_t from = static_cast<uint64_t>(part.data - begin), size = elementBytes(tensor);
    for (const ElementRun &run : runsOf(box, tensor.shape))
      stored[found->second].push_back({run.first, run.count, number, from + run.at * size});
  }
  return {};
}

/// Leaves of runs that several nodes have written the first, so that none overlap.
void Checkpoint::dropRepeated(std::vector<StoredRun> &runs, uint64_t elementBytes) const {
  if (content.parts.size() < 2)
    return;
  std::vector<StoredRun> kept;
  for (StoredRun run : runs) {
    const uint64_t next = kept.empty() ? 0 : kept.back().first + kept.back().count;
    const bool another =
        !kept.empty() && content.files[run.file].node != content.files[kept.back().file].node;
    const uint64_t known = another && run.first < next ? std::min(next - run.first, run.count) : 0;
    run.first += known;
    run.count -= known;
    run.offset += known * elementBytes;
    if (run.count > 0)
      kept.push_back(run);
  }
  runs = std::move(kept);
}

Status Checkpoint::checkCover() {
  for (size_t i = 0; i < stored.size(); ++i) {
    const CheckpointTensor &tensor = content.tensors[i];
    std::sort(stored[i].begin(), stored[i].end(), [](const StoredRun &a, const StoredRun &b) {
      return a.first != b.first ? a.first < b.first : a.count > b.count;
    });
    dropRepeated(stored[i], elementBytes(tensor));
    uint64_t next = 0;
    for (const StoredRun &run : stored[i]) {
      if (run.first < next || (run.first > next && content.isWhole()))
        return Error{ExitCode::Corrupt,
                     fmt::format("{}: the parts of {} {} at element {}", quote(path), quote(tensor.name),
                                 run.first > next ? "leave a hole" : "overlap", std::min(run.first, next)),
                     ""};
      next = run.first + run.count;
    }
    if (const uint64_t elements = elementsOf(tensor.shape); next != elements && content.isWhole())
      return Error{ExitCode::Corrupt,
                   fmt::format("{}: the parts of {} end at element {} of {}", quote(path), quote(tensor.name),
                               next, elements),
                   ""};
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

const CheckpointTensor *Checkpoint::find(std::string_view name) const {
  const auto found = numbers.find(std::string(name));
  return found == numbers.end() ? nullptr : &content.tensors[found->second];
}

const std::vector<StoredRun> &Checkpoint::runs(const CheckpointTensor &tensor) const {
  return stored[static_cast<size_t>(&tensor - content.tensors.data())];
}

uint64_t Checkpoint::want(const CheckpointTensor &tensor, uint64_t first, uint64_t count,
                          const std::function<void(WantedBytes, uint64_t)> &add) const {
  const std::vector<StoredRun> &all = runs(tensor);
  const uint64_t size = elementBytes(tensor), end = first + count;
  uint64_t missing = count;
  auto run = std::upper_bound(all.begin(), all.end(), first,
                              [](uint64_t element, const StoredRun &each) { return element < each.first; });
  if (run != all.begin())
    --run;
  for (; run != all.end() && run->first < end; ++run) {
    const uint64_t from = std::max(first, run->first), to = std::min(end, run->first + run->count);
    if (from >= to) // it ends before
      continue;
    missing -= to - from;
    add({run->file, run->offset + (from - run->first) * size, (to - from) * size, 0}, from);
  }
  return missing;
}

Error Checkpoint::elsewhere(const std::string &what) const {
  return Error{ExitCode::Invalid,
               fmt::format("{} has the part of {}; {} of the part of {}", quote(path),
                           content.spellNodes(/*here=*/true), what, content.spellNodes(/*here=*/false)),
               "copy the files of all nodes' directories of this checkpoint into one directory"};
}

/// The chunks in which sorted requests lie, each once, in order.
static std::vector<ChunkNumber> chunksOf(const std::vector<WantedBytes> &wanted, uint64_t chunkBytes) {
  std::vector<ChunkNumber> chunks;
  for (const WantedBytes &each : wanted) {
    if (each.bytes == 0)
      continue;
    uint64_t chunk = each.offset / chunkBytes;
    if (!chunks.empty() && chunks.back().file == each.file)
      chunk = std::max(chunk, chunks.back().chunk + 1);
    for (; chunk <= (each.offset + each.bytes - 1) / chunkBytes; ++chunk)
      chunks.push_back({each.file, chunk});
  }
  return chunks;
}

Status Checkpoint::read(std::vector<WantedBytes> wanted, const TakeBytes &take) const {
  std::sort(wanted.begin(), wanted.end(), [](const WantedBytes &a, const WantedBytes &b) {
    return a.file != b.file ? a.file < b.file : a.offset < b.offset;
  });
  size_t first = 0; // of the requests that reach into the chunk or beyond
  return readChunks(
      path, content, chunksOf(wanted, content.chunkBytes), [&](const ReadChunk &chunk) -> Status {
        const uint64_t from = chunk.offset, to = from + chunk.bytes.size();
        if (!chunk.good)
          return Error{ExitCode::Corrupt,
                       fmt::format("{} is damaged: bytes {} to {} are not what was written",
                                   quote(path + "/" + content.files[chunk.file].name), from, to - 1),
                       ""};
        while (first < wanted.size() &&
               (wanted[first].file < chunk.file || wanted[first].offset + wanted[first].bytes <= from))
          ++first;
        for (size_t i = first; i < wanted.size() && wanted[i].file == chunk.file && wanted[i].offset < to;
             ++i) {
          const uint64_t begin = std::max(from, wanted[i].offset);
          const uint64_t end = std::min(to, wanted[i].offset + wanted[i].bytes);
          if (begin < end)
            if (Status status =
                    take(wanted[i], begin - wanted[i].offset, chunk.bytes.subspan(begin - from, end - begin));
                !status)
              return status;
        }
        return {};
      });
}

Status Checkpoint::read(const CheckpointTensor &tensor, uint64_t first, uint64_t count, std::byte *to) const {
  std::vector<WantedBytes> wanted;
  const uint64_t size = elementBytes(tensor);
  const uint64_t missing = want(tensor, first, count, [&](WantedBytes bytes, uint64_t element) {
    bytes.tag = (element - first) * size;
    wanted.push_back(bytes);
  });
  if (missing > 0)
    return elsewhere(fmt::format("{} bytes of {} are", missing * size, quote(tensor.name)));
  return read(std::move(wanted),
              [&](const WantedBytes &bytes, uint64_t from, std::span<const std::byte> part) {
                std::memcpy(to + bytes.tag + from, part.data(), part.size());
                return Status();
              });
}

Status Checkpoint::verify(const CheckpointFile &entry,
                          const std::function<void(uint64_t, uint64_t)> &bad) const {
  const auto file = static_cast<uint32_t>(&entry - content.files.data());
  std::vector<ChunkNumber> chunks;
  for (uint64_t chunk = 0; chunk < entry.digests.size(); ++chunk)
    chunks.push_back({file, chunk});
  return readChunks(path, content, chunks, [&](const ReadChunk &chunk) {
    if (!chunk.good)
      bad(chunk.offset, chunk.bytes.size());
    return Status();
  });
}

uint64_t Checkpoint::bytes() const {
  uint64_t sum = 0;
  for (const CheckpointFile &file : content.files)
    sum += file.bytes;
  return sum;
}

} // namespace ds::rt
