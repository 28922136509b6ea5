//===- BufferPlacement.cpp - Where the values of a function are made -------------===//
//
// The decisions of FunctionBufferizer: last uses, destinations, and which dying operand a result may overwrite.
//
//===---------------------------------------------------------------------------===//
#include "FunctionBufferizer.h"
#include "ds/Codegen/KernelClass.h"

using namespace mlir;
using namespace mlir::ds;

/// The tensor type of `value`.
static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The buffer type of `value`.
static BufferType bufferType(Value value) { return cast<BufferType>(value.getType()); }

/// True for ops whose results are windows of their operand.
static bool isView(Operation *op) { return isa<ReshapeOp, TransposeOp, SliceOp, SplitOp>(op); }

void FunctionBufferizer::computeLastUses() {
  auto visit = [&](Value value) {
    unsigned &last = lastUse[value];
    last = 0;
    for (Operation *user : value.getUsers()) {
      last = std::max(last, position.at(user));
      if (isView(user))
        for (Value window : user->getResults())
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

void FunctionBufferizer::assignCategories() {
  // What a parameter's update reads, has the parameter's type and is no state, is its gradient.
  Operation *terminator = func.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    auto state = func.getResultAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kStateAttr);
    auto declaration = state ? symbols.lookup<StateOp>(state.getValue()) : StateOp();
    Operation *update = value.getDefiningOp();
    if (!declaration || declaration.getRole() != Role::Parameter || !update)
      continue;
    for (Value input : update->getOperands())
      if (input.getType() == value.getType())
        addGradient(input);
  }
}

void FunctionBufferizer::addGradient(Value value) {
  Operation *maker = value.getDefiningOp();
  if (!maker || !gradients.insert(value).second)
    return;
  // A gradient that is added to in place was one before.
  if (auto library = dyn_cast<LibraryOpInterface>(maker))
    for (auto [result, operand] : library.getLibraryCall().inPlace)
      if (maker->getResult(result) == value)
        addGradient(maker->getOperand(operand));
  if (auto reshape = dyn_cast<ReshapeOp>(maker))
    addGradient(reshape.getInput());
}

void FunctionBufferizer::makeArguments() {
  Block &block = func.getBody().front();
  Location loc = func.getLoc();
  auto addArgument = [&](RankedTensorType type, StringRef attribute, Attribute value) {
    unsigned index = block.getNumArguments();
    func.insertArgument(index, BufferType::getContiguous(type), builder.getDictionaryAttr(builder.getNamedAttr(attribute, value)), loc);
    return block.getArgument(index);
  };
  unsigned numTensors = block.getNumArguments();
  for (unsigned index = 0; index < numTensors; ++index) {
    BlockArgument tensor = block.getArgument(index);
    Attribute state = func.getArgAttr(index, DsDialect::kStateAttr);
    Attribute input = func.getArgAttr(index, DsDialect::kInputAttr);
    Value buffer = addArgument(tensorType(tensor), state ? DsDialect::kStateAttr : DsDialect::kInputAttr,
                               state ? state : input);
    if (state)
      stateBuffers[state] = buffer;
    rootLastUse[buffer] = UINT_MAX;
    buffers[tensor] = buffer;
  }
  for (unsigned index = 0; index < func.getNumResults(); ++index) {
    Attribute state = func.getResultAttr(index, DsDialect::kStateAttr);
    if (!state || stateBuffers.contains(state))
      continue;
    Value buffer = addArgument(cast<RankedTensorType>(func.getResultTypes()[index]), DsDialect::kStateAttr, state);
    stateBuffers[state] = buffer;
    rootLastUse[buffer] = UINT_MAX;
  }
}

FlatSymbolRefAttr FunctionBufferizer::becomesState(Value value) {
  for (OpOperand &use : value.getUses())
    if (isa<func::ReturnOp>(use.getOwner()))
      if (auto state = func.getResultAttrOfType<FlatSymbolRefAttr>(use.getOperandNumber(), DsDialect::kStateAttr))
        return state;
  return {};
}

Value FunctionBufferizer::concatBuffer(ConcatOp concat, unsigned now) {
  if (Value known = concats.lookup(concat))
    return known;
  Value buffer;
  if (Destination destination = findDestination(concat.getResult(), now))
    buffer = *destination;
  else
    buffer = allocate(concat.getType(), categoryOf(concat.getResult()), concat.getLoc());
  concats[concat] = buffer;
  bind(concat.getResult(), buffer);
  return buffer;
}

/// True when the kernel of `result`'s region reads `value`, if at all, no later than it writes `result`'s element.
static bool readsWhereItWrites(OpResult result, Value value) {
  auto fused = dyn_cast<FusedOp>(result.getOwner());
  if (!fused)
    return false;
  for (auto [index, input] : llvm::enumerate(fused.getInputs()))
    if (input == value && !mayShareMemory(fused.getBody().front(), index, result.getResultNumber()))
      return false;
  return true;
}

FunctionBufferizer::Destination FunctionBufferizer::findDestination(Value value) {
  return findDestination(value, position.at(value.getDefiningOp()));
}

FunctionBufferizer::Destination FunctionBufferizer::findDestination(Value value, unsigned now) {
  Operation *maker = value.getDefiningOp();
  if (FlatSymbolRefAttr state = becomesState(value)) {
    auto read = stateLastRead.find(state);
    if (read == stateLastRead.end() || read->second < now)
      return stateBuffers.at(state);
    // The maker itself may be the last reader, if it reads no further than it has written.
    if (read->second == now && position.at(maker) == now) {
      bool isSafe = true;
      for (OpOperand &operand : maker->getOpOperands())
        if (auto it = buffers.find(operand.get()); it != buffers.end() && rootOf(it->second) == stateBuffers.at(state)) {
          auto library = dyn_cast<LibraryOpInterface>(maker);
          bool isTied = library && llvm::any_of(library.getLibraryCall().inPlace, [&](auto pair) {
                          return pair.second == operand.getOperandNumber() && maker->getResult(pair.first) == value;
                        });
          isSafe &= it->second == stateBuffers.at(state) && (isTied || readsWhereItWrites(cast<OpResult>(value), operand.get()));
        }
      if (isSafe)
        return stateBuffers.at(state);
    }
  }
  for (Operation *user : value.getUsers()) {
    if (auto concat = dyn_cast<ConcatOp>(user)) {
      if (llvm::count(concat.getInputs(), value) != 1)
        continue;
      Value whole = concatBuffer(concat, now);
      SmallVector<int64_t> offsets(tensorType(value).getRank(), 0), steps(tensorType(value).getRank(), 1);
      for (Value input : concat.getInputs()) {
        if (input == value)
          break;
        offsets[concat.getDim()] += tensorType(input).getShape()[concat.getDim()];
      }
      return createView(whole, sliceView(viewOf(bufferType(whole)), offsets, steps, tensorType(value).getShape()),
                        value.getLoc());
    }
    // Through a reshape: the destination of the reshaped value, seen in this shape.
    if (auto reshape = dyn_cast<ReshapeOp>(user)) {
      FlatSymbolRefAttr state = becomesState(reshape.getResult());
      auto concat = llvm::find_if(reshape->getUsers(), [](Operation *op) { return isa<ConcatOp>(op); });
      if (!state && concat == reshape->user_end())
        continue;
      if (state) {
        auto read = stateLastRead.find(state);
        if (read != stateLastRead.end() && read->second >= now)
          continue;
        Value target = stateBuffers.at(state);
        return createView(target, *reshapeView(viewOf(bufferType(target)), tensorType(value).getShape()), value.getLoc());
      }
      auto op = cast<ConcatOp>(*concat);
      if (llvm::count(op.getInputs(), reshape.getResult()) != 1)
        continue;
      Value whole = concatBuffer(op, now);
      SmallVector<int64_t> offsets(reshape.getType().getRank(), 0), steps(reshape.getType().getRank(), 1);
      for (Value input : op.getInputs()) {
        if (input == reshape.getResult())
          break;
        offsets[op.getDim()] += tensorType(input).getShape()[op.getDim()];
      }
      StridedView part = sliceView(viewOf(bufferType(whole)), offsets, steps, reshape.getType().getShape());
      if (std::optional<StridedView> view = reshapeView(part, tensorType(value).getShape()))
        return createView(whole, *view, value.getLoc());
    }
  }
  return std::nullopt;
}

Value FunctionBufferizer::makeBuffer(Value result) {
  if (Destination destination = findDestination(result))
    return *destination;
  return allocate(tensorType(result), categoryOf(result), result.getLoc());
}

bool FunctionBufferizer::diesAt(Value operand, Operation *op) {
  auto it = buffers.find(operand);
  if (it == buffers.end())
    return false;
  Value root = rootOf(it->second);
  return root.getDefiningOp<AllocOp>() && rootLastUse.lookup(root) <= position.at(op);
}

bool FunctionBufferizer::diesAlone(OpOperand &operand) {
  Operation *op = operand.getOwner();
  auto isElsewhere = [&](OpOperand &other) {
    return &other != &operand && rootOf(buffers.at(other.get())) == rootOf(buffers.at(operand.get()));
  };
  return diesAt(operand.get(), op) && llvm::none_of(op->getOpOperands(), isElsewhere);
}

Value FunctionBufferizer::findDyingOperand(FusedOp op, unsigned result) {
  RankedTensorType type = tensorType(op.getResult(result));
  auto hasAlias = [&](Value input) {
    return llvm::any_of(op.getInputs(), [&](Value other) {
      return other != input && rootOf(buffers.at(other)) == buffers.at(input);
    });
  };
  for (Value input : op.getInputs())
    if (input.getType() == type && diesAt(input, op) && !hasAlias(input) && bufferType(buffers.at(input)).isContiguous() &&
        rootOf(buffers.at(input)) == buffers.at(input) && readsWhereItWrites(op->getResult(result), input))
      return buffers.at(input);
  return {};
}
