//===- FunctionGathers.cpp - The gathers of one function, as values with uses ----===//
#include "FunctionGathers.h"

#include <map>

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

bool mlir::ds::isMovableGather(CommunicateOp op) {
  if (op.getKind() != CollectiveKind::AllGather || op.getCarries() != Payload::Parameter)
    return false;
  Value whole = op.getOutputs()[0];
  if (auto alloc = whole.getDefiningOp<AllocOp>())
    return alloc.getCategory() == AllocCategory::Communication;
  auto func = op->getParentOfType<func::FuncOp>();
  FlatSymbolRefAttr state = getStateOf(func, whole);
  auto declaration = state ? SymbolTable::lookupNearestSymbolFrom<StateOp>(func, state) : StateOp();
  return declaration && declaration.getGatheredFrom();
}

FunctionGathers::FunctionGathers(func::FuncOp func, CommandCosts &costs, const WorkspaceLimits &limits,
                                 std::optional<int64_t> memory)
    : func(func), costs(costs) {
  findCommands();
  std::multimap<int64_t, CommunicateOp> gathers; // by first use; equals as they are issued
  for (CommunicateOp gather : llvm::make_filter_range(func.getOps<CommunicateOp>(), isMovableGather))
    gathers.emplace(useOf(gather, findReplacer(gather)).begin, gather);
  DenseSet<Operation *> allocations;
  for (auto [use, gather] : gathers) {
    addGather(gather);
    if (Operation *alloc = gather.getOutputs()[0].getDefiningOp())
      allocations.insert(alloc);
  }
  ComputeMemory live(func, memory, allocations);
  live.holdWorkspaces(limits);
  liveBytes = live.getLiveBytes();
}

void FunctionGathers::findCommands() {
  for (Operation &op : func.getBody().front()) {
    position[&op] = compute.size();
    auto command = dyn_cast<ScheduledOpInterface>(op);
    if (!command)
      continue;
    SmallVector<BufferAccess> touched = accessesOf(&op);
    for (const BufferAccess &access : touched)
      if (access.isWrite)
        writes[access.root].push_back({&op, access});
    if (!isComputeCommand(&op))
      continue;
    compute.push_back(&op);
    accesses.push_back(std::move(touched));
    seconds.push_back(costs.seconds(command));
  }
}

/// The compute commands from the first to the last that reads what `gather` brings. Of a place that other
/// gathers fill as well, up to where the next one does. Where `replacer` comes before all of them, the value
/// is needed there: what it leaves of the shard is another.
analysis::GatherUse FunctionGathers::useOf(CommunicateOp gather, Operation *replacer) const {
  int64_t begin = position.at(gather), count = compute.size(), first = count, last = begin;
  Value root = gather.getOutputs()[0];
  if (isa<BlockArgument>(root))
    for (Operation *user : root.getUsers())
      if (isa<CommunicateOp>(user) && gather->isBeforeInBlock(user))
        count = std::min(count, position.at(user));
  for (int64_t command = begin; command < count; ++command)
    if (llvm::any_of(accesses[command], [&](const BufferAccess &access) { return access.root == root; }))
      first = std::min(first, command), last = command + 1;
  if (last > begin && replacer)
    first = std::min(first, position.at(replacer));
  return {std::min(first, last), std::max(last, first == begin ? begin + 1 : last)};
}

/// The transfer that brings what `gather` reads, for it alone, from a state that nothing before it writes: it
/// may go wherever the gather does. Null where there is none.
TransferOp FunctionGathers::findLoad(CommunicateOp gather) const {
  const Value shard = windowOf(gather.getInputs()[0]).root;
  auto written = writes.find(shard);
  if (!shard.getDefiningOp<AllocOp>() || written == writes.end() || written->second.size() != 1)
    return {};
  auto load = dyn_cast<TransferOp>(written->second.front().command);
  const bool isFixed = !load || llvm::any_of(accessesOf(load), [&](const BufferAccess &access) {
    if (access.isWrite)
      return false;
    auto source = writes.find(access.root);
    return !isa<BlockArgument>(access.root) ||
           (source != writes.end() && source->second.front().command->isBeforeInBlock(load));
  });
  return isFixed ? TransferOp() : load;
}

