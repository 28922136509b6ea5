//===- PickleMachine.h - The stack machine that pickles are programs of ---------===//
//
// PickleMachine.cpp has the opcodes that make values, PickleCalls.cpp those that would call something,
// PickleStack.cpp what both do with the stack. A family of opcodes is one function, which says whether the
// opcode was of its family; what is wrong goes to `fail` and ends the reading.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_FORMATS_PICKLEMACHINE_H
#define DS_LIB_RUNTIME_FORMATS_PICKLEMACHINE_H

#include "PickleTables.h"

namespace ds::rt {

/// Size: a method for each family of opcodes; stack, memo and what calls make are still to be parted.
class PickleMachine {
public:
  explicit PickleMachine(PickleTables &tables);

  /// Reads to STOP. False on a violation; `message` and `at` then say what and where.
  bool run();

  std::string message;
  size_t at = 0; ///< offset of the opcode that is carried out

private:
  // Families of opcodes.
  bool readFixed(uint8_t opcode);     ///< None, truth values, numbers, empty containers
  bool readSized(uint8_t opcode);     ///< texts, bytes, long integers
  bool readContainer(uint8_t opcode); ///< tuples, and adding to lists, dicts and sets
  bool readStack(uint8_t opcode);     ///< marks, memo, frames
  bool readCall(uint8_t opcode);      ///< globals and what would be made of them

  // Bytes of the file.
  bool take(size_t count, std::string_view &out);
  bool takeLine(std::string_view &out);
  bool takeNumber(size_t width, uint64_t &value);

  // The stack. A failed pop gives the node None.
  void push(PickleRef ref) { stack.push_back(ref); }
  PickleRef pop();
  PickleRef top();
  bool popMark(size_t &begin);

  // Values.
  PickleRef add(PickleKind kind, uint8_t flag = 0);
  PickleRef addText(PickleKind kind, std::string_view text);
  PickleRef addPair(PickleKind kind, PickleRef first, PickleRef last, uint8_t flag = 0);
  bool pushNumber(PickleKind kind, uint64_t word);
  bool pushText(PickleKind kind, size_t lengthWidth);
  void append(PickleRef container, PickleRef value);
  PickleRef addContainer(PickleKind kind, size_t begin);
  bool extend(PickleKind kind, size_t begin);
  PickleRef itemsOf(PickleRef target, PickleKind kind);

  // Calls.
  bool pushLong(size_t lengthWidth);
  bool remember(uint64_t index);
  bool recall(uint64_t index);
  bool setState();
  bool pushStorage();
  PickleRef call(PickleRef callee, PickleRef arguments);
  PickleRef callKnown(PickleRef callee, PickleRef arguments);
  PickleRef rebuildTensor(PickleRef callee, PickleRef arguments, bool hasDtype);
  PickleRef rebuildFromType(PickleRef callee, PickleRef arguments);
  PickleRef addObject(PickleRef callee, PickleRef arguments) {
    PickleRef ref = addPair(PickleKind::Object, callee, arguments);
    tables.nodes[ref].count = kNoRef;
    return ref;
  }
  PickleObject &partsOf(PickleRef object);

  /// At most `limit` children of a container.
  std::vector<PickleRef> peek(PickleRef container, size_t limit) const;
  /// The integers of a tuple of at most kMaxPickleRank that are not negative.
  bool readExtents(PickleRef tuple, std::vector<int64_t> &out, const char *what);
  bool isGlobal(PickleRef ref, std::string_view module, std::string_view name) const;
  PickleKind kindOf(PickleRef ref) const { return tables.nodes[ref].kind; }

  bool fail(std::string text);
  /// Pieces of `children` instead of chains.
  void flatten();

  PickleTables &tables;
  size_t position = 0;
  bool stopped = false;
  std::vector<PickleRef> stack, memo;
  std::vector<size_t> marks; ///< heights of the stack
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FORMATS_PICKLEMACHINE_H
