//===- CudaBuilder.cpp - What the forms of CUDA kernels share ------------------===//

#include "CudaBuilder.h"
#include "ReductionMath.h"

namespace mlir::ds::codegen {

/// Warps of a block at most.
static constexpr int64_t kWarps = 32;

/// Bytes of one value in an exchange.
static constexpr int64_t kSlotBytes = 8;

CudaBuilder::CudaBuilder(const LoopNest &nest, const CudaMapping &mapping, CudaThread &thread,
                         ModuleOp module, ScopedBuilder &scoped, const CudaOperands &operands)
    : nest(nest), mapping(mapping), thread(thread), operands(operands), module(module), s(scoped),
      b(scoped.b), nodes(s, module, Value(), mapping.lanes) {
  nodes.position.setNest(&nest);
  nodes.hasNativeBf16 = thread.hasNativeBf16();
  setOperands(nodes);
  own.threadIndex = thread.threadIndex(b, s.loc);
  own.blockIndex = thread.blockIndex(b, s.loc);
  own.blockCount = thread.blockCount(b, s.loc);
}

void CudaBuilder::setOperands(NodeEmitter &emitter) {
  unsigned given = 0;
  for (auto [number, alignment] : llvm::enumerate(operands.alignments))
    if (operands.isGiven(number))
      emitter.memory.setBuffer(number, thread.operand(b, s.loc, given++), alignment);
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

Value CudaBuilder::mul(Value x, int64_t factor) {
  return factor == 1 ? x : b.create<arith::MulIOp>(s.loc, x, s.constant(factor)).getResult();
}

Value CudaBuilder::divide(Value x, int64_t divisor, int64_t bound, bool remainder) {
  if (divisor == 1)
    return remainder ? s.constant(0) : x;
  bool narrow = bound <= int64_t(1) << 31;
  Type i32 = b.getI32Type();
  Value by = narrow ? b.create<arith::ConstantOp>(s.loc, b.getI32IntegerAttr(divisor)) : s.constant(divisor);
  if (narrow)
    x = b.create<arith::TruncIOp>(s.loc, i32, x);
  Value result = remainder ? b.create<arith::RemUIOp>(s.loc, x, by).getResult()
                           : b.create<arith::DivUIOp>(s.loc, x, by).getResult();
  return narrow ? b.create<arith::ExtUIOp>(s.loc, b.getI64Type(), result).getResult() : result;
}

Value CudaBuilder::isBelow(Value x, int64_t bound) { return isBelow(x, s.constant(bound)); }

Value CudaBuilder::isBelow(Value x, Value bound) {
  return b.create<arith::CmpIOp>(s.loc, arith::CmpIPredicate::slt, x, bound);
}

Value CudaBuilder::both(Value x, Value y) {
  return x && y ? b.create<arith::AndIOp>(s.loc, x, y).getResult() : x ? x : y;
}

void CudaBuilder::setDims(Value position, bool reducedOnes) {
  SmallVector<unsigned> dims;
  int64_t bound = 1;
  for (auto [dim, size] : llvm::enumerate(nest.space.sizes))
    if (nest.space.isReduced(dim) == reducedOnes && nest.vectorDim != dim) {
      dims.push_back(dim);
      bound *= std::max<int64_t>(size, 1);
    }
  for (size_t k = dims.size(); k-- > 0;) {
    int64_t size = std::max<int64_t>(nest.space.sizes[dims[k]], 1);
    nodes.position.setDim(dims[k], k == 0 ? position : remainder(position, size, bound));
    if (k > 0)
      position = quotient(position, size, bound);
  }
}

//===----------------------------------------------------------------------===//
// Totals of one thread
//===----------------------------------------------------------------------===//

SmallVector<Value> CudaBuilder::neutralTotals(ArrayRef<Node *> level) {
  SmallVector<Value> totals;
  for (Node *reduction : level) {
    Value neutral = b.create<arith::ConstantOp>(s.loc, neutralElement(b, reduction));
    totals.push_back(nest.vectorDim ? nodes.lanes.splat(neutral) : neutral);
  }
  return totals;
}

void CudaBuilder::accumulate(ArrayRef<Node *> level, unsigned copy, Value valid,
                             SmallVectorImpl<Value> &totals) {
  for (auto [reduction, total] : llvm::zip_equal(level, totals)) {
    Value x = nodes.toCompute(nodes.emitVector(reduction->operands[0], copy), reduction->type);
    Value sum = combine(b, s.loc, reduction, total, x);
    total = valid ? b.create<arith::SelectOp>(s.loc, valid, sum, total).getResult() : sum;
  }
}

//===----------------------------------------------------------------------===//
// Totals of several threads
//===----------------------------------------------------------------------===//

/// The value of the thread whose number differs in `mask`, by words of 32 bits.
Value CudaBuilder::shuffle(Value value, unsigned mask) {
  Type type = value.getType(), i32 = b.getI32Type(), i64 = b.getI64Type();
  unsigned width = type.getIntOrFloatBitWidth();
  Type integer = b.getIntegerType(width);
  Value bits = isa<FloatType>(type) ? b.create<arith::BitcastOp>(s.loc, integer, value).getResult() : value;
  if (width == 64) {
    Value shift = s.constant(32);
    Value low = b.create<arith::TruncIOp>(s.loc, i32, bits);
    Value high = b.create<arith::TruncIOp>(s.loc, i32, b.create<arith::ShRUIOp>(s.loc, bits, shift));
    low = b.create<arith::ExtUIOp>(s.loc, i64, thread.shuffle(b, s.loc, low, mask));
    high = b.create<arith::ExtUIOp>(s.loc, i64, thread.shuffle(b, s.loc, high, mask));
    bits = b.create<arith::OrIOp>(s.loc, low, b.create<arith::ShLIOp>(s.loc, high, shift));
  } else {
    if (width < 32)
      bits = b.create<arith::ExtUIOp>(s.loc, i32, bits);
    bits = thread.shuffle(b, s.loc, bits, mask);
    if (width < 32)
      bits = b.create<arith::TruncIOp>(s.loc, integer, bits);
  }
  return isa<FloatType>(type) ? b.create<arith::BitcastOp>(s.loc, type, bits).getResult() : bits;
}

/// A butterfly: every thread adds the same pairs in the same order, if not the same way round, and all
/// combinations commute.
Value CudaBuilder::acrossWarp(const Node *reduction, Value value, int64_t threads) {
  for (int64_t mask = threads / 2; mask > 0; mask /= 2)
    value = combine(b, s.loc, reduction, value, shuffle(value, mask));
  return value;
}

int64_t exchangeBytes(const LoopNest &nest) {
  return 2 * std::max<size_t>(nest.reductions.size(), 1) * kWarps * kSlotBytes;
}

SmallVector<Value> CudaBuilder::acrossThreads(ArrayRef<Node *> level, SmallVector<Value> values,
                                              int64_t threads) {
  for (auto [reduction, value] : llvm::zip_equal(level, values))
    value = acrossWarp(reduction, value, std::min<int64_t>(threads, 32));
  if (threads <= 32)
    return values;
  // The first thread of each warp hands over; all combine what all warps handed over. The next exchange uses
  // the other half of the memory, so one barrier is enough for each.
  int64_t warps = threads / 32, half = exchangeBytes(nest) / 2;
  Value memory = thread.sharedMemory(b, s.loc, 2 * half);
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  int64_t base = exchanges++ % 2 * half;
  auto slot = [&](size_t k, Value warp) -> Value {
    Value offset = add(mul(warp, kSlotBytes), s.constant(base + int64_t(k) * kWarps * kSlotBytes));
    return b.create<LLVM::GEPOp>(s.loc, pointer, b.getI8Type(), memory, offset);
  };
  Value lane = remainder(own.threadIndex, 32, 1024), warp = quotient(own.threadIndex, 32, 1024);
  Block *exit = s.beginIf(isBelow(lane, 1));
  for (auto [k, value] : llvm::enumerate(values))
    b.create<LLVM::StoreOp>(s.loc, value, slot(k, warp), kSlotBytes);
  s.endIf(exit);
  thread.blockBarrier(b, s.loc);
  // As many lanes as there are warps, rounded up, combine the parts; all such groups of a warp do the same.
  int64_t group = llvm::PowerOf2Ceil(warps);
  Value part = remainder(own.threadIndex, group, 1024), exists = isBelow(part, warps);
  Value from = b.create<arith::SelectOp>(s.loc, exists, part, s.constant(0));
  for (auto [k, reduction] : llvm::enumerate(level)) {
    Value total = b.create<LLVM::LoadOp>(s.loc, values[k].getType(), slot(k, from), kSlotBytes);
    Value neutral = b.create<arith::ConstantOp>(s.loc, neutralElement(b, reduction));
    values[k] = acrossWarp(reduction, b.create<arith::SelectOp>(s.loc, exists, total, neutral), group);
  }
  return values;
}

} // namespace mlir::ds::codegen
