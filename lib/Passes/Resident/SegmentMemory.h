//===- SegmentMemory.h - What a segment's values take, once it is known what a kernel is --===//
//
// A function whose regions are taken apart (OpenRegions.h) is a list of commands: a region of ops that one
// kernel computes, a library call, a collective, a join. What leaves a region or a call lies in memory, from
// the command that makes it to the last that reads it; what does not never does. Views share their operand's
// memory, and the parts of a join lie in the join; a result takes the place of an operand that ends there,
// and of a state that it becomes. What forward makes is followed twice: to its last reader in forward, and to
// the last one in backward, be it through ops that may be recomputed.
//
// Example: a row-wise norm and the product that reads it, of forward
//
//   moment 0   region {%m = reduce %x; %r = rsqrt %m; %n = mul %x, %r; %y = convert %n}    leave: %r, %y
//   moment 1   %h = matmul %y, %w
//
// %r is read by backward: 4 bytes a row from moment 0 on. %y ends at moment 1, unless backward reads it too.
// %n is in no memory; kept for backward it would be, from moment 0 on.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_SEGMENTMEMORY_H
#define DS_LIB_PASSES_RESIDENT_SEGMENTMEMORY_H

#include "Fusing/OpenRegions.h"
#include "RecomputeRules.h"
#include "ds/Analysis/Memory/StepMemory.h"

#include <limits>
#include <memory>

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

/// The tensor that `value` is, in whatever space; null where it is none.
RankedTensorType tensorOf(Value value);

/// Bytes of that tensor.
int64_t byteSize(Value value);

/// Whether what `maker` gives, of forward, is brought again rather than kept for what backward recomputes: it
/// is a parameter that was gathered, or loaded.
bool isBroughtAgain(Operation *maker);

/// What keeps a rank's part of what `gather` brings, for the gathers that follow; null where nothing does.
LocalShardOp findPartOf(AllGatherOp gather);

/// Memory that a value and its views share. Moments are those of the function.
struct ValueMemory {
  Value value; ///< that is not a view
  Space space = Space::Device;
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
  bool isRead = false;              ///< by an op of another work
  bool isReadByCall = false;        ///< by a call or join, so that it must be in memory to be recomputed
  SmallVector<uint32_t, 2> kernels; ///< moments of the regions that read it
  // By backward; also through what may be recomputed, and there by whoever recomputes that.
  uint32_t firstRead = std::numeric_limits<uint32_t>::max(), lastRead = 0;
};

/// The commands of one segment, and the memory that its values lie in: what is the same whatever may be
/// recomputed. It is found once, and each SegmentMemory begins with a copy of its memories.
class SegmentCommands {
public:
  /// Of `func`, of which `regions` says what one kernel computes. What a region of the host gives is in the
  /// host's memory, and what it needs inside is not counted; where such regions are dissolved, `elsewhere`
  /// says which tensors are not on the device.
  SegmentCommands(func::FuncOp func, const OpenRegions &regions,
                  DenseMap<Value, Space> elsewhere = DenseMap<Value, Space>());

  /// The memory that `value` lies in; none of arguments and constants.
  std::optional<uint32_t> find(Value value) const;
  uint32_t momentOf(Operation *op) const { return moments.lookup(op); }
  /// formOf, which every reader of a value asks for again.
  OpForm knownForm(Operation &op) const { return forms.at(&op); }

  func::FuncOp func;
  const OpenRegions &regions;
  /// What each command computes, by moment: an op, or those of a region.
  std::vector<SmallVector<Operation *, 1>> commands;
  /// As readers of the same direction leave it, and those of backward itself.
  std::vector<ValueMemory> memories;

private:
  void addOp(Operation &op);
  void addResult(OpResult result, OpForm form);
  void addReads(Operation &op);
  void readBy(Operation &op, OpForm form, Value operand, ValueMemory &memory);

  DenseMap<Value, Space> elsewhere;
  DenseMap<Value, uint32_t> indices; ///< into memories
  DenseMap<Operation *, uint32_t> moments;
  DenseMap<Operation *, OpForm> forms;
  DenseMap<Value, bool> madeInState; ///< of values that were asked about
};

/// The memory of one segment's values.
class SegmentMemory {
public:
  /// Of the segment `of`, whose states are among `symbols`. `rules` outlive this.
  SegmentMemory(std::shared_ptr<const SegmentCommands> of, const RecomputeRules &rules,
                const SymbolTable &symbols);

  /// Of the memory that `value` lies in; none of arguments and constants.
  std::optional<uint32_t> find(Value value) const { return described->find(value); }
  uint32_t momentOf(Operation *op) const { return described->momentOf(op); }
  /// The memory that memory `index` lies in, be it through several joins; itself where it lies in none.
  uint32_t wholeOf(uint32_t index) const;
  /// What memory `index` takes until it was read at `end`, of its Space by number; nothing where it lies in
  /// other memory.
  std::optional<::ds::analysis::MemoryHold> holdUntil(uint32_t index, uint32_t end) const;
  /// What the values take of each Space if each is read where it says, and nothing is recomputed or moved.
  ::ds::analysis::StepMemory getMemory() const;
  /// Whether what is recomputed reads memory `index` before backward itself does.
  bool isReadAgainFirst(uint32_t index) const {
    return memories[index].firstRead < described->memories[index].firstRead;
  }
  /// What each command computes, by moment: an op, or those of a region.
  ArrayRef<SmallVector<Operation *, 1>> commands() const { return described->commands; }

  std::vector<ValueMemory> memories;

private:
  void noteCalls(Operation &op);
  void followReads(Operation &op);
  void followRead(Operation &op, Value operand);
  void followRepeats(Operation &op, ValueMemory &memory);

  std::shared_ptr<const SegmentCommands> described; ///< whatever may be recomputed
  const RecomputeRules &rules;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_SEGMENTMEMORY_H
