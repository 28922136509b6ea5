//===- PickleValues.h - Makes the values of a pickle while it is read ----------===//
#ifndef DS_LIB_RUNTIME_FORMATS_PICKLEVALUES_H
#define DS_LIB_RUNTIME_FORMATS_PICKLEVALUES_H

#include "PickleTables.h"

namespace ds::rt {

/// What is wrong with a pickle. The first fault counts.
struct PickleFault {
  std::string message;

  /// True: the opcode was of the family that found the fault.
  bool fail(std::string text) {
    if (message.empty())
      message = std::move(text);
    return true;
  }
  bool isThere() const { return !message.empty(); }
};

/// Adds nodes to tables. Nothing here can fail.
class PickleValues {
public:
  /// Nodes that every pickle shares.
  static constexpr PickleRef kNone = 0, kFalse = 1, kTrue = 2, kEmptyTuple = 3;

  explicit PickleValues(PickleTables &tables);

  PickleRef add(PickleKind kind, uint8_t flag = 0);
  PickleRef addNumber(PickleKind kind, uint64_t word);
  PickleRef addText(PickleKind kind, std::string_view text);
  PickleRef addPair(PickleKind kind, PickleRef first, PickleRef last, uint8_t flag = 0);
  PickleRef addObject(PickleRef callee, PickleRef arguments);
  void append(PickleRef container, PickleRef value);
  PickleObject &partsOf(PickleRef object);

  PickleKind kindOf(PickleRef ref) const { return tables.nodes[ref].kind; }
  /// At most `limit` children of a container.
  std::vector<PickleRef> peek(PickleRef container, size_t limit) const;
  bool isGlobal(PickleRef ref, std::string_view module, std::string_view name) const;

  /// Ends the reading: pieces of `children` instead of chains.
  void flatten();

  PickleTables &tables;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FORMATS_PICKLEVALUES_H
