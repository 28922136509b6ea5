//===- PickleMachine.h - The stack machine that pickles are programs of ---------===//
//
// A family of opcodes is one function, which says whether the opcode was of its family; what is wrong is told
// to the fault and ends the reading. The machine knows opcodes alone: PickleStack.h has the bytes and the
// stack, PickleValues.h makes values, PickleCalls.h what would be called.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_FORMATS_PICKLEMACHINE_H
#define DS_LIB_RUNTIME_FORMATS_PICKLEMACHINE_H

#include "PickleCalls.h"
#include "PickleStack.h"

namespace ds::rt {

class PickleMachine {
public:
  explicit PickleMachine(PickleTables &tables)
      : values(tables), input(tables.bytes, fault), stack(fault), calls(values, fault) {}

  /// Reads to STOP. False on a violation; `message` and `at` then say what and where.
  bool run();

  const std::string &message() const { return fault.message; }
  size_t at = 0; ///< offset of the opcode that is carried out

private:
  bool readFixed(uint8_t opcode);     ///< None, truth values, numbers, empty containers
  bool readSized(uint8_t opcode);     ///< texts, bytes, long integers
  bool readContainer(uint8_t opcode); ///< tuples, and adding to lists, dicts and sets
  bool readStack(uint8_t opcode);     ///< marks, memo, frames
  bool readCall(uint8_t opcode);      ///< globals and what would be made of them

  bool push(PickleRef ref);
  bool pushNumber(PickleKind kind, uint64_t word) { return push(values.addNumber(kind, word)); }
  bool pushText(PickleKind kind, size_t lengthWidth);
  bool pushLong(size_t lengthWidth);
  bool pushContainer(PickleKind kind, size_t begin);
  bool extend(PickleKind kind, size_t begin);
  PickleRef itemsOf(PickleRef target, PickleKind kind);
  bool setState();

  PickleFault fault;
  PickleValues values;
  PickleInput input;
  PickleStack stack;
  PickleCalls calls;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FORMATS_PICKLEMACHINE_H
