//===- SegmentMemory.h - What a segment's values will take, before there are kernels --===//
//
// Which values of a function on tensors will lie in memory, from which op to which, is not known before ops
// are fused and buffers given out; but choices must be made before that. This foretells it by what fusion
// does: an elementwise value stays in its kernel unless a library call reads it, or an op that must wait for
// one; views share their operand's memory, and the parts of a join lie in the join; what is added to a
// gradient that micro-steps have summed up, and that ends here, is in its place. What forward makes is
// followed twice: to its last reader in forward, and to the last one in backward, be it through ops that may
// be recomputed.
//
// Estimates: an op's kernel runs where the op stands, and reordering saves nothing. The plan that is made in
// the end says by how much this was off.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_SEGMENTMEMORY_H
#define DS_LIB_PASSES_RESIDENT_SEGMENTMEMORY_H

#include "HostPlacement.h"
#include "RecomputeRules.h"

#include <limits>
#include <set>

namespace mlir::ds {

/// What becomes of an op.
enum class OpForm {
  Call,  ///< a library call or a collective: its results are in memory
  Fused, ///< part of a kernel: its results are in memory where another kernel or a call reads them
  Free,  ///< part of each kernel that reads it: never in memory for a kernel
  View,  ///< no work and no memory
  Join,  ///< a copy, or the place in which its operands are made
};

OpForm formOf(Operation *op);

/// The value that `value` is a view of, be it through several; itself where it is none.
Value rootOf(Value value);

/// What keeps a rank's part of what `gather` brings, for the gathers that follow; null where nothing does.
LocalShardOp findPartOf(AllGatherOp gather);

/// Memory that a value and its views share. Moments are those of the function.
struct ValueMemory {
  Value value; ///< that is not a view
  int64_t bytes = 0;
  uint32_t begin = 0; ///< made here
  uint32_t end = 0;   ///< last read by the same direction (forward, or all that comes later)
  bool isForward = false;
  bool isStored = false;  ///< in memory even if backward does not read it
  bool isInPlace = false; ///< it may take the memory of an operand that ends where it begins
  bool isInState = false; ///< it takes the memory of a state that ends with the function, all the time
  bool isSent = false;    ///< to the host, which reads it
  int32_t joined = -1;    ///< the memory, of a join or of what ranks add up, in which it lies
  // Of what forward makes: how the rest of the segment reads it.
  bool isRead = false;        ///< by an op of another work
  bool isReadByCall = false;  ///< by a call or join, so that it must be in memory to be recomputed
  std::set<uint32_t> kernels; ///< levels of the kernels that read it
  // By backward; also through what may be recomputed, and there by whoever recomputes that.
  uint32_t firstRead = std::numeric_limits<uint32_t>::max(), lastRead = 0;
};

/// The memory of one segment's values.
class SegmentMemory {
public:
  /// Of `func` with the ops on the host that `placement` has there; they take nothing of the device. Its
  /// states are among `symbols`.
  SegmentMemory(func::FuncOp func, const RecomputeRules &rules, const HostPlacement &placement,
                const SymbolTable &symbols);

  /// Of the memory that `value` lies in; none of arguments and constants.
  std::optional<uint32_t> find(Value value) const;
  uint32_t momentOf(Operation *op) const { return moments.lookup(op); }

  std::vector<ValueMemory> memories;
  std::vector<Operation *> ops; ///< by moment
  /// Bytes of what each op reads of the host's, by moment; those that read nothing of it are not there.
  DenseMap<uint32_t, int64_t> loadedBytes;

private:
  /// formOf, which every reader of a value asks for again.
  OpForm knownForm(Operation &op) const { return forms.at(&op); }
  void addLoads(Operation &op);
  void addOp(Operation &op);
  void addResult(OpResult result, OpForm form, uint32_t level);
  void addReads(Operation &op);
  void addRead(Operation &op, OpForm form, Value operand);
  void followReads(Operation &op);
  void readBy(Operation &op, OpForm form, ValueMemory &memory);
  void followRead(Operation &op, OpForm form, Value operand);
  void followRepeats(Operation &op, ValueMemory &memory);
  void join(Operation &op);
  bool endsAt(Operation &op, const ValueMemory &memory) const;
  void shareCollective(Operation &op);
  void findEnding(func::FuncOp func, const SymbolTable &symbols);
  void markInPlace(Operation &op);

  const RecomputeRules &rules;
  const HostPlacement *placement;    ///< while the memory is made
  DenseMap<Value, uint32_t> indices; ///< into memories
  DenseMap<Value, uint32_t> levels;  ///< calls on the longest way to a value
  DenseMap<Operation *, uint32_t> moments;
  DenseMap<Operation *, OpForm> forms;
  DenseSet<Value> ending; ///< arguments: states of the device that end with the function, at their only use
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_SEGMENTMEMORY_H
