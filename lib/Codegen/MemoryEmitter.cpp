//===- MemoryEmitter.cpp - Loads and stores at the current loop position ---------===//

#include "MemoryEmitter.h"

#include "NarrowFloats.h"

#include <numeric>

namespace mlir::ds::codegen {

/// Tables are numbered behind all buffers.
static constexpr unsigned kFirstTable = 1u << 20;

Type memoryType(Type type) {
  if (type.isInteger(1))
    return IntegerType::get(type.getContext(), 8);
  if (isNarrow(type))
    return IntegerType::get(type.getContext(), 16);
  if (auto integer = dyn_cast<IntegerType>(type))
    return IntegerType::get(type.getContext(), integer.getWidth());
  return type;
}

static unsigned byteSize(Type type) { return memoryType(type).getIntOrFloatBitWidth() / 8; }

/// Key of a buffer's pointer in the memo: numbers are offset so that none is null.
static const void *bufferKey(unsigned number) {
  return reinterpret_cast<const void *>(uintptr_t(number) * 2 + 1);
}

Value MemoryEmitter::bufferPointer(unsigned number) {
  if (Value known = s.lookup(bufferKey(number), kSplat))
    return known;
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value loaded = s.at(0, [&] {
    Value slot =
        b.create<LLVM::GEPOp>(s.loc, pointer, pointer, buffers, ArrayRef<LLVM::GEPArg>{int32_t(number)});
    return b.create<LLVM::LoadOp>(s.loc, pointer, slot).getResult();
  });
  s.remember(0, bufferKey(number), kSplat, loaded);
  return loaded;
}

/// The constant's elements as they lie in memory, as a rank-1 attribute.
static DenseElementsAttr memoryElements(DenseElementsAttr elements) {
  Type type = memoryType(elements.getElementType());
  auto flat = RankedTensorType::get({elements.getNumElements()}, type);
  if (isNarrow(elements.getElementType()))
    return cast<DenseElementsAttr>(elements.reshape(flat.clone(elements.getElementType()))).bitcast(type);
  if (isa<FloatType>(type))
    return elements.reshape(flat);
  SmallVector<APInt> values;
  for (const APInt &value : elements.getValues<APInt>())
    values.push_back(value.zextOrTrunc(type.getIntOrFloatBitWidth()));
  return DenseElementsAttr::get(flat, values);
}

Value MemoryEmitter::tablePointer(const Node *node) {
  if (Value known = s.lookup(node->op, kSplat))
    return known;
  auto elements = memoryElements(cast<DenseElementsAttr>(cast<ds::ConstantOp>(node->op).getValue()));
  // Kernels that name the same constant share it: attributes are unique.
  std::string name;
  for (auto global : module.getOps<LLVM::GlobalOp>())
    if (global.getValueOrNull() == elements)
      name = global.getSymName().str();
  if (name.empty()) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    name = ("table_" + Twine(llvm::range_size(module.getOps<LLVM::GlobalOp>()))).str();
    auto array = LLVM::LLVMArrayType::get(elements.getElementType(), elements.getNumElements());
    b.create<LLVM::GlobalOp>(s.loc, array, /*isConstant=*/true, LLVM::Linkage::Internal, name, elements,
                             /*alignment=*/64);
  }
  Value address = s.at(0, [&] {
    return b.create<LLVM::AddressOfOp>(s.loc, LLVM::LLVMPointerType::get(b.getContext()), name).getResult();
  });
  s.remember(0, node->op, kSplat, address);
  return address;
}

Value MemoryEmitter::elementPointer(Value base, Type type, Value offset) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  if (isa<VectorType>(offset.getType()))
    pointer = lanes.vectorOf(pointer);
  return b.create<LLVM::GEPOp>(s.loc, pointer, memoryType(type), base, offset);
}

/// True when neither the index nor what it is made of leaves 31 bits, so that 32-bit lanes do.
static bool fitsIn31Bits(const IndexContext &context, Index index) {
  constexpr int64_t limit = int64_t(1) << 30;
  auto fits = [&](IndexRange r) { return r.low > -limit && r.high < limit; };
  if (!fits(context.range(index)))
    return false;
  return llvm::all_of(index->terms, [&](const IndexTerm &term) {
    IndexRange whole = term.atom->inner ? context.range(term.atom->inner) : context.dimRange(term.atom->dim);
    return std::abs(term.coefficient) < limit && std::abs(term.atom->a) < limit &&
           std::abs(term.atom->b) < limit && fits(whole) &&
           fits({whole.low * term.coefficient, whole.high * term.coefficient}) &&
           (!term.atom->inner || fitsIn31Bits(context, term.atom->inner));
  });
}

Value MemoryEmitter::rowPointer(unsigned number, Value base, Type type, Index rest) {
  if (rest->isConstant() && rest->constant == 0)
    return base;
  // A pointer is known by its buffer and offset; offsets are interned, so the buffer's number picks the
  // variant.
  unsigned variant = kRowPointer + number;
  if (Value known = s.lookup(rest, variant))
    return known;
  // A constant belongs beside the pointer: written here, it might stand behind it.
  Value offset = rest->isConstant() ? Value() : indices.scalar(rest);
  unsigned scope = position.scopeOf(rest->dims, 0);
  Value pointer =
      s.at(scope, [&] { return elementPointer(base, type, offset ? offset : s.constant(rest->constant)); });
  s.remember(scope, rest, variant, pointer);
  return pointer;
}

