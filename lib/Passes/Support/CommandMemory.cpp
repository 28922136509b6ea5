//===- CommandMemory.cpp - What the allocations of a function hold, command by command -------===//
#include "ds/Passes/CommandMemory.h"

using namespace mlir;
using namespace mlir::ds;
using ::ds::analysis::StepMemory;

SmallVector<Operation *> mlir::ds::findTouching(Value buffer) {
  SmallVector<Operation *> commands;
  for (Operation *user : buffer.getUsers()) {
    if (auto view = dyn_cast<ViewOp>(user))
      llvm::append_range(commands, findTouching(view.getResult()));
    else if (isa<ScheduledOpInterface>(user))
      commands.push_back(user);
  }
  return commands;
}

/// Holds `alloc` in commands [begin, end).
static void hold(AllocOp alloc, int64_t begin, int64_t end, StepMemory &memory) {
  const BufferType type = alloc.getBuffer().getType();
  memory.hold({uint32_t(type.getSpace()), type.getSizeInBytes(), uint32_t(begin), uint32_t(end)});
}

StepMemory mlir::ds::getMemory(const ScheduledFunction &scheduled, const DenseSet<Operation *> &without) {
  StepMemory memory(getMaxEnumValForSpace() + 1, scheduled.commands.size());
  for (const AllocLifetime &lifetime : scheduled.lifetimes)
    if (!without.contains(lifetime.alloc))
      hold(lifetime.alloc, lifetime.begin, lifetime.end, memory);
  return memory;
}

/// Holds `alloc` where compute touches it: what is gathered may be there for each of its readers alone.
static void holdNeeded(AllocOp alloc, const DenseMap<Operation *, int64_t> &position, StepMemory &memory) {
  if (alloc.getCategory() == AllocCategory::Workspace)
    return;
  bool isGathered = false;
  SmallVector<int64_t> touches;
  for (Operation *command : findTouching(alloc.getBuffer())) {
    auto communicate = dyn_cast<CommunicateOp>(command);
    isGathered |= communicate && communicate.getCarries() == Payload::Parameter;
    if (isComputeCommand(command))
      touches.push_back(position.at(command));
  }
  llvm::sort(touches);
  touches.erase(llvm::unique(touches), touches.end());
  if (!isGathered && !touches.empty())
    return hold(alloc, touches.front(), touches.back() + 1, memory);
  for (int64_t touch : touches)
    hold(alloc, touch, touch + 1, memory);
}

static void holdTouched(AllocOp alloc, const DenseMap<Operation *, int64_t> &position, StepMemory &memory) {
  auto touches = llvm::map_to_vector(findTouching(alloc.getBuffer()),
                                     [&](Operation *command) { return position.at(command); });
  if (!touches.empty())
    hold(alloc, *llvm::min_element(touches), *llvm::max_element(touches) + 1, memory);
}

StepMemory mlir::ds::getMemory(func::FuncOp func, LivesUntil until, const DenseSet<Operation *> &without) {
  if (until == LivesUntil::Known)
    return getMemory(ScheduledFunction(func), without);
  DenseMap<Operation *, int64_t> position;
  for (auto command : func.getBody().front().getOps<ScheduledOpInterface>())
    position.try_emplace(command, position.size());
  StepMemory memory(getMaxEnumValForSpace() + 1, position.size());
  for (AllocOp alloc : func.getBody().front().getOps<AllocOp>())
    if (!without.contains(alloc))
      (until == LivesUntil::Needed ? holdNeeded : holdTouched)(alloc, position, memory);
  return memory;
}

int64_t mlir::ds::getPermanentBytes(func::FuncOp func, Space space) {
  int64_t bytes = 0;
  for (StateOp state : getPlacedStates(func->getParentOfType<ModuleOp>()))
    if (state.getHome() == space)
      bytes += BufferType::getContiguous(state.getLocalType(), space).getSizeInBytes();
  for (unsigned index = 0; index < func.getNumArguments(); ++index) {
    if (!getInputOf(func, index))
      continue;
    const Type type = func.getArgument(index).getType();
    const BufferType buffer = isa<BufferType>(type)
                                  ? cast<BufferType>(type)
                                  : BufferType::getContiguous(cast<RankedTensorType>(type), Space::Device);
    bytes += buffer.getSpace() == space ? buffer.getSizeInBytes() : 0;
  }
  return bytes;
}
