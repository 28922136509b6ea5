//===- Pickle.h - Python's pickles as plain data --------------------------------===//
//
// A pickle is a program for a stack machine that may call anything. This reader runs the machine and calls
// nothing: numbers, texts and containers become values; a short list of globals (OrderedDict, torch.Size,
// rebuilt tensors) becomes what they would make; every other class or function becomes an Object that keeps
// its name, arguments and state as data, so that a tensor beside it can still be read.
//
// Files come from strangers. Nothing recurses; each opcode makes at most one value of constant size; texts
// stay where they are in the file: time and memory are bounded by a multiple of the file's size. Values may
// be shared and may contain themselves, as Python's may: follow keys, do not walk everything.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_FORMATS_PICKLE_H
#define DS_RUNTIME_FORMATS_PICKLE_H

#include "ds/Runtime/Formats/FileDType.h"
#include "ds/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ds::rt {

/// More dimensions than any framework computes with.
inline constexpr size_t kMaxPickleRank = 64;
/// A longer pickle is refused: the values of a checkpoint lie beside it, not in it.
inline constexpr size_t kMaxPickleBytes = size_t(64) << 20;

enum class PickleKind : uint8_t {
  None,
  Bool,
  Int,
  LongInt, ///< an integer of more than 64 bits: kept, but never a number
  Float,
  Bytes,
  Text,
  List,
  Tuple, ///< also torch.Size
  Dict,  ///< also OrderedDict and defaultdict
  Set,
  Global,  ///< the name of a class or function
  Storage, ///< the bytes behind tensors
  Tensor,  ///< also a parameter
  Object,  ///< what a global that is not on the list would have made
};

/// Where a tensor's elements lie. All counts are in elements, and the reader has checked that every element
/// lies inside the storage.
struct PickleTensor {
  FileDType dtype = FileDType::F32;
  std::string storage;          ///< its key: the name of an entry of the archive
  uint64_t storageElements = 0; ///< of `dtype`
  uint64_t offset = 0;          ///< of the first element in the storage
  std::vector<int64_t> shape, strides;

  uint64_t numElements() const;
  /// Whether the elements follow one another in row-major order.
  bool isPacked() const;
};

struct PickleTables;

/// One value of a pickle; cheap to copy, valid as long as the Pickle.
class PickleValue {
public:
  PickleKind kind() const;
  bool isNone() const { return kind() == PickleKind::None; }

  /// Nothing where the value is of another kind: a Bool is no Int.
  std::optional<bool> asBool() const;
  std::optional<int64_t> asInt() const;
  std::optional<double> asNumber() const; ///< Int or Float
  std::optional<std::string_view> asText() const;
  std::optional<std::string> asBytes() const;
  std::optional<PickleTensor> asTensor() const;

  /// Elements of a List, Tuple or Set, pairs of a Dict; of an Object, what was added to it as to a list or a
  /// dict. 0 for all else.
  size_t size() const;
  /// Element `index` of a List, Tuple or Set (or of an Object that is like a list).
  PickleValue operator[](size_t index) const;
  /// Whether `key` and `value` may be asked.
  bool isMap() const;
  PickleValue key(size_t index) const;
  PickleValue value(size_t index) const;

  /// The value of that text among the pairs; of an Object also among its attributes. As in Python the last
  /// of equal keys counts. Looks at all pairs.
  std::optional<PickleValue> find(std::string_view name) const;

  /// "argparse.Namespace": of a Global, and of the Object that it would have made.
  std::string typeName() const;
  /// The arguments that an Object would have been made from; a Tuple for most.
  std::optional<PickleValue> arguments() const;
  /// The state that an Object would have been given; mostly a Dict of attributes.
  std::optional<PickleValue> state() const;

  /// For messages: "a list", "an object of 'os.system', which is not read".
  std::string describe() const;

  /// The same value, not an equal one.
  bool operator==(const PickleValue &) const = default;

private:
  friend class Pickle;
  PickleValue(const PickleTables *tables, uint32_t node) : tables(tables), node(node) {}

  const PickleTables *tables;
  uint32_t node;
};

/// A pickle that was read. Movable; values stay valid over a move. Reading is thread-safe.
class Pickle {
public:
  /// Reads `bytes`, a pickle of protocol 2 to 5 with nothing behind it. Corrupt, with `name` and the offset:
  /// a byte that no pickler writes, a tensor that leaves its storage, a tensor that depends on an Object.
  static Result<Pickle> read(std::string bytes, const std::string &name);

  PickleValue root() const;

  /// Every storage that is mentioned, by its key: its bytes.
  struct Storage {
    std::string_view key;
    uint64_t bytes = 0;
  };
  std::vector<Storage> storages() const;

  Pickle(Pickle &&) noexcept;
  Pickle &operator=(Pickle &&) noexcept;
  ~Pickle();

private:
  explicit Pickle(std::unique_ptr<PickleTables> tables);
  std::unique_ptr<PickleTables> tables; ///< never null but after a move
};

} // namespace ds::rt

#endif // DS_RUNTIME_FORMATS_PICKLE_H
