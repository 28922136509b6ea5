//===- LibraryTable.h - What the compiler knows of library functions -------------===//
#ifndef DS_PASSES_LIBRARYTABLE_H
#define DS_PASSES_LIBRARYTABLE_H

#include "ds/Dialect/Ds.h"
#include "ds/Runtime/Program/Program.h"

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace mlir::ds {

/// Which operand of a library function holds indices into which dimension of which other operand.
struct IndexUse {
  unsigned ids, table;
  int64_t dim;
  bool ignores; ///< params[0] is a value that is skipped
};

/// A function that `ds.call` may name. Its name is the program's own, rt::spell(fn).
struct LibraryEntry {
  ::ds::rt::LibraryFn fn;
  unsigned minBuffers, maxBuffers;
  std::optional<IndexUse> indices;
};

/// The function that `callee` names, or null.
const LibraryEntry *findLibraryFunction(llvm::StringRef callee);

/// Whether `call` runs `fn`.
bool isCallOf(CallOp call, ::ds::rt::LibraryFn fn);

} // namespace mlir::ds

#endif // DS_PASSES_LIBRARYTABLE_H