/// The compute command behind the last command that writes what `gather` reads, which may be a transfer that
/// brings it to the device.
int64_t FunctionGathers::earliestIssue(CommunicateOp gather) const {
  BufferAccess shard = windowOf(gather.getInputs()[0]);
  int64_t earliest = 0;
  if (auto known = writes.find(shard.root); known != writes.end())
    for (const auto &[command, access] : known->second)
      if (command->isBeforeInBlock(gather) && access.conflictsWith(shard))
        earliest = position.at(command) + isComputeCommand(command);
  return earliest;
}

/// The first command behind `gather` that writes what it reads, a compute command or one beside; null when
/// none does.
Operation *FunctionGathers::findReplacer(CommunicateOp gather) const {
  BufferAccess shard = windowOf(gather.getInputs()[0]);
  if (auto known = writes.find(shard.root); known != writes.end())
    for (const auto &[command, access] : known->second)
      if (gather->isBeforeInBlock(command) && access.conflictsWith(shard))
        return command;
  return nullptr;
}

void FunctionGathers::addGather(CommunicateOp gather) {
  GatheredValue value;
  value.shard = windowOf(gather.getInputs()[0]);
  value.state = getStateOf(func, value.shard.root);
  value.type = cast<BufferType>(gather.getOutputs()[0].getType());
  if (findLoad(gather))
    value.loadedBytes = cast<BufferType>(gather.getInputs()[0].getType()).getSizeInBytes();
  else
    value.earliest = earliestIssue(gather);
  value.replacer = findReplacer(gather);
  value.hasPlace = isa<BlockArgument>(gather.getOutputs()[0]);
  // Planned times are doubled, as a machine that does other things as well may take them.
  value.seconds = 2 * costs.seconds(gather);
  value.uses = {useOf(gather, value.replacer)};
  value.gathers = {{gather}};
  for (GatheredValue &known : values) {
    // A shard that has changed since is another value.
    if (!known.isSameAs(value) || known.shard.root != value.shard.root || known.replacer != value.replacer)
      continue;
    if (value.uses[0].begin < known.uses.back().end) {
      known.uses.back().end = std::max(known.uses.back().end, value.uses[0].end);
      known.gathers.back().push_back(gather);
      return;
    }
    known.uses.push_back(value.uses[0]);
    known.gathers.push_back({gather});
    return;
  }
  values.push_back(std::move(value));
}

bool FunctionGathers::changes(const GatheredValue &value) const {
  auto it = writes.find(value.shard.root);
  return it != writes.end() && llvm::any_of(it->second, [&](const Write &write) {
           return write.access.conflictsWith(value.shard);
         });
}

/// Issues `gather` before a compute command, and before what changes the shard: a transfer that stands before
/// that command may. What brings the shard goes with it.
void FunctionGathers::issueBefore(const GatheredValue &value, CommunicateOp gather, int64_t command) {
  Operation *target = compute[command];
  // By positions, which moves do not change: each would have the block number all its ops anew.
  if (value.replacer && position.at(value.replacer) + isComputeCommand(value.replacer) <= command)
    target = value.replacer;
  // Not behind what only compute waits for.
  while (auto wait = dyn_cast_or_null<WaitOp>(target->getPrevNode())) {
    if (wait.getStream() != StreamKind::Compute)
      break;
    target = wait;
  }
  gather->moveBefore(target);
  if (TransferOp load = findLoad(gather); load && gather->isBeforeInBlock(load))
    load->moveBefore(gather);
}

/// Erases `gather`; what it brought is in `place`.
static void replaceGather(CommunicateOp gather, Value place) {
  Value whole = gather.getOutputs()[0];
  gather.erase();
  if (whole == place)
    return;
  whole.replaceAllUsesWith(place);
  whole.getDefiningOp()->erase();
}

void FunctionGathers::joinUses(const GatheredValue &value, uint32_t firstUse, uint32_t lastUse,
                               int64_t issue) {
  CommunicateOp first = value.gathers[firstUse].front();
  for (uint32_t use = firstUse; use <= lastUse; ++use)
    for (CommunicateOp other : value.gathers[use])
      if (other != first)
        replaceGather(other, first.getOutputs()[0]);
  issueBefore(value, first, issue);
}

void FunctionGathers::moveTo(const GatheredValue &value, Value place, bool isGathered, int64_t issue) {
  CommunicateOp first = value.gathers.front().front();
  for (const auto &use : value.gathers)
    for (CommunicateOp gather : use)
      if (gather != first || !isGathered)
        replaceGather(gather, place);
  if (!isGathered)
    return;
  Value whole = first.getOutputs()[0];
  whole.replaceAllUsesWith(place);
  whole.getDefiningOp()->erase();
  issueBefore(value, first, issue);
}
