//===- UpdateWindows.h - Memory of the host that windows of updates take in turn -----===//
//
// Where each window of a chain's own buffers lies. What storage moves goes through sets of slots in turn,
// each as large as its largest window in whole units of storage; what goes on to the device lies in a ring,
// where each window begins behind the last and the first place comes again behind the end. With two sets,
// windows of 1024, 1024 and 452 floats take slots 0, 1 and 0 of 4096 bytes each; in a ring of 3072 elements
// they begin at 0, 1024 and 2048, and a fourth of 1024 at 0 again.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_STREAMS_UPDATEWINDOWS_H
#define DS_LIB_PASSES_STREAMS_UPDATEWINDOWS_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::ds {

/// Elements that windows of a ring begin at multiples of.
inline constexpr int64_t kRingStep = 64;

/// The memory of one function's updates, which `builder` makes.
class UpdateWindows {
public:
  /// `sets` slots for each buffer; rings with room for `ringElements`.
  UpdateWindows(func::FuncOp func, OpBuilder &builder, unsigned sets, int64_t ringElements)
      : func(func), builder(builder), sets(sets), ringElements(ringElements) {}

  /// A window of `count` elements in a ring for what `own` holds, number `index` of its type in its chain.
  Value inRing(Value own, unsigned index, int64_t count);
  /// The same in a slot of the set whose turn it is.
  Value inSlot(Value own, unsigned index, int64_t count);
  /// The next windows take the next set.
  void nextTurn() { ++turn; }
  /// Leaves each slot as large as its largest window, in whole units, and each ring as far as it was used.
  void trim();

private:
  using Key = std::pair<Type, unsigned>; ///< element type, number
  struct Slots {
    SmallVector<AllocOp> sets;
    int64_t elements = 0; ///< of the largest window
  };
  struct Ring {
    AllocOp place;
    int64_t next = 0, end = 0; ///< elements: where the next window begins, how far any reached
  };

  AllocOp allocate(Value like, int64_t elements);

  func::FuncOp func;
  OpBuilder &builder;
  unsigned sets, turn = 0;
  int64_t ringElements;
  llvm::MapVector<Key, Slots> slots;
  llvm::MapVector<Key, Ring> rings;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STREAMS_UPDATEWINDOWS_H
