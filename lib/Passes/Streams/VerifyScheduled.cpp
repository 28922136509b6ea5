//===- VerifyScheduled.cpp - The border after bufferisation ---------------------===//
//
// A wrong buffer shows as a wrong number hours later, so what the schedule promises is looked at once, here,
// in one walk over the module. What an op can check alone stands in its own verifier.
//
//===---------------------------------------------------------------------------===//
#include "LateCommands.h"
#include "Support/JoinKernels.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/LateUpdates.h"
#include "ds/Passes/LibraryTable.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Passes/Slots.h"

namespace mlir::ds {
#define GEN_PASS_DEF_VERIFYSCHEDULED
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Verifies the arguments and results of `func`: buffers, each one state or one input, and no result (E1,
/// E2).
static LogicalResult verifySignature(func::FuncOp func, SymbolTable &symbols) {
  if (func.getNumResults() != 0) // E1.
    return func.emitOpError("expects no results after bufferisation, but got ") << func.getNumResults();
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes())) {
    auto buffer = dyn_cast<BufferType>(type);
    if (!buffer) // E1.
      return func.emitOpError("expects buffers, but got ") << type << " as argument " << index;
    FlatSymbolRefAttr name = getStateOf(func, index);
    if (bool(name) == bool(getInputOf(func, index))) // E2.
      return func.emitOpError("expects argument ")
             << index << " to be a state or an input, but it is " << (name ? "both" : "neither");
    auto state = name ? symbols.lookup<StateOp>(name.getValue()) : StateOp();
    if (name && !state)
      return func.emitOpError("expects a state, but got ") << name;
    const bool isSlot = state && state.getSlots() && buffer.isContiguous() &&
                        state.getLocalType().getDimSize(1) == slotElements(buffer);
    if (state && !isSlot && (state.getLocalType() != buffer.getTensor() || !buffer.isContiguous())) {
      InFlightDiagnostic error = func.emitOpError("expects argument ")
                                 << index << " to hold the whole of state " << name << ", but got " << buffer;
      error.attachNote(state.getLoc()) << "the state is " << state.getLocalType();
      return error;
    }
  }
  return success();
}

/// Verifies that `call` has as many buffers as its function takes (E3).
static LogicalResult verifyCall(CallOp call) {
  const LibraryEntry &function = entryOf(call.getCallee());
  size_t count = call.getBuffers().size();
  if (count < function.minBuffers || count > function.maxBuffers)
    return call.emitOpError("expects ")
           << function.minBuffers << " to " << function.maxBuffers << " buffers for "
           << ::ds::rt::spell(call.getCallee()) << ", but got " << count;
  if (call.getCallee() != ::ds::rt::LibraryFn::Copy)
    return success();
  auto from = cast<BufferType>(call.getBuffers()[0].getType()),
       to = cast<BufferType>(call.getBuffers()[1].getType());
  if (from.getTensor() != to.getTensor())
    return call.emitOpError("expects to copy ")
           << from.getTensor() << " to its like, but got " << to.getTensor();
  return success();
}

/// The first command in the block that names `buffer` or a view of it; null when there is none.
static Operation *firstCommand(Value buffer) {
  Operation *first = nullptr;
  for (Operation *user : buffer.getUsers()) {
    Operation *command = isa<ViewOp>(user) ? firstCommand(user->getResult(0)) : user;
    if (command && (!first || command->isBeforeInBlock(first)))
      first = command;
  }
  return first;
}

/// True when `command` writes `root` or a view of it.
static bool writes(Operation *command, Value root) {
  SmallVector<MemoryEffects::EffectInstance> effects;
  cast<MemoryEffectOpInterface>(command).getEffects(effects);
  return llvm::any_of(effects, [&](const MemoryEffects::EffectInstance &effect) {
    Value value = effect.getValue();
    auto view = value ? value.getDefiningOp<ViewOp>() : ViewOp();
    return isa<MemoryEffects::Write>(effect.getEffect()) && (view ? view.getSource() : value) == root;
  });
}

