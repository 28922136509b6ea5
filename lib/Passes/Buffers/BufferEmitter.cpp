//===- BufferEmitter.cpp - Makes allocations, views and copies ---------------------===//
#include "BufferEmitter.h"

#include "ds/Passes/ScheduledFunction.h"
#include "ds/Runtime/Program/Program.h"

using namespace mlir;
using namespace mlir::ds;

void mlir::ds::alignToUnit(AllocOp alloc) { alloc.setAlignment(::ds::rt::kStorageUnit); }

/// The strides of dimensions of size 1 say nothing: what was reshaped and what was cut out may differ in
/// them.
bool mlir::ds::isSameWindow(Value a, Value b) {
  if (a == b)
    return true;
  auto first = a.getDefiningOp<ViewOp>(), second = b.getDefiningOp<ViewOp>();
  if (!first || !second || first.getSource() != second.getSource() ||
      first->getAttrDictionary() != second->getAttrDictionary())
    return false;
  BufferType left = bufferType(a), right = bufferType(b);
  return left.getTensor() == right.getTensor() && left.getSpace() == right.getSpace() &&
         llvm::all_of(llvm::zip_equal(left.getTensor().getShape(), left.getStrides(), right.getStrides()),
                      [](auto dim) { return std::get<0>(dim) == 1 || std::get<1>(dim) == std::get<2>(dim); });
}

void BufferEmitter::begin(Operation *op) {
  builder.setInsertionPoint(op);
  listener.follow(op);
  space = op->getNumResults() > 0 ? table.spaceOf(op->getResult(0)) : Space::Device;
}

Value BufferEmitter::createView(Value source, const StridedView &view, Location loc) {
  BufferType from = bufferType(source);
  auto type = BufferType::get(builder.getContext(), from.getTensor().clone(view.shape), view.strides,
                              from.getSpace());
  if (type == from && view.offset == 0 && !view.shifts)
    return source;
  // Views of views name the root, so that every buffer is one step from its memory.
  int64_t offset = view.offset;
  ShiftsAttr shifts = view.shifts;
  if (auto outer = source.getDefiningOp<ViewOp>()) {
    shifts = addShifts(outer.getShiftsAttr(), shifts);
    source = outer.getSource();
    offset += outer.getOffset();
    if (type == source.getType() && offset == 0 && !shifts)
      return source;
  }
  Value result = builder.create<ViewOp>(loc, type, source, offset, shifts);
  table.addView(result, source);
  return result;
}

Value BufferEmitter::toContiguous(Value buffer, Location loc) {
  return bufferType(buffer).isContiguous() ? buffer : toPrivate(buffer, loc);
}

Value BufferEmitter::toPrivate(Value buffer, Location loc) {
  hasCopied = true;
  Value packed = allocate(bufferType(buffer).getTensor(), AllocCategory::Activations, loc,
                          bufferType(buffer).getSpace());
  copy(buffer, packed, loc);
  return packed;
}

void BufferEmitter::copy(Value from, Value to, Location loc) {
  builder.create<CallOp>(loc, ::ds::rt::LibraryFn::Copy, ValueRange{from, to}, ArrayRef<int64_t>{1},
                         builder.getArrayAttr({}), streamFor(bufferType(to).getSpace()));
}

Value BufferEmitter::allocate(RankedTensorType type, AllocCategory category, Location loc, Space in) {
  auto alloc = builder.create<AllocOp>(loc, BufferType::getContiguous(type, in), category);
  if (in == Space::Nvme)
    alignToUnit(alloc);
  return alloc;
}
