//===- BufferPlacement.cpp - Where the values of a function are made -------------===//
//
// The decisions of FunctionBufferizer: last uses, destinations, and which dying operand a result may
// overwrite.
//
//===---------------------------------------------------------------------------===//
#include "FunctionBufferizer.h"
#include "ds/Codegen/KernelClass.h"
#include "ds/Dialect/Collectives.h"
#include "ds/Passes/ScheduledFunction.h"

#include <array>

using namespace mlir;
using namespace mlir::ds;

void FunctionBufferizer::computeLastUses() {
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

void FunctionBufferizer::assignCategories() {
  // What a parameter's update reads, has the parameter's type and is no state, is its gradient.
  Operation *terminator = func.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    auto state = func.getResultAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kStateAttr);
    auto declaration = state ? symbols.lookup<StateOp>(state.getValue()) : StateOp();
    Operation *update = value.getDefiningOp();
    if (!declaration || declaration.getRole() != Role::Parameter || !update)
      continue;
    if (auto gather = dyn_cast<AllGatherOp>(update)) // the update made a shard of the parameter
      if (update = gather.getShard().getDefiningOp(); update)
        value = gather.getShard();
    for (Value input : update ? update->getOperands() : ValueRange())
      if (input.getType() == value.getType())
        addGradient(input);
  }
  // What ranks sum up is a gradient, but for the few numbers that the host reads.
  for (auto collective : func.getOps<CollectiveOpInterface>())
    if (isForUpdate(collective.getCarries()) && tensorType(collective->getOperand(0)).getRank() > 0)
      for (Value value : {collective->getOperand(0), Value(collective->getResult(0))})
        gradients.insert(value);
}

void FunctionBufferizer::addGradient(Value gradient) {
  SmallVector<Value> pending = {gradient};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    Operation *maker = value.getDefiningOp();
    if (!maker || isa<LoadOp, MoveOp>(maker) || !gradients.insert(value).second)
      continue;
    // A gradient that is added to in place was one before.
    if (auto library = dyn_cast<LibraryOpInterface>(maker))
      for (auto [result, operand] : library.getLibraryCall().inPlace)
        if (maker->getResult(result) == value)
          pending.push_back(maker->getOperand(operand));
    if (isa<ReshapeOp, StoreOp>(maker))
      pending.push_back(maker->getOperand(0));
  }
}

/// The buffers that the function will take, all added at once: a step has thousands.
void FunctionBufferizer::makeArguments() {
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
    auto name = dyn_cast_or_null<FlatSymbolRefAttr>(state);
    if (name && endsWith(func, symbols.lookup<StateOp>(name.getValue())))
      rootLastUse[buffer] = lastUse.lookup(func.getArgument(index));
  }
}