Value MemoryEmitter::pointerTo(unsigned number, Value base, Type type, Index index, unsigned copy) {
  if (!position.varies(index->dims))
    return rowPointer(number, base, type, index);
  unsigned v = *position.nest().vectorDim;
  if (!isLinearIn(index, v)) {
    Type lane = fitsIn31Bits(position.nest().context, index) ? b.getI32Type() : b.getI64Type();
    return elementPointer(base, type, indices.vector(index, copy, lane));
  }
  int64_t distance = linearCoefficient(index, v);
  IndexContext &context = const_cast<IndexContext &>(position.nest().context);
  Value pointer = rowPointer(number, base, type, context.add(index, context.dim(v), -distance));
  Value placed = position.copyStart(copy), start = placed ? placed : position.dim(v);
  if (distance != 1)
    start = b.create<arith::MulIOp>(s.loc, start, s.constant(distance));
  pointer = elementPointer(pointer, type, start);
  if (copy && !placed)
    pointer = elementPointer(pointer, type, s.constant(copy * lanes.count * distance));
  if (distance == 1)
    return pointer;
  return elementPointer(pointer, type, lanes.numbers(b.getI64Type(), distance));
}

void MemoryEmitter::setBuffer(unsigned number, Value pointer, unsigned alignment) {
  s.remember(s.depth(), bufferKey(number), kSplat, pointer);
  alignments[number] = alignment;
}

/// Bytes of which the address of every vector at `index` is a multiple: vectors start at multiples of
/// `lanes`.
unsigned MemoryEmitter::alignmentOf(unsigned number, Type type, Index index) const {
  auto known = alignments.find(number);
  if (known == alignments.end())
    return byteSize(type);
  uint64_t elements = std::abs(index->constant);
  for (const IndexTerm &term : index->terms) {
    bool isVector = term.atom->kind == IndexAtom::Kind::Dim && position.nest().vectorDim == term.atom->dim;
    elements = std::gcd(elements, uint64_t(std::abs(term.coefficient)) * (isVector ? lanes.count : 1));
  }
  return std::max<uint64_t>(std::gcd(elements * byteSize(type), uint64_t(known->second)), byteSize(type));
}

/// Truth values are bytes in memory.
static Value fromMemory(OpBuilder &b, Location loc, Value value, Type type) {
  if (!type.isInteger(1))
    return value;
  Value zero = b.create<arith::ConstantOp>(loc, b.getZeroAttr(value.getType()));
  return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, value, zero);
}

Value MemoryEmitter::loadAt(Value pointer, Type type, unsigned copy, unsigned alignment) {
  Type element = memoryType(type);
  alignment = alignment ? alignment : byteSize(type);
  Value mask = position.maskOf(copy), value;
  bool gathers = !isa<LLVM::LLVMPointerType>(pointer.getType());
  if (!gathers && !mask) {
    value = b.create<LLVM::LoadOp>(s.loc, lanes.vectorOf(element), pointer, alignment);
  } else {
    Value zero = b.create<arith::ConstantOp>(s.loc, b.getZeroAttr(lanes.vectorOf(element)));
    if (gathers)
      value =
          b.create<LLVM::masked_gather>(s.loc, lanes.vectorOf(element), pointer, mask ? mask : lanes.all(),
                                        ValueRange{zero}, b.getI32IntegerAttr(alignment));
    else
      value = b.create<LLVM::MaskedLoadOp>(s.loc, lanes.vectorOf(element), pointer, mask, ValueRange{zero},
                                           b.getI32IntegerAttr(alignment));
  }
  return fromMemory(b, s.loc, value, type);
}

Value MemoryEmitter::load(const Node *node, unsigned copy) {
  bool isTable = node->kind == Node::Kind::Table;
  Value base = isTable ? tablePointer(node) : bufferPointer(node->buffer);
  unsigned number =
      isTable ? kFirstTable + tables.insert({node->op, tables.size()}).first->second : node->buffer;
  Value pointer = pointerTo(number, base, node->type, node->index, copy);
  if (!position.varies(node->dims)) {
    Value value = b.create<LLVM::LoadOp>(s.loc, memoryType(node->type), pointer, byteSize(node->type));
    return fromMemory(b, s.loc, value, node->type);
  }
  return loadAt(pointer, node->type, copy, alignmentOf(number, node->type, node->index));
}

void MemoryEmitter::storeAt(Value pointer, Type type, Value value, unsigned copy, unsigned alignment) {
  alignment = alignment ? alignment : byteSize(type);
  if (type.isInteger(1)) {
    Type bytes = b.getI8Type();
    if (isa<VectorType>(value.getType()))
      bytes = lanes.vectorOf(bytes);
    value = b.create<arith::ExtUIOp>(s.loc, bytes, value);
  }
  Value mask = position.maskOf(copy);
  if (!isa<VectorType>(value.getType()) || (!mask && isa<LLVM::LLVMPointerType>(pointer.getType()))) {
    b.create<LLVM::StoreOp>(s.loc, value, pointer, alignment);
    return;
  }
  if (isa<LLVM::LLVMPointerType>(pointer.getType()))
    b.create<LLVM::MaskedStoreOp>(s.loc, value, pointer, mask, b.getI32IntegerAttr(alignment));
  else
    b.create<LLVM::masked_scatter>(s.loc, value, pointer, mask ? mask : lanes.all(),
                                   b.getI32IntegerAttr(alignment));
}

void MemoryEmitter::store(const NestOutput &output, Value value, unsigned copy) {
  const Type type = output.value->type;
  Value pointer = pointerTo(output.buffer, bufferPointer(output.buffer), type, output.address, copy);
  storeAt(pointer, type, value, copy, alignmentOf(output.buffer, type, output.address));
}

} // namespace mlir::ds::codegen
