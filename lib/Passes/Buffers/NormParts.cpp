//===- NormParts.cpp - The norm's squares on the host, a gradient at a time -----------===//
#include "NormParts.h"

#include "ds/Dialect/Work.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Runtime/Program/Library.h"

using namespace mlir;
using namespace mlir::ds;

static RankedTensorType tensorOf(Value buffer) { return cast<BufferType>(buffer.getType()).getTensor(); }

/// Whether `op` sums up the squares of several tensors on the host at once.
static bool isNorm(CallOp op) {
  constexpr size_t kOfOne = 2; // the tensor and the result
  return op.getCallee() == ::ds::rt::LibraryFn::SumOfSquares && op.getStream() == StreamKind::Host &&
         op.getBuffers().size() > kOfOne && op.getParams().empty() &&
         llvm::all_of(op.getBuffers().drop_back(),
                      [](Value input) { return tensorOf(input).getNumElements() > 0; });
}

namespace {
/// Who has last written each byte of the host's memory, in the order of the commands.
class Writers {
public:
  void note(Operation *command) {
    for (const BufferAccess &access : accessesOf(command))
      if (access.isWrite)
        written[access.root].push_back({access, command});
  }
  /// The last command that has written a byte of `buffer`; null where none has.
  Operation *lastOf(Value buffer) const {
    BufferAccess read = windowOf(buffer);
    read.isRead = true;
    auto found = written.find(read.root);
    if (found != written.end())
      for (const auto &[access, command] : llvm::reverse(found->second))
        if (access.conflictsWith(read))
          return command;
    return nullptr;
  }

private:
  DenseMap<Value, SmallVector<std::pair<BufferAccess, Operation *>>> written;
};
} // namespace

/// Memory of the host for the sums of the blocks of `gradient`.
static Value allocateSums(func::FuncOp func, Value gradient) {
  OpBuilder builder = OpBuilder::atBlockBegin(&func.getBody().front());
  const int64_t count = llvm::divideCeil(tensorOf(gradient).getNumElements(), ::ds::rt::kSquaresBlock);
  auto type = BufferType::getContiguous(RankedTensorType::get(count, builder.getF32Type()), Space::Host);
  return builder.create<AllocOp>(gradient.getLoc(), type, AllocCategory::Workspace);
}

/// Sums up the blocks of `gradient` behind `writer`, or in front of `norm` where nothing here writes it.
static Value sumBlocks(CallOp norm, Value gradient, Operation *writer) {
  Value sums = allocateSums(norm->getParentOfType<func::FuncOp>(), gradient);
  OpBuilder builder(norm);
  if (writer)
    builder.setInsertionPointAfter(writer);
  auto call = builder.create<CallOp>(norm.getLoc(), norm.getCallee(), ValueRange{gradient, sums},
                                     ArrayRef<int64_t>{1}, builder.getArrayAttr({}), norm.getStream());
  copyWork(writer && getWork(writer) ? writer : norm.getOperation(), call);
  return sums;
}

static void takeApart(CallOp norm, const Writers &writers) {
  SmallVector<Value> buffers;
  DenseMap<Value, Value> known; // two parameters may have one gradient
  for (Value input : norm.getBuffers().drop_back()) {
    Value &sums = known[input];
    if (!sums)
      sums = sumBlocks(norm, input, writers.lastOf(input));
    buffers.push_back(sums);
  }
  buffers.push_back(norm.getBuffers().back());
  OpBuilder builder(norm);
  auto total = builder.create<CallOp>(norm.getLoc(), norm.getCallee(), buffers,
                                      ArrayRef<int64_t>{static_cast<int64_t>(buffers.size()) - 1},
                                      builder.getI64ArrayAttr({1}), norm.getStream());
  copyWork(norm, total);
  norm.erase();
}

void mlir::ds::takeNormsApart(func::FuncOp func) {
  Writers writers;
  bool areThere = false;
  for (Operation &op : llvm::make_early_inc_range(func.getBody().front())) {
    if (auto call = dyn_cast<CallOp>(op); call && isNorm(call)) {
      takeApart(call, writers);
      areThere = true;
    } else if (isa<ScheduledOpInterface>(op)) {
      writers.note(&op);
    }
  }
  if (areThere)
    placeBuffers(func);
}
