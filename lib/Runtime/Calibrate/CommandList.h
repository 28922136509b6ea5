//===- CommandList.h - A program of single library commands ----------------------===//
#ifndef DS_LIB_RUNTIME_CALIBRATE_COMMANDLIST_H
#define DS_LIB_RUNTIME_CALIBRATE_COMMANDLIST_H

#include "ds/Runtime/Program/Program.h"

#include <utility>
#include <vector>

namespace ds::rt {

/// Some library commands on common buffers, each of which starts where the last one ends.
class CommandList {
public:
  /// A packed buffer; `ids` of i64 with a limit hold numbers below it.
  uint32_t buffer(DType dtype, std::vector<int64_t> shape, int64_t idLimit = 0);
  /// The memory of `other` in another shape of at most its size.
  uint32_t alias(uint32_t other, std::vector<int64_t> shape);
  /// A window of `other` from its first element on, with other strides.
  uint32_t window(uint32_t other, std::vector<int64_t> shape, std::vector<int64_t> strides);
  /// Adds a command; returns its index.
  uint32_t call(LibraryFn fn, std::vector<uint32_t> operands, std::vector<int64_t> params);

  /// Bytes of the elements of one command's operands, each operand counted once.
  uint64_t bytes(uint32_t command) const;

protected:
  /// The operands of a command.
  std::vector<const Buffer *> operandsOf(const Command &command) const;

  Program program;
  std::vector<std::pair<uint32_t, int64_t>> ids; ///< buffer and limit
  uint64_t used = 0;                             ///< bytes of all buffers
  uint64_t alignment = 64;                       ///< bytes, of each
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CALIBRATE_COMMANDLIST_H
