//===- SafeTensors.cpp - Verified reading and atomic writing -------------------===//

#include "ds/Runtime/Formats/SafeTensors.h"

#include "Files/Text.h"
#include "SafeTensorsHeader.h"
#include "ds/Runtime/Files/AtomicFile.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <numeric>

using namespace ds;
using namespace ds::rt;

static_assert(std::endian::native == std::endian::little,
              "the formats are little-endian and are mapped as they are");

/// Bytes of a tensor, or false with the reason: the product or the bits overflow, or do not fill whole bytes.
static bool tensorBytes(FileDType dtype, std::span<const int64_t> shape, uint64_t &bytes,
                        std::string &reason) {
  int64_t count = 0;
  uint64_t bits = 0;
  if (!checkedProduct(shape, count)) {
    reason = "shape " + spellShape(shape) + " has a negative dimension or more than 2^63 - 1 elements";
    return false;
  }
  if (__builtin_mul_overflow(uint64_t(count), uint64_t(bitSize(dtype)), &bits)) {
    reason =
        "shape " + spellShape(shape) + " of " + std::string(spell(dtype)) + " has more than 2^64 - 1 bits";
    return false;
  }
  if (bits % 8 != 0) {
    reason = "shape " + spellShape(shape) + " of " + std::string(spell(dtype)) + " has " +
             std::to_string(bits) + " bits, which do not fill whole bytes";
    return false;
  }
  bytes = bits / 8;
  return true;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

struct SafeTensorsFile::Tables {
  MappedFile file;
  std::vector<char> text;
  std::vector<int64_t> dims;
  std::vector<TensorEntry> entries;
  std::vector<uint32_t> byName; ///< indices into entries
  std::vector<MetadataEntry> metadata;
};

namespace {

/// Turns a mapped file into tables, rule by rule.
class Reader {
public:
  explicit Reader(MappedFile file) : tables(std::make_unique<SafeTensorsFile::Tables>()) {
    tables->file = std::move(file);
  }
  Status read();
  std::unique_ptr<SafeTensorsFile::Tables> take() { return std::move(tables); }

private:
  Error corrupt(const std::string &what) const {
    return {ExitCode::Corrupt, quote(tables->file.path()) + ": " + what,
            "the file is damaged or not a safetensors file: write or download it again"};
  }
  Status readLength(uint64_t &length) const;
  Status layOut(HeaderTables &header, std::span<const std::byte> data);
  Status addEntry(const HeaderTables &header, const HeaderTables::Tensor &tensor, uint64_t expectedBegin,
                  std::span<const std::byte> data);
  Status indexNames();
  Status addMetadata(const HeaderTables &header);

  std::unique_ptr<SafeTensorsFile::Tables> tables;
};

} // namespace

Status Reader::readLength(uint64_t &length) const {
  std::span<const std::byte> bytes = tables->file.bytes();
  if (bytes.size() < 8)
    return corrupt("has " + std::to_string(bytes.size()) +
                   " bytes, but the length of the header alone takes 8");
  memcpy(&length, bytes.data(), 8);
  if (length > kMaxSafeTensorsHeader)
    return corrupt("header of " + std::to_string(length) + " bytes is over the limit of " +
                   std::to_string(kMaxSafeTensorsHeader));
  if (length > bytes.size() - 8)
    return corrupt("header of " + std::to_string(length) + " bytes does not fit into the file of " +
                   std::to_string(bytes.size()));
  return {};
}

Status Reader::read() {
  uint64_t length = 0;
  if (Status status = readLength(length); !status)
    return status;
  std::span<const std::byte> bytes = tables->file.bytes();
  std::string_view json(reinterpret_cast<const char *>(bytes.data()) + 8, length);
  HeaderTables header;
  std::string message;
  if (!parseHeader(json, header, message))
    return corrupt(message);
  if (Status status = layOut(header, bytes.subspan(8 + length)); !status)
    return status;
  if (Status status = indexNames(); !status)
    return status;
  return addMetadata(header);
}

/// Checks that the tensors tile the data without hole, overlap or tail, and makes the entries.
Status Reader::layOut(HeaderTables &header, std::span<const std::byte> data) {
  tables->text = std::move(header.text);
  tables->dims = std::move(header.dims);
  std::sort(header.tensors.begin(), header.tensors.end(), [](const auto &a, const auto &b) {
    return std::tie(a.begin, a.end, a.name.offset) < std::tie(b.begin, b.end, b.name.offset);
  });
  tables->entries.reserve(header.tensors.size());
  uint64_t expectedBegin = 0;
  for (const HeaderTables::Tensor &tensor : header.tensors) {
    if (Status status = addEntry(header, tensor, expectedBegin, data); !status)
      return status;
    expectedBegin = tensor.end;
  }
  if (expectedBegin != data.size())
    return corrupt("tensors end at byte " + std::to_string(expectedBegin) +
                   " of the data, but the file has " + std::to_string(data.size()) +
                   " bytes after the header");
  return {};
}

Status Reader::addEntry(const HeaderTables &header, const HeaderTables::Tensor &tensor,
                        uint64_t expectedBegin, std::span<const std::byte> data) {
  TensorEntry entry;
  entry.name = {tables->text.data() + tensor.name.offset, tensor.name.length};
  entry.dtype = tensor.dtype;
  entry.shape = {tables->dims.data() + tensor.firstDim, tensor.rank};
  auto refuse = [&](const std::string &what) { return corrupt("tensor " + quote(entry.name) + ": " + what); };
  auto refuseOffsets = [&](const std::string &what) {
    return refuse("data_offsets [" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) + "] " +
                  what);
  };
  if (tensor.begin != expectedBegin)
    return refuseOffsets((tensor.begin < expectedBegin ? "overlap" : "leave a hole after") +
                         std::string(" the tensor before, which ends at ") + std::to_string(expectedBegin));
  if (tensor.end < tensor.begin)
    return refuseOffsets("end before they begin");
  if (tensor.end > data.size())
    return refuseOffsets("end after the file, which has " + std::to_string(data.size()) +
                         " bytes after the header");
  std::string reason;
  if (!tensorBytes(entry.dtype, entry.shape, entry.bytes, reason))
    return refuse(reason);
  if (entry.bytes != tensor.end - tensor.begin)
    return refuseOffsets("hold " + std::to_string(tensor.end - tensor.begin) + " bytes, but shape " +
                         spellShape(entry.shape) + " of " + std::string(spell(entry.dtype)) + " takes " +
                         std::to_string(entry.bytes));
  entry.data = data.data() + tensor.begin;
  tables->entries.push_back(entry);
  return {};
}