/// Verifies that a command uses `alloc`, and that the first to do so writes it (E4).
static LogicalResult verifyAlloc(AllocOp alloc) {
  Operation *first = firstCommand(alloc.getBuffer());
  if (!first)
    return alloc.emitOpError("expects a command to use it");
  if (writes(first, alloc.getBuffer()))
    return success();
  InFlightDiagnostic error = first->emitOpError("expects what it reads to be written before");
  error.attachNote(alloc.getLoc()) << "nothing has written this allocation yet";
  return error;
}

/// Verifies the ops of a function (E1, E3, E4).
static LogicalResult verifyBody(func::FuncOp func) {
  for (Operation &op : func.getBody().front()) {
    if (!isa<AllocOp, ViewOp, func::ReturnOp, ScheduledOpInterface>(op)) { // E1.
      InFlightDiagnostic error = op.emitOpError("expects to be replaced by buffers and commands");
      error.attachNote() << "run ds-fuse-regions and ds-bufferize first";
      return error;
    }
    if (auto call = dyn_cast<CallOp>(op); call && failed(verifyCall(call)))
      return failure();
    if (auto alloc = dyn_cast<AllocOp>(op); alloc && failed(verifyAlloc(alloc)))
      return failure();
  }
  return success();
}

/// Verifies the streams of launches of kernels of two stages (E7).
static LogicalResult verifyLaunches(func::FuncOp func, SymbolTable &symbols) {
  for (LaunchOp launch : func.getOps<LaunchOp>()) {
    auto kernel = symbols.lookup<KernelOp>(launch.getKernel());
    if (launch.getStream() == StreamKind::Compute || !hasTwoStages(kernel))
      continue;
    InFlightDiagnostic error =
        launch.emitOpError("expects stream compute for a kernel of two stages, but got ")
        << stringifyStreamKind(launch.getStream());
    error.attachNote(kernel.getLoc()) << "this kernel reduces what it yields";
    return error;
  }
  return success();
}

/// Verifies that `kernel` computes with fusable ops (E5).
static LogicalResult verifyKernel(KernelOp kernel) {
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (!isa<FusableOpInterface>(op)) {
      InFlightDiagnostic error = kernel.emitOpError("expects fusable ops, but got ") << op.getName();
      error.attachNote(op.getLoc()) << "this op";
      return error;
    }
  return success();
}

namespace {
/// What is known of a value that stays for the step.
struct StayingValue {
  bool isGathered = false; ///< and its shard was not changed before the function that is looked at
  bool isChanged = false;  ///< its shard, by that function
  bool isUpdated = false;  ///< its shard, by the update of that function and nothing else
  bool isAnew = false;     ///< no other function comes before that one
};
} // namespace

/// True where `command` is part of a step before its update, which reads parameters as they were before.
static bool isBeforeUpdate(Operation *command) {
  std::optional<Work> work = getWork(command);
  return work && isBefore(*work, Work::Update);
}

/// Whether `buffer` has what was gathered from `shard` or from a part of that, and nothing else: it is the
/// shard, or all that writes it before `command` gathers, copies or loads from such.
static bool bringsFrom(Operation &op, Value shard);
static bool comesFrom(Value buffer, Value shard, Operation *command) {
  const Value root = rootOfBuffer(buffer);
  if (root == shard || !root.getDefiningOp<AllocOp>())
    return root == shard;
  bool isWritten = false;
  for (Operation &op : command->getBlock()->getOperations()) {
    if (&op == command)
      return isWritten;
    auto writes = [&](const BufferAccess &access) { return access.root == root && access.isWrite; };
    if (!isa<ScheduledOpInterface>(op) || !llvm::any_of(accessesOf(&op), writes))
      continue;
    if (!bringsFrom(op, shard))
      return false;
    isWritten = true;
  }
  return false;
}

