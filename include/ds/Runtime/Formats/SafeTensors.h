//===- SafeTensors.h - Tensors by name in one file -----------------------------===//
//
// The exchange format for weights: 8 bytes of length, a JSON header, then the bytes of all tensors without
// holes. The reader takes files from strangers. It maps the file, reads the header with a SAX handler that
// stops at the first violation (duplicate key, number that is not an unsigned integer, depth over 3, hole,
// overlap, tail), and keeps flat tables, so that time and memory (at most seven times the header) are bounded
// and no tensor is touched.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_FORMATS_SAFETENSORS_H
#define DS_RUNTIME_FORMATS_SAFETENSORS_H

#include "ds/Runtime/Files/MappedFile.h"
#include "ds/Runtime/Formats/FileDType.h"
#include "ds/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::rt {

/// Limits of the format. A longer header is refused when reading and when writing.
inline constexpr uint64_t kMaxSafeTensorsHeader = 100'000'000;
/// More dimensions than any framework computes with; keeps a header of "[1,1,1,...]" from costing memory.
inline constexpr size_t kMaxSafeTensorsRank = 64;

/// One tensor of a file. Everything points into the file object.
struct TensorEntry {
  std::string_view name;
  FileDType dtype = FileDType::F32;
  std::span<const int64_t> shape;  ///< row-major, packed
  const std::byte *data = nullptr; ///< little-endian; not necessarily aligned: read by memcpy
  uint64_t bytes = 0;
};

/// What the file says about itself ("format": "pt").
struct MetadataEntry {
  std::string_view key, value;
};

/// A verified file, mapped. Movable; entries stay valid over a move. Reading is thread-safe.
class SafeTensorsFile {
public:
  /// Corrupt: the file breaks a rule of the format. Io: it could not be read.
  static Result<SafeTensorsFile> open(const std::string &path);
  static Result<SafeTensorsFile> open(MappedFile file);

  /// In the order of the data.
  std::span<const TensorEntry> entries() const;
  std::span<const MetadataEntry> metadata() const;

  /// The tensor of that name, or null.
  const TensorEntry *find(std::string_view name) const;

  const std::string &path() const;
  const MappedFile &file() const;

  struct Tables; ///< names, shapes and entries; defined by the reader

  SafeTensorsFile(SafeTensorsFile &&) noexcept;
  SafeTensorsFile &operator=(SafeTensorsFile &&) noexcept;
  ~SafeTensorsFile();

private:
  explicit SafeTensorsFile(std::unique_ptr<Tables> tables);
  std::unique_ptr<Tables> tables; ///< never null but after a move
};

/// The weights of a model: one .safetensors file, the shards that a model.safetensors.index.json names, or a
/// directory that has such an index or a model.safetensors. An
/// index may name only files that lie beside it; a tensor that it does not list is not visible.
class WeightFiles {
public:
  static Result<WeightFiles> open(const std::string &path);

  std::span<const TensorEntry *const> entries() const { return all; } ///< sorted by name
  const TensorEntry *find(std::string_view name) const;

  /// The files that are mapped, in the order of their names.
  std::span<const SafeTensorsFile> files() const { return shards; }

private:
  WeightFiles() = default;
  std::vector<SafeTensorsFile> shards;
  std::vector<const TensorEntry *> all; ///< into the shards' tables, which do not move
};

/// One tensor to be written: packed, row-major, little-endian.
struct TensorSource {
  std::string name;
  FileDType dtype = FileDType::F32;
  std::vector<int64_t> shape;
  const void *data = nullptr; ///< not read by `serialiseHeader`
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// The first bytes of a file, and the order in which the tensors' bytes must follow.
struct SafeTensorsHeader {
  std::string bytes;                 ///< length prefix and JSON, padded to a multiple of 8
  std::vector<size_t> order;         ///< indices into the sources: largest alignment first, then by name
  std::vector<uint64_t> tensorBytes; ///< by source
  uint64_t dataBytes = 0;            ///< their sum: the file has bytes.size() + dataBytes
};

/// For writers that stream (pipes, gathered shards). Invalid: duplicate or reserved name, name that is not
/// UTF-8, negative or overflowing shape, bits that do not fill bytes, header over the limit.
Result<SafeTensorsHeader> serialiseHeader(std::span<const TensorSource> sources,
                                          const Metadata &metadata = {});

/// Writes the file atomically (see AtomicFile); tensor bytes go from `data` to the kernel without a copy. The
/// path may be one that is mapped as the source of the data.
Status writeSafeTensors(const std::string &path, std::span<const TensorSource> sources,
                        const Metadata &metadata = {});

} // namespace ds::rt

#endif // DS_RUNTIME_FORMATS_SAFETENSORS_H