Status Reader::indexNames() {
  const std::vector<TensorEntry> &entries = tables->entries;
  tables->byName.resize(entries.size());
  std::iota(tables->byName.begin(), tables->byName.end(), 0u);
  std::sort(tables->byName.begin(), tables->byName.end(),
            [&](uint32_t a, uint32_t b) { return entries[a].name < entries[b].name; });
  for (size_t i = 1; i < entries.size(); ++i)
    if (std::string_view name = entries[tables->byName[i]].name; name == entries[tables->byName[i - 1]].name)
      return corrupt("duplicate key " + quote(name));
  return {};
}

Status Reader::addMetadata(const HeaderTables &header) {
  auto view = [&](HeaderTables::Text window) {
    return std::string_view(tables->text.data() + window.offset, window.length);
  };
  std::vector<MetadataEntry> &metadata = tables->metadata;
  metadata.reserve(header.metadata.size());
  for (const HeaderTables::Pair &pair : header.metadata)
    metadata.push_back({view(pair.key), view(pair.value)});
  std::sort(metadata.begin(), metadata.end(), [](const auto &a, const auto &b) { return a.key < b.key; });
  for (size_t i = 1; i < metadata.size(); ++i)
    if (metadata[i].key == metadata[i - 1].key)
      return corrupt("__metadata__: duplicate key " + quote(metadata[i].key));
  return {};
}

Result<SafeTensorsFile> SafeTensorsFile::open(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.error();
  return open(std::move(*file));
}

Result<SafeTensorsFile> SafeTensorsFile::open(MappedFile file) try {
  Reader reader(std::move(file));
  if (Status status = reader.read(); !status)
    return status.error();
  return SafeTensorsFile(reader.take());
} catch (const std::bad_alloc &) {
  return Error{ExitCode::Io, "no memory for the header of a safetensors file", "free memory"};
}

SafeTensorsFile::SafeTensorsFile(std::unique_ptr<Tables> tables) : tables(std::move(tables)) {}
SafeTensorsFile::SafeTensorsFile(SafeTensorsFile &&) noexcept = default;
SafeTensorsFile &SafeTensorsFile::operator=(SafeTensorsFile &&) noexcept = default;
SafeTensorsFile::~SafeTensorsFile() = default;

std::span<const TensorEntry> SafeTensorsFile::entries() const { return tables->entries; }
std::span<const MetadataEntry> SafeTensorsFile::metadata() const { return tables->metadata; }
const std::string &SafeTensorsFile::path() const { return tables->file.path(); }
const MappedFile &SafeTensorsFile::file() const { return tables->file; }