/// Whether `op` writes what comes from `shard`: a gather, a copy or a load.
static bool bringsFrom(Operation &op, Value shard) {
  if (auto gather = dyn_cast<CommunicateOp>(op))
    return gather.getKind() == CollectiveKind::AllGather && comesFrom(gather.getInputs()[0], shard, &op);
  if (auto transfer = dyn_cast<TransferOp>(op))
    return comesFrom(transfer.getSource(), shard, &op);
  auto call = dyn_cast<CallOp>(op);
  return call && call.getCallee() == ::ds::rt::LibraryFn::Copy && comesFrom(call.getBuffers()[0], shard, &op);
}

/// Verifies the commands of one function on `whole`, which has what was gathered from `shard`; null for an
/// argument that is not there; `gathers` where it may fill it. `value` says what earlier functions did (E6).
static LogicalResult verifyGathered(func::FuncOp func, Value whole, Value shard, bool gathers,
                                    StayingValue &value) {
  value.isGathered &= !value.isChanged && !value.isUpdated;
  value.isChanged = value.isUpdated = false;
  for (Operation &op : func.getBody().front()) {
    if (!isa<ScheduledOpInterface>(op))
      continue;
    for (const BufferAccess &access : accessesOf(&op)) {
      const bool isLate = value.isAnew && !value.isGathered; // what is gathered after it is the step's value
      if (access.root == shard && access.isWrite && !isLate)
        (getWork(&op) == Work::Update ? value.isUpdated : value.isChanged) = true;
      if (!whole || access.root != whole)
        continue;
      if (access.isWrite && (!gathers || !bringsFrom(op, shard)))
        return op.emitOpError(
            "expects only gathers of its shard, in the first segment and in evaluation, to write "
            "a value that stays for the step");
      if (!access.isWrite &&
          (!value.isGathered || value.isChanged || (value.isUpdated && !isBeforeUpdate(&op))))
        return op.emitOpError("expects a value that stays for the step to be gathered before, and its "
                              "shard to be as it was then");
      value.isGathered |= access.isWrite;
      value.isChanged |= access.isWrite && value.isUpdated; // what is gathered now is another value
    }
  }
  return success();
}

/// Verifies all functions on the value that stays gathered in `state` (E6).
static LogicalResult verifyGathered(StateOp state, ModuleOp module, SymbolTable &symbols) {
  FlatSymbolRefAttr from = state.getGatheredFromAttr();
  if (!symbols.lookup<StateOp>(from.getValue()))
    return state.emitOpError("expects gathered_from to name a state");
  StayingValue value;
  for (auto [index, func] : llvm::enumerate(getSegments(module))) {
    SegmentAttr segment = SegmentAttr::of(func);
    bool isOther = segment.does(Work::Evaluation) || scheduledRuns(func) == 0;
    if (isOther)
      value = {.isAnew = true};
    Value whole, shard;
    for (BlockArgument argument : func.getArguments()) {
      if (getStateOf(func, argument) == FlatSymbolRefAttr::get(state))
        whole = argument;
      if (getStateOf(func, argument) == from)
        shard = argument;
    }
    for (int run = 0; run < (scheduledRuns(func) > 1 ? 2 : 1); ++run) // it may follow itself
      if (failed(verifyGathered(func, whole, shard, index == 0 || isOther, value)))
        return failure();
  }
  return success();
}

namespace {
struct VerifyScheduled : mlir::ds::impl::VerifyScheduledBase<VerifyScheduled> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), {Phase::Scheduled, Phase::Planned})))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>())
      if (failed(verifySignature(func, symbols)) || failed(verifyBody(func)) ||
          failed(verifyLaunches(func, symbols)))
        return signalPassFailure();
    for (auto state : getOperation().getOps<StateOp>())
      if (state.getGatheredFrom() && failed(verifyGathered(state, getOperation(), symbols)))
        return signalPassFailure();
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      if (failed(verifyKernel(kernel)))
        return signalPassFailure();
    if (failed(verifyLateUpdates(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
