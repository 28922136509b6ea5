//===- HostPlacement.cpp - Which ops of a step run on the host's cores ----------------===//
//
// See HostPlacement.h for the problem and the idea.
//
//===---------------------------------------------------------------------------------===//
#include "HostPlacement.h"

#include "Support/PostOrder.h"
#include "ds/Dialect/Work.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::ds;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }
static bool isScalar(Value value) { return tensorType(value).getRank() == 0; }
static int64_t bytesOf(Value value) { return BufferType::getContiguous(tensorType(value)).getSizeInBytes(); }

/// Whether the host has code for `op`, which is on tensors.
static bool canRun(Operation *op) {
  return !isa<FusedOp>(op) && HostOp::canHold(op) && !HostPlacement::isFree(op) &&
         llvm::all_of(op->getResultTypes(), [](Type type) { return isa<RankedTensorType>(type); });
}

static bool isElementwise(Operation *op) {
  auto fusable = dyn_cast<FusableOpInterface>(op);
  return fusable && fusable.getFusionKind() == FusionKind::Elementwise;
}

bool HostPlacement::isFree(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() || (isa<BroadcastOp>(op) && isScalar(op->getOperand(0)));
}

/// Whether `value` is a tensor that one side has: each has scalars and constants of its own, for nothing.
static bool belongsToOne(Value value) {
  return !isScalar(value) && !(value.getDefiningOp() && HostPlacement::isFree(value.getDefiningOp()));
}

void HostPlacement::forEachReader(Value value, llvm::function_ref<void(Operation *)> visit) {
  for (Operation *user : value.getUsers())
    if (isFree(user))
      forEachReader(user->getResult(0), visit);
    else
      visit(user);
}

bool HostPlacement::isHostValue(Value value) const {
  return states.contains(value) || (value.getDefiningOp() && onHost.contains(value.getDefiningOp()));
}

/// The updates' scalars are worth nothing; what is not an update runs on the host only to add up gradients.
bool HostPlacement::goesWithOperands(Operation *op) const {
  bool isUpdate = getWork(op) == Work::Update, givesScalar = isScalar(op->getResult(0));
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    if (!isa<RankedTensorType>(operand.getType()) || !isHostValue(operand) ||
        (isScalar(operand) && !givesScalar))
      return false;
    return isUpdate || gradients.contains(operand) ||
           (operand.getDefiningOp() && isElementwise(op)); // what was added is still to be rounded
  });
}

/// What is only read by the host runs there if no more bytes are sent for that.
bool HostPlacement::goesWithReaders(Operation *op) const {
  bool isRead = false, isElsewhere = false;
  forEachReader(op->getResult(0), [&](Operation *reader) {
    isRead = true;
    isElsewhere |= !isOnHost(reader);
  });
  if (!isRead || isElsewhere || (!isElementwise(op) && !isa<PresumeOp>(op)))
    return false;
  int64_t sent = 0;
  for (Value operand : llvm::SmallSetVector<Value, 4>(op->operand_begin(), op->operand_end())) {
    bool isThere = isHostValue(operand);
    forEachReader(operand, [&](Operation *reader) { isThere |= isOnHost(reader); });
    if (!isThere && belongsToOne(operand))
      sent += bytesOf(operand);
  }
  bool isConversion = isa<ConvertOp>(op);
  return (getWork(op) == Work::Update || isConversion) &&
         (isScalar(op->getResult(0)) || sent <= bytesOf(op->getResult(0)));
}

/// A sum over tensors runs on the host where more of their bytes are there, or come there anyway, than would
/// have to.
bool HostPlacement::goesWithSummands(Operation *op) const {
  if (!op->hasTrait<OpTrait::RunsOnHost>())
    return false;
  int64_t here = 0, there = 0;
  for (Value operand : op->getOperands()) {
    bool isThere = isHostValue(operand);
    forEachReader(operand, [&](Operation *reader) { isThere |= isOnHost(reader); });
    (isThere ? there : here) += bytesOf(operand);
  }
  return there > here;
}

/// Whether `op` makes something for `reader` and nobody else, of tensors of which the host has none.
bool HostPlacement::servesAlone(Operation *op, Operation *reader) const {
  if (!isElementwise(op) || op->getNumResults() != 1 || isScalar(op->getResult(0)))
    return false;
  bool isRead = true, readsTensor = false;
  forEachReader(op->getResult(0), [&](Operation *other) { isRead &= other == reader; });
  for (Value operand : op->getOperands()) {
    if (!belongsToOne(operand))
      continue;
    Operation *maker = operand.getDefiningOp();
    if (isHostValue(operand) && !(maker && servesAlone(maker, op)))
      return false;
    readsTensor = true;
  }
  return isRead && readsTensor;
}

/// Whether `op` runs on the host for one reader alone, which does not.
bool HostPlacement::staysWithReader(Operation *op) const {
  Operation *reader = nullptr;
  forEachReader(op->getResult(0), [&](Operation *other) { reader = other; });
  return reader && !isOnHost(reader) && servesAlone(op, reader);
}

