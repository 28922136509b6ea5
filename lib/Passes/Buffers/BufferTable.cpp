//===- BufferTable.cpp - Where each tensor lies, and until when --------------------===//
#include "BufferTable.h"
#include "StridedView.h"

#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

BufferTable::BufferTable(func::FuncOp func, DenseMap<Value, Space> spaces)
    : func(func), spaces(std::move(spaces)) {
  for (auto [index, op] : llvm::enumerate(func.getBody().front()))
    position[&op] = index;
  findLastUses();
}

void BufferTable::findLastUses() {
  auto visit = [&](Value value) {
    unsigned &last = lastUse[value];
    last = 0;
    for (OpOperand &use : value.getUses()) {
      last = std::max(last, position.at(use.getOwner()));
      if (isWindowed(use))
        for (Value window : use.getOwner()->getResults())
          last = std::max(last, lastUse.at(window));
    }
  };
  Block &block = func.getBody().front();
  for (Operation &op : llvm::reverse(block))
    llvm::for_each(op.getResults(), visit);
  for (BlockArgument argument : block.getArguments()) {
    visit(argument);
    if (auto state = func.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), DsDialect::kStateAttr))
      stateLastRead[state] = lastUse[argument];
  }
}

/// All are added at once: a step has thousands.
void BufferTable::addArguments(SymbolTable &symbols) {
  Builder builder(func.getContext());
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attrs;
  auto add = [&](RankedTensorType type, Space home, StringRef attribute, Attribute value) {
    types.push_back(BufferType::getContiguous(type, home));
    attrs.push_back(builder.getDictionaryAttr(builder.getNamedAttr(attribute, value)));
  };
  const unsigned numTensors = func.getNumArguments();
  SmallVector<Attribute> states; ///< of the buffers, in order; null for inputs
  for (unsigned index = 0; index < numTensors; ++index) {
    Attribute state = states.emplace_back(func.getArgAttr(index, DsDialect::kStateAttr));
    Value argument = func.getArgument(index);
    add(tensorType(argument), spaceOf(argument), state ? DsDialect::kStateAttr : DsDialect::kInputAttr,
        state ? state : func.getArgAttr(index, DsDialect::kInputAttr));
  }
  DenseSet<Attribute> known(states.begin(), states.end());
  for (unsigned index = 0; index < func.getNumResults(); ++index) {
    Attribute state = func.getResultAttr(index, DsDialect::kStateAttr);
    if (!state || !known.insert(state).second)
      continue;
    states.push_back(state);
    Value result = func.getBody().front().getTerminator()->getOperand(index);
    add(tensorType(result), spaceOf(result), DsDialect::kStateAttr, state);
  }
  const DenseSet<Attribute> ending = findEnding(func, symbols);
  func.insertArguments(SmallVector<unsigned>(types.size(), numTensors), types, attrs,
                       SmallVector<Location>(types.size(), func.getLoc()));
  for (auto [index, state] : llvm::enumerate(states)) {
    Value buffer = func.getArgument(numTensors + index);
    rootLastUse[buffer] = UINT_MAX;
    if (state)
      stateBuffers[state] = buffer;
    if (index >= numTensors)
      continue;
    buffers[func.getArgument(index)] = buffer;
    if (state && ending.contains(state))
      rootLastUse[buffer] = lastUse.lookup(func.getArgument(index));
  }
}

std::optional<unsigned> BufferTable::lastReadOf(Attribute state) const {
  auto read = stateLastRead.find(state);
  return read == stateLastRead.end() ? std::nullopt : std::optional(read->second);
}

void BufferTable::bind(Value value, Value buffer) {
  buffers[value] = buffer;
  unsigned &last = rootLastUse[rootOf(buffer)];
  last = std::max(last, lastUse.lookup(value));
}

Value BufferTable::rootOf(Value buffer) const {
  auto it = views.find(buffer);
  return it == views.end() ? buffer : it->second;
}

bool BufferTable::diesAt(Value operand, Operation *op) const {
  auto it = buffers.find(operand);
  if (it == buffers.end())
    return false;
  Value root = rootOf(it->second);
  // What was gathered stays as it is: whether it is gathered again or kept is decided later.
  auto alloc = root.getDefiningOp<AllocOp>();
  return !(alloc && alloc.getCategory() == AllocCategory::Communication) &&
         rootLastUse.lookup(root) <= position.at(op);
}

bool BufferTable::diesAlone(OpOperand &operand) const {
  Operation *op = operand.getOwner();
  auto isElsewhere = [&](OpOperand &other) {
    return &other != &operand && rootOf(buffers.at(other.get())) == rootOf(buffers.at(operand.get()));
  };
  return diesAt(operand.get(), op) && llvm::none_of(op->getOpOperands(), isElsewhere);
}
