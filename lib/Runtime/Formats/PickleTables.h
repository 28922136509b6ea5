//===- PickleTables.h - The values of a pickle, in flat tables ------------------===//
//
// A value is a node of 16 bytes. While the pickle is read, containers are chains of links, for a list grows
// after others have begun to refer to it; at the end each chain becomes a piece of `children`.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_FORMATS_PICKLETABLES_H
#define DS_LIB_RUNTIME_FORMATS_PICKLETABLES_H

#include "ds/Runtime/Formats/Pickle.h"

#include <deque>
#include <span>

namespace ds::rt {

using PickleRef = uint32_t; ///< number of a node
inline constexpr uint32_t kNoRef = UINT32_MAX;
/// Of a storage that counts bytes: the tensor says what they are.
inline constexpr uint8_t kUntyped = 255;

struct PickleNode {
  PickleKind kind = PickleKind::None;
  /// Bool: the value. Bytes: whether they are a text's code points. Set: whether it is another node's.
  /// Storage, Tensor: the FileDType, or kUntyped.
  uint8_t flag = 0;
  /// Text, Bytes: length. Containers: number of children. Object: its row in `objects`, or kNoRef.
  uint32_t count = 0;
  /// Int, Float: the 64 bits. Text, Bytes: the place in the file. Containers: first and last link, later
  /// the first child. Global: module and name. Storage: `first` is its description. Tensor: storage and
  /// arguments. Object: what would be called, and the arguments. Set of another's elements, Bytes of a text:
  /// `first`.
  uint32_t first = 0, last = 0;

  uint64_t word() const { return uint64_t(last) << 32 | first; }
  void setWord(uint64_t value) { first = uint32_t(value), last = uint32_t(value >> 32); }
};
static_assert(sizeof(PickleNode) == 16);

struct PickleLink {
  PickleRef value;
  uint32_t next;
};

/// What was done to an object after it was made.
struct PickleObject {
  PickleRef state = kNoRef;
  PickleRef items = kNoRef; ///< a List or Dict node
};

struct PickleTables {
  std::string bytes;            ///< the pickle itself: texts point into it
  std::deque<PickleNode> nodes; ///< a deque: growing never needs twice the memory
  std::deque<PickleLink> links; ///< empty once the pickle is read
  std::deque<PickleObject> objects;
  std::vector<PickleRef> children;
  PickleRef root = 0;

  std::string_view text(PickleRef ref) const {
    const PickleNode &node = nodes[ref];
    return std::string_view(bytes).substr(node.word(), node.count);
  }
  /// Children of a container; only once the pickle is read.
  std::span<const PickleRef> childrenOf(PickleRef ref) const {
    const PickleNode &node = nodes[ref];
    return {children.data() + node.first, node.count};
  }
  /// The node whose children a value shows: its own, those of a set's list, those of an object's items.
  /// kNoRef where it has none.
  PickleRef container(PickleRef ref) const;
  /// Module and name of a Global, or of the Global that would have made an Object; empty for others.
  std::pair<std::string_view, std::string_view> nameOf(PickleRef ref) const;
};

/// Elements of a shape: false where the product leaves int64.
bool countElements(std::span<const int64_t> shape, uint64_t &count);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FORMATS_PICKLETABLES_H
