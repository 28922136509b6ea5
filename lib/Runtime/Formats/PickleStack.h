//===- PickleStack.h - The bytes and the stack of a pickle that is read ---------===//
#ifndef DS_LIB_RUNTIME_FORMATS_PICKLESTACK_H
#define DS_LIB_RUNTIME_FORMATS_PICKLESTACK_H

#include "PickleValues.h"

namespace ds::rt {

/// The pickle's bytes, from front to back. What is taken beyond the end is a fault, and false.
class PickleInput {
public:
  PickleInput(const std::string &bytes, PickleFault &fault) : bytes(bytes), fault(fault) {}

  bool take(size_t count, std::string_view &out);
  bool takeLine(std::string_view &out);
  bool takeNumber(size_t width, uint64_t &value);
  /// A text behind its length, which has `lengthWidth` bytes.
  bool takeSized(size_t lengthWidth, std::string_view &out);
  size_t left() const { return bytes.size() - position; }

  const std::string &bytes;
  size_t position = 0;

private:
  PickleFault &fault;
};

/// The stack with its marks, and what is remembered of it by number.
class PickleStack {
public:
  explicit PickleStack(PickleFault &fault) : fault(fault) {}

  void push(PickleRef ref) { refs.push_back(ref); }
  /// A failed pop gives the node None.
  PickleRef pop();
  PickleRef top();
  void mark() { marks.push_back(refs.size()); }
  bool popMark(size_t &begin);
  /// Takes the value on top, or a mark where that is there.
  void drop();
  /// The height of the last mark: what lies below is not to be taken.
  size_t floor() const { return marks.empty() ? 0 : marks.back(); }
  bool isMarked() const { return !marks.empty(); }

  /// Remembers what is on top. Picklers number what they remember as they write it, so that no honest number
  /// reaches `limit`, the file's size.
  bool remember(uint64_t index, size_t limit);
  bool recall(uint64_t index);
  size_t remembered() const { return memo.size(); }

  std::vector<PickleRef> refs;

private:
  PickleFault &fault;
  std::vector<PickleRef> memo;
  std::vector<size_t> marks; ///< heights of the stack
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FORMATS_PICKLESTACK_H