const TensorEntry *SafeTensorsFile::find(std::string_view name) const {
  auto position =
      std::lower_bound(tables->byName.begin(), tables->byName.end(), name,
                       [&](uint32_t i, std::string_view key) { return tables->entries[i].name < key; });
  if (position == tables->byName.end() || tables->entries[*position].name != name)
    return nullptr;
  return &tables->entries[*position];
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static Error invalidTensor(std::string_view name, const std::string &what) {
  return {ExitCode::Invalid, "cannot write tensor " + quote(name) + ": " + what, ""};
}

/// Checks the sources and fills in their sizes and order.
static Status orderSources(std::span<const TensorSource> sources, SafeTensorsHeader &header) {
  for (const TensorSource &source : sources) {
    uint64_t bytes = 0;
    std::string reason;
    if (source.name == "__metadata__" || !isUtf8(source.name))
      return invalidTensor(source.name, "expects a name in UTF-8 other than __metadata__");
    if (source.shape.size() > kMaxSafeTensorsRank)
      return invalidTensor(source.name, "has " + std::to_string(source.shape.size()) +
                                            " dimensions; the limit is " +
                                            std::to_string(kMaxSafeTensorsRank));
    if (!tensorBytes(source.dtype, source.shape, bytes, reason))
      return invalidTensor(source.name, reason);
    if (__builtin_add_overflow(header.dataBytes, bytes, &header.dataBytes))
      return invalidTensor(source.name, "the file would have more than 2^64 - 1 bytes");
    header.tensorBytes.push_back(bytes);
  }
  header.order.resize(sources.size());
  std::iota(header.order.begin(), header.order.end(), size_t(0));
  auto byName = [&](size_t a, size_t b) { return sources[a].name < sources[b].name; };
  std::sort(header.order.begin(), header.order.end(), byName);
  for (size_t i = 1; i < sources.size(); ++i)
    if (const std::string &name = sources[header.order[i]].name; name == sources[header.order[i - 1]].name)
      return invalidTensor(name, "two tensors have this name");
  std::sort(header.order.begin(), header.order.end(), [&](size_t a, size_t b) {
    return sources[a].dtype != sources[b].dtype ? sources[a].dtype > sources[b].dtype : byName(a, b);
  });
  return {};
}

static void appendMetadata(std::string &json, const Metadata &metadata) {
  json += "\"__metadata__\":{";
  for (size_t i = 0; i < metadata.size(); ++i) {
    json += i ? "," : "";
    appendJsonString(json, metadata[i].first);
    json += ':';
    appendJsonString(json, metadata[i].second);
  }
  json += '}';
}

static void appendTensor(std::string &json, const TensorSource &source, uint64_t begin, uint64_t bytes) {
  appendJsonString(json, source.name);
  json += ":{\"dtype\":\"" + std::string(spell(source.dtype)) + "\",\"shape\":[";
  for (size_t i = 0; i < source.shape.size(); ++i)
    json += (i ? "," : "") + std::to_string(source.shape[i]);
  json += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(begin + bytes) + "]}";
}

Result<SafeTensorsHeader> ds::rt::serialiseHeader(std::span<const TensorSource> sources,
                                                  const Metadata &metadata) {
  SafeTensorsHeader header;
  if (Status status = orderSources(sources, header); !status)
    return status.error();
  Metadata sorted = metadata;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i].first == sorted[i - 1].first)
      return invalidTensor("__metadata__", "duplicate key " + quote(sorted[i].first));
  std::string json = "{";
  if (!sorted.empty())
    appendMetadata(json, sorted);
  uint64_t begin = 0;
  for (size_t index : header.order) {
    json += json.size() > 1 ? "," : "";
    appendTensor(json, sources[index], begin, header.tensorBytes[index]);
    begin += header.tensorBytes[index];
  }
  json += '}';
  json.append((8 - json.size() % 8) % 8, ' '); // the data begins aligned
  uint64_t length = json.size();
  if (length > kMaxSafeTensorsHeader)
    return Error{ExitCode::Invalid,
                 "header of " + std::to_string(length) + " bytes is over the format's limit of " +
                     std::to_string(kMaxSafeTensorsHeader),
                 "split the tensors over several files"};
  header.bytes.assign(reinterpret_cast<const char *>(&length), 8);
  header.bytes += json;
  return header;
}

Status ds::rt::writeSafeTensors(const std::string &path, std::span<const TensorSource> sources,
                                const Metadata &metadata) {
  Result<SafeTensorsHeader> header = serialiseHeader(sources, metadata);
  if (!header)
    return Error{header.error().code, quote(path) + ": " + header.error().message, header.error().hint};
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  if (Status status = file->reserve(header->bytes.size() + header->dataBytes); !status)
    return status;
  if (Status status = file->write(header->bytes); !status)
    return status;
  for (size_t index : header->order) {
    std::span bytes(static_cast<const std::byte *>(sources[index].data), header->tensorBytes[index]);
    if (Status status = file->write(bytes); !status)
      return status;
  }
  return file->commit();
}