/// Whether only ops of the device and its own states read what `op` gives, of a tensor there and one of the
/// host's.
bool HostPlacement::staysWithState(Operation *op) const {
  if (op->getNumResults() != 1 || isScalar(op->getResult(0)) || !isElementwise(op))
    return false;
  bool isReadHere = false, isReadThere = false;
  forEachReader(op->getResult(0), [&](Operation *reader) {
    auto ret = dyn_cast<func::ReturnOp>(reader);
    if (!ret)
      return void((isOnHost(reader) ? isReadThere : isReadHere) = true);
    auto func = cast<func::FuncOp>(block.getParentOp());
    for (OpOperand &operand : ret->getOpOperands())
      if (operand.get() == op->getResult(0)) {
        auto name =
            func.getResultAttrOfType<FlatSymbolRefAttr>(operand.getOperandNumber(), DsDialect::kStateAttr);
        auto state = name ? SymbolTable::lookupNearestSymbolFrom<StateOp>(func, name) : StateOp();
        (state && state.getHome() != Space::Device ? isReadThere : isReadHere) = true;
      }
  });
  unsigned fromHost = 0, fromDevice = 0;
  for (Value operand : op->getOperands()) {
    Operation *maker = operand.getDefiningOp();
    if (belongsToOne(operand))
      ++(isHostValue(operand) && !(maker && servesAlone(maker, op)) ? fromHost : fromDevice);
  }
  return isReadHere && !isReadThere && fromHost == 1 && fromDevice > 0;
}

HostPlacement::HostPlacement(func::FuncOp func, const SymbolTable &symbols) : block(func.getBody().front()) {
  for (BlockArgument argument : block.getArguments()) {
    auto name = func.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), DsDialect::kStateAttr);
    auto state = name ? symbols.lookup<StateOp>(name.getValue()) : StateOp();
    if (!state || state.getHome() == Space::Device)
      continue;
    states.insert(argument);
    if (state.getRole() == Role::Gradient)
      gradients.insert(argument);
  }
  if (states.empty())
    return;
  SmallVector<Operation *> candidates;
  for (Operation &op : block)
    if (op.getNumResults() == 1 && canRun(&op))
      candidates.push_back(&op);
  for (bool changes = true; changes;) {
    changes = false;
    auto add = [&](Operation *op) { changes |= onHost.insert(op).second; };
    for (Operation *op : candidates)
      if (!isOnHost(op) &&
          (op->hasTrait<OpTrait::RunsOnHost>() ? goesWithSummands(op) : goesWithOperands(op)))
        add(op);
    for (Operation *op : llvm::reverse(candidates))
      if (!isOnHost(op) && goesWithReaders(op))
        add(op);
  }
  for (Operation *op : llvm::reverse(candidates))
    if (isOnHost(op) && (staysWithState(op) || staysWithReader(op)))
      onHost.erase(op);
}

void HostPlacement::repeatShared() {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (op.getNumResults() == 1 && canRun(&op) && isRepeated(&op))
      repeat(&op);
}

/// Whether both sides read what `op` gives, and the host has all that it is made of.
bool HostPlacement::isRepeated(Operation *op) const {
  if (isa<PresumeOp>(op) && !isOnHost(op))
    return isReadByHost(op);
  if (isOnHost(op) || !isElementwise(op) || getWork(op) != Work::Update || isScalar(op->getResult(0)) ||
      llvm::none_of(op->getResult(0).getUsers(), [&](Operation *user) { return isOnHost(user); }))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    Operation *maker = operand.getDefiningOp();
    return isScalar(operand) || isHostValue(operand) || (maker && isFree(maker)) ||
           llvm::any_of(operand.getUsers(), [&](Operation *user) { return isOnHost(user); });
  });
}

/// Whether the host reads what `op`, which is on the device, gives: itself, or through what is free.
bool HostPlacement::isReadByHost(Operation *op) const {
  bool isRead = false;
  forEachReader(op->getResult(0), [&](Operation *reader) { isRead |= isOnHost(reader); });
  return isRead;
}

/// Copies, for the host, the ops that make `value` of what is there from the start; gives what they make.
Value HostPlacement::repeatMakers(Value value, OpBuilder &builder) {
  IRMapping copies;
  auto isRepeatedHere = [&](Value next) {
    Operation *maker = next.getDefiningOp();
    return maker && !isFree(maker) && !isOnHost(maker) && isElementwise(maker) && !copies.contains(next);
  };
  visitPostOrder(value, isRepeatedHere,
                 [&](Value next) { onHost.insert(builder.clone(*next.getDefiningOp(), copies)); });
  return copies.lookupOrDefault(value);
}

void HostPlacement::repeat(Operation *op) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Operation *copy = builder.clone(*op);
  onHost.insert(copy);
  if (auto presume = dyn_cast<PresumeOp>(copy)) { // on the device what is guessed may be made with the truth
    builder.setInsertionPoint(copy);
    presume.getGuessMutable().assign(repeatMakers(presume.getGuess(), builder));
  }
  op->getResult(0).replaceUsesWithIf(copy->getResult(0), [&](OpOperand &use) {
    return isOnHost(use.getOwner()) || (isFree(use.getOwner()) && isReadByHost(use.getOwner()));
  });
}
