//===- LiveCount.h - What a function holds, counted before and behind its buffers ---===//
//
// What is kept, recomputed and moved is chosen by a count of what each value takes
// (Resident/SegmentMemory.h), and bufferisation gives them memory. Both have rules for who lies where:
// results in the place of operands, parts in what they are joined to, views, states. That the two are the
// same rules is counted, each time and of each space: the most that is live before there are buffers, and
// with them. Where
// bufferisation has to copy (to pack what strides cannot say, or into a state that is still read) the count
// knows nothing of it, and is not compared. Collectives and copies under way, workspaces, what lies
// between rows and pieces of host memory through which storage is reached come later.
//
// Example: the last segment of a GPT of 6 layers of width 256 (16 samples of 128 tokens, f32) holds
// 208,478,208 bytes beside its states where the product that makes the head's gradient runs; before it has
// buffers and with them.
//
//===---------------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_BUFFERS_LIVECOUNT_H
#define DS_LIB_PASSES_BUFFERS_LIVECOUNT_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <array>

namespace mlir::ds {

/// The most bytes that are live at once, of each Space by number.
using LiveBytes = std::array<int64_t, getMaxEnumValForSpace() + 1>;

/// What the values of `func` take, which is fused and in order, but for states and inputs. Its regions of the
/// host are dissolved, and what is not on the device is `elsewhere`.
LiveBytes countValues(func::FuncOp func, const DenseMap<Value, Space> &elsewhere, const SymbolTable &symbols);

/// The same of the allocations of `func`, which has buffers and one stream: from the first command that
/// touches one to the last. Those of `staging` are no values.
LiveBytes countAllocations(func::FuncOp func, const DenseSet<Operation *> &staging);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_BUFFERS_LIVECOUNT_H
