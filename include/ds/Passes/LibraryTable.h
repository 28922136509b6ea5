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
  bool isOpen;  ///< params[0], where it is there and not 0, lets indices of other parts of the dimension
                ///< through

  /// Whether a call with these params takes any index.
  bool isOpenIn(ArrayRef<Attribute> params) const {
    return isOpen && !params.empty() && cast<IntegerAttr>(params[0]).getInt() != 0;
  }
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