FlatSymbolRefAttr FunctionBufferizer::becomesState(Value value) {
  for (OpOperand &use : value.getUses())
    if (isa<func::ReturnOp>(use.getOwner()))
      if (auto state =
              func.getResultAttrOfType<FlatSymbolRefAttr>(use.getOperandNumber(), DsDialect::kStateAttr))
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

/// True when the kernel of `result`'s region reads `value`, if at all, no later than it writes `result`'s
/// element.
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

bool FunctionBufferizer::mayReplaceState(FlatSymbolRefAttr state, Value value, unsigned now, Value target) {
  auto read = stateLastRead.find(state);
  if (read == stateLastRead.end() || read->second < now)
    return true;
  // The maker itself may be the last reader, if it reads no further than it has written.
  Operation *maker = value.getDefiningOp();
  if (read->second != now || position.at(maker) != now)
    return false;
  auto isTied = [&](OpOperand &operand) {
    auto library = dyn_cast<LibraryOpInterface>(maker);
    return library && llvm::any_of(library.getLibraryCall().inPlace, [&](auto pair) {
             return pair.second == operand.getOperandNumber() && maker->getResult(pair.first) == value;
           });
  };
  return llvm::all_of(maker->getOpOperands(), [&](OpOperand &operand) {
    auto it = buffers.find(operand.get());
    if (it == buffers.end() || rootOf(it->second) != stateBuffers.at(state))
      return true;
    return isSameWindow(it->second, target) &&
           (isTied(operand) || readsWhereItWrites(cast<OpResult>(value), operand.get()));
  });
}

Value FunctionBufferizer::concatPart(ConcatOp concat, Value input, unsigned now) {
  Value whole = concatBuffer(concat, now);
  int64_t rank = tensorType(input).getRank();
  SmallVector<int64_t> offsets(rank, 0), steps(rank, 1);
  for (Value before : concat.getInputs()) {
    if (before == input)
      break;
    offsets[concat.getDim()] += tensorType(before).getShape()[concat.getDim()];
  }
  StridedView part = sliceView(viewOf(bufferType(whole)), offsets, steps, tensorType(input).getShape());
  return createView(whole, part, input.getLoc());
}

/// What the only reader of `value` makes in its place; null where it does not.
static Value madeInPlaceOf(Value value) {
  auto library = value.hasOneUse() ? dyn_cast<LibraryOpInterface>(*value.user_begin()) : LibraryOpInterface();
  if (!library)
    return {};
  for (auto [result, operand] : library.getLibraryCall().inPlace)
    if (operand == value.use_begin()->getOperandNumber())
      return library->getResult(result);
  return {};
}

/// What is made in the place of `value` by those that add to it one after the other, the last of them.
Value FunctionBufferizer::lastInPlaceOf(Value value) {
  SmallVector<Value> chain;
  for (Value next = value; next; next = madeInPlaceOf(value)) {
    value = next;
    if (Value known = lastInPlace.lookup(value)) {
      value = known;
      break;
    }
    chain.push_back(value);
  }
  for (Value link : chain)
    lastInPlace[link] = value;
  return value;
}

FunctionBufferizer::Destination FunctionBufferizer::findDestination(Value value, unsigned now) {
  value = lastInPlaceOf(value); // a gradient that all layers add to goes to where the last leaves it
  if (FlatSymbolRefAttr state = becomesState(value))
    if (mayReplaceState(state, value, now, stateBuffers.at(state)))
      return stateBuffers.at(state);
  for (OpOperand &use : value.getUses()) {
    if (auto concat = dyn_cast<ConcatOp>(use.getOwner()))
      if (llvm::count(concat.getInputs(), value) == 1)
        return concatPart(concat, value, now);
    if (auto gather = dyn_cast<AllGatherOp>(use.getOwner()))
      if (Destination part = gatherPart(gather, value, now))
        return part;
    // Through a reshape: the destination of the reshaped value, seen in this shape.
    auto reshape = dyn_cast<ReshapeOp>(use.getOwner());
    Destination target = reshape ? findDestination(reshape.getResult(), now) : std::nullopt;
    if (!target)
      continue;
    if (std::optional<StridedView> view =
            reshapeView(viewOf(bufferType(*target)), tensorType(value).getShape()))
      return createView(*target, *view, value.getLoc());
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
  // What was gathered stays as it is: whether it is gathered again or kept is decided later.
  auto alloc = root.getDefiningOp<AllocOp>();
  return !(alloc && alloc.getCategory() == AllocCategory::Communication) &&
         rootLastUse.lookup(root) <= position.at(op);
}

/// The place of the state that `op` has the new value of, where it holds nothing any more: that of the
/// gradient so far, which was loaded for a product to add to. Null where there is none.
Value FunctionBufferizer::findVacated(StoreOp op) {
  Value value = op->getOperand(0);
  while (Operation *maker = value.getDefiningOp()) {
    if (auto load = dyn_cast<LoadOp>(maker)) {
      Value place = buffers.at(load->getOperand(0));
      bool fits = bufferType(place) ==
                  BufferType::getContiguous(tensorType(op->getOperand(0)), spaceOf(op->getResult(0)));
      return fits && isa<BlockArgument>(place) && diesAt(load->getOperand(0), op) ? place : Value();
    }
    auto library = dyn_cast<LibraryOpInterface>(maker);
    if (!library)
      return {};
    LibraryCall call = library.getLibraryCall();
    auto tied = llvm::find_if(call.inPlace, [&](auto pair) { return maker->getResult(pair.first) == value; });
    if (tied == call.inPlace.end())
      return {};
    value = maker->getOperand(tied->second);
  }
  return {};
}

bool FunctionBufferizer::diesAlone(OpOperand &operand) {
  Operation *op = operand.getOwner();
  auto isElsewhere = [&](OpOperand &other) {
    return &other != &operand && rootOf(buffers.at(other.get())) == rootOf(buffers.at(operand.get()));
  };
  return diesAt(operand.get(), op) && llvm::none_of(op->getOpOperands(), isElsewhere);
}

/// How well the buffer of `input` suits what `result` gives, from 0, which is best, to 3: a state that was
/// moved here takes its new value back, and other values leave such buffers to those. A state's own place is
/// there anyway.
unsigned FunctionBufferizer::rankOf(Value input, OpResult result) {
  if (isa<BlockArgument>(rootOf(buffers.at(input))))
    return 1;
  auto from = input.getDefiningOp<MoveOp>();
  auto argument = from ? dyn_cast<BlockArgument>(from->getOperand(0)) : BlockArgument();
  if (!argument)
    return 2;
  Attribute state = func.getArgAttr(argument.getArgNumber(), DsDialect::kStateAttr);
  return llvm::any_of(
             result.getUsers(),
             [&](Operation *user) { return isa<MoveOp>(user) && becomesState(user->getResult(0)) == state; })
             ? 0
             : 3;
}

FunctionBufferizer::Sharers FunctionBufferizer::countSharers(FusedOp op) {
  Sharers sharers;
  for (Value input : DenseSet<Value>(op.getInputs().begin(), op.getInputs().end()))
    ++sharers[rootOf(buffers.at(input))];
  return sharers;
}

Value FunctionBufferizer::findDyingOperand(FusedOp op, unsigned result, const Sharers &sharers) {
  RankedTensorType type = tensorType(op.getResult(result));
  // What storage takes begins at a unit, and a state anywhere.
  bool isMoved = llvm::any_of(op.getResult(result).getUsers(), llvm::IsaPred<MoveOp>);
  std::array<SmallVector<Value>, 4> inputs; // by rank
  for (Value input : op.getInputs())
    if (input.getType() == type)
      inputs[rankOf(input, op->getResult(result))].push_back(input);
  for (Value input : llvm::concat<Value>(inputs[0], inputs[1], inputs[2], inputs[3]))
    if (diesAt(input, op) && bufferType(buffers.at(input)).isContiguous() &&
        rootOf(buffers.at(input)) == buffers.at(input) && sharers.lookup(buffers.at(input)) == 1 &&
        !(isMoved && isa<BlockArgument>(buffers.at(input))) &&
        readsWhereItWrites(op->getResult(result), input))
      return buffers.at(input);
  return {};
}
