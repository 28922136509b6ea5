//===- ForeignView.h - Whole tensors from pieces of files -----------------------===//
//
// What the readers of the kinds of folders share. A source is a tensor of a file; a tensor of the view is a
// list of pieces of sources, in order and without gaps. Of the files, which may be thousands, only a few are
// open at a time.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_FOREIGN_FOREIGNVIEW_H
#define DS_LIB_RUNTIME_FOREIGN_FOREIGNVIEW_H

#include "ds/Runtime/Foreign/ForeignCheckpoint.h"
#include "ds/Runtime/Formats/SafeTensors.h"
#include "ds/Runtime/Formats/TorchFile.h"

#include <map>
#include <mutex>
#include <unordered_map>

namespace ds::rt {

Error foreignCorrupt(const std::string &path, const std::string &what);
Error foreignInvalid(const std::string &path, const std::string &what, const std::string &hint);

/// Files of torch.save by number, opened when they are used. A file that was replaced between two uses is
/// refused.
class TorchFiles {
public:
  using File = std::shared_ptr<const TorchFile>;

  /// Opens `directory`/`name` and gives it the number that `number` gets.
  Result<File> add(const std::string &directory, const std::string &name, uint32_t &number);
  Result<File> use(uint32_t number);

private:
  struct Slot {
    std::string directory, name;
    TorchFileIdentity identity;
    File file; ///< null while it is closed
    uint64_t lastUse = 0;
  };
  void keep(Slot &slot, File file);

  static constexpr size_t kMaxOpen = 32;
  std::vector<Slot> slots;
  size_t numOpen = 0;
  uint64_t clock = 0;
};

/// A tensor of a file.
struct ForeignSource {
  uint32_t file = 0; ///< among the TorchFiles
  PickleTensor tensor;
  const TensorEntry *entry = nullptr; ///< in place of both: of a safetensors file
};

/// `count` elements of a source from `first` on are those of a tensor from `begin` on.
struct ForeignPiece {
  uint64_t begin = 0, count = 0;
  uint32_t source = 0;
  uint64_t first = 0;
};
using ForeignPieces = std::vector<ForeignPiece>;

/// Sources one after another, as if they were one.
class FlatVector {
public:
  /// The first `count` elements of `source`.
  void append(uint32_t source, uint64_t count);
  /// `count` elements that no file has.
  void appendHole(uint64_t count);
  uint64_t size() const { return total; }

  /// Adds the pieces that are elements from .. from + count, to be elements `begin` and on of a tensor. False
  /// where they reach past the end or into a hole.
  bool cut(uint64_t from, uint64_t count, uint64_t begin, ForeignPieces &out) const;

private:
  ForeignPieces parts; ///< `begin` is the place in this vector
  uint64_t total = 0;
};

/// All that a checkpoint shows, and what it is made of.
struct ForeignView {
  ForeignFormat format = ForeignFormat::Weights;
  std::string folder, description;
  std::string optimizer; ///< "AdamW"; empty: not named
  ForeignProgress progress;
  std::vector<NamedNumber> scheduler;
  std::optional<ForeignLossScale> lossScale;
  std::vector<ForeignTensor> tensors;
  std::vector<ForeignPieces> pieces; ///< by tensor
  std::vector<std::vector<std::string>> tied;
  std::map<std::pair<std::string, std::string>, size_t, std::less<>> byName; ///< name and slot to tensor
  std::vector<ForeignSource> sources;
  TorchFiles files;
  std::optional<WeightFiles> weights;
  mutable std::mutex reading; ///< guards `files`

  /// The number of a source. Refuses one that repeats elements: what it claims to hold is not bounded by the
  /// file.
  Result<uint32_t> addSource(uint32_t file, const std::string &path, PickleTensor tensor);
  /// A tensor whose elements are those of the pieces, which all have one dtype.
  Status addTensor(ForeignTensor tensor, ForeignPieces pieces);
  /// A tensor that is a source, in the source's shape.
  Status addWhole(ForeignTensor tensor, uint32_t source);
  /// Says that `alias` is the parameter `name`, if the view has that.
  void tie(const std::string &name, const std::string &alias);
  bool has(std::string_view name, std::string_view slot = "value") const;

  FileDType dtypeOf(uint32_t source) const;
  Status readPiece(const ForeignPiece &piece, uint64_t skipped, uint64_t count, std::byte *to);
};

// One for each kind of folder. `names` are the names in it.
Status readUniversal(ForeignView &view, const std::vector<std::string> &names);
Status readZero(ForeignView &view, const std::vector<std::string> &names);
Status readWeights(ForeignView &view, const std::vector<std::string> &names);

/// The names in a folder, sorted; Io where it cannot be read.
Result<std::vector<std::string>> listFolder(const std::string &folder);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FOREIGN_FOREIGNVIEW_H
