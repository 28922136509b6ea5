//===- LibraryTable.h - What the compiler knows of library functions -------------===//
#ifndef DS_PASSES_LIBRARYTABLE_H
#define DS_PASSES_LIBRARYTABLE_H

#include "ds/Dialect/Ds.h"

#include <optional>

namespace mlir::ds {

/// Which operand of a library function holds indices into which dimension of which other operand.
struct IndexUse {
  unsigned ids, table;
  int64_t dim;
  bool ignores; ///< params[0] is a value that is skipped
};

/// A function that `ds.call` may name.
struct LibraryEntry {
  unsigned minBuffers, maxBuffers;
  std::optional<IndexUse> indices;
};

/// What the compiler knows of `fn`.
const LibraryEntry &entryOf(::ds::rt::LibraryFn fn);

} // namespace mlir::ds

#endif // DS_PASSES_LIBRARYTABLE_H
