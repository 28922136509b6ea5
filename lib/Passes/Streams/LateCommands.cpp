//===- LateCommands.cpp - Which commands of an update may be left to the next step ---===//
//
// One walk in issue order finds all that is late: a launch on the host that changes a state, and what comes
// after one that is late where one of the two writes what the other touches. What stays may therefore be done
// first. What stands between two steps is not looked at here: whoever reads states then asks for the updates.
//
//===---------------------------------------------------------------------------===//
#include "LateCommands.h"

#include "ds/Dialect/Work.h"
#include "ds/Passes/ScheduledFunction.h"

#include "llvm/ADT/IntEqClasses.h"

using namespace mlir;
using namespace mlir::ds;

namespace {
/// Windows that some commands touch, by root.
class Touched {
public:
  void add(ArrayRef<BufferAccess> accesses) {
    for (const BufferAccess &access : accesses)
      windows[access.root].push_back(access);
  }
  bool conflictsWith(ArrayRef<BufferAccess> accesses) const {
    return llvm::any_of(accesses, [&](const BufferAccess &access) {
      auto known = windows.find(access.root);
      return known != windows.end() && llvm::any_of(known->second, [&](const BufferAccess &other) {
               return other.conflictsWith(access);
             });
    });
  }

private:
  DenseMap<Value, SmallVector<BufferAccess, 2>> windows;
};
} // namespace

/// Whether `root` is a state other than a scalar; scalars are for who reads them after a step.
static bool isTensorState(func::FuncOp func, Value root) {
  return getStateOf(func, root) && cast<BufferType>(root.getType()).getTensor().getRank() > 0;
}

/// Whether `op` updates a state on the host, for certain.
static bool isUpdateOnHost(func::FuncOp func, Operation *op) {
  auto launch = dyn_cast<LaunchOp>(op);
  return launch && launch.getStream() == StreamKind::Host && getWork(op) == Work::Update &&
         llvm::any_of(launch.getOutputs(),
                      [&](Value output) { return isTensorState(func, rootOfBuffer(output)); });
}

LateCommands::LateCommands(func::FuncOp update) : update(update) {
  Touched touched;
  for (auto command : update.getBody().front().getOps<ScheduledOpInterface>()) {
    SmallVector<BufferAccess> accesses = accessesOf(command);
    if (!isUpdateOnHost(update, command) && !touched.conflictsWith(accesses)) {
      others.push_back(command);
      continue;
    }
    late.push_back(command);
    touched.add(accesses);
  }
}

static bool isSpeculative(Operation *op) {
  auto launch = dyn_cast<LaunchOp>(op);
  return cast<ScheduledOpInterface>(op).getSpeculative() || (launch && launch.getPredicate());
}

std::optional<std::string> LateCommands::findFault() const {
  if (late.empty())
    return "the host updates no state";
  if (llvm::any_of(others, isSpeculative) || llvm::any_of(late, isSpeculative))
    return "updates are speculative";
  for (Operation *command : late) {
    if (getWork(command) != Work::Update)
      return "something that is no update comes after one on the host";
    for (const BufferAccess &access : accessesOf(command)) {
      bool isState = bool(getStateOf(update, access.root));
      if (isa<BlockArgument>(access.root) && !isState)
        return "an input is read by what comes after an update on the host";
      if (isState && access.isWrite && !isTensorState(update, access.root))
        return "a scalar is made by what comes after an update on the host";
    }
  }
  if (llvm::any_of(findCarried(), [](AllocOp alloc) { return alloc.getAlignment().has_value(); }))
    return "updates share memory with what is moved to storage";
  return std::nullopt;
}

SmallVector<AllocOp> LateCommands::findCarried() const {
  DenseSet<Value> ofOthers;
  for (Operation *command : others)
    for (const BufferAccess &access : accessesOf(command))
      if (access.isWrite)
        ofOthers.insert(access.root);
  llvm::SetVector<AllocOp> carried;
  for (Operation *command : late)
    for (const BufferAccess &access : accessesOf(command))
      if (auto alloc = access.root.getDefiningOp<AllocOp>(); alloc && ofOthers.contains(access.root))
        carried.insert(alloc);
  return carried.takeVector();
}

/// Numbers of `commands`, by units: those that have to keep their order are in one, directly or through
/// others. Units come in the order of their first commands.
static SmallVector<SmallVector<size_t>> findUnits(ArrayRef<Operation *> commands) {
  DenseMap<Value, SmallVector<std::pair<size_t, BufferAccess>>> known;
  llvm::IntEqClasses units(commands.size());
  for (auto [index, command] : llvm::enumerate(commands))
    for (const BufferAccess &access : accessesOf(command)) {
      auto &others = known[access.root];
      for (const auto &[other, window] : others)
        if (window.conflictsWith(access))
          units.join(index, other);
      others.emplace_back(index, access);
    }
  units.compress(); // numbers follow the first members
  SmallVector<SmallVector<size_t>> members(units.getNumClasses());
  for (size_t index = 0; index < commands.size(); ++index)
    members[units[index]].push_back(index);
  return members;
}

SmallVector<Operation *> LateCommands::inOrderOf(func::FuncOp first) const {
  const DenseSet<Operation *> isLate(late.begin(), late.end());
  DenseMap<Attribute, SmallVector<std::pair<size_t, BufferAccess>>> touching; // of `first`, by state
  size_t count = 0;
  for (auto command : first.getBody().front().getOps<ScheduledOpInterface>()) {
    if (!isLate.contains(command)) // where it updates as well
      for (const BufferAccess &access : accessesOf(command))
        if (FlatSymbolRefAttr state = getStateOf(first, access.root))
          touching[state].emplace_back(count, access);
    ++count;
  }
  auto firstReader = [&](const BufferAccess &written) {
    auto known = touching.find(getStateOf(update, written.root));
    if (known == touching.end() || !written.isWrite)
      return count;
    for (auto [position, access] : known->second)
      if (access.begin < written.end && written.begin < access.end)
        return position;
    return count;
  };
  SmallVector<std::pair<size_t, SmallVector<size_t>>> ordered;
  for (SmallVector<size_t> &unit : findUnits(late)) {
    size_t wanted = count;
    for (size_t index : unit)
      for (const BufferAccess &access : accessesOf(late[index]))
        wanted = std::min(wanted, firstReader(access));
    ordered.emplace_back(wanted, std::move(unit));
  }
  llvm::stable_sort(ordered, llvm::less_first());
  SmallVector<Operation *> result;
  for (const auto &[wanted, unit] : ordered)
    for (size_t index : unit)
      result.push_back(late[index]);
  return result;
}

SmallVector<LateTail> mlir::ds::placeTails(func::FuncOp func, ArrayRef<Operation *> late) {
  Block &block = func.getBody().front();
  DenseSet<Operation *> isLate(late.begin(), late.end());
  SmallVector<LateTail> tails;
  for (const SmallVector<size_t> &unit : findUnits(late)) {
    auto isOnCompute = [&](size_t index) {
      return cast<ScheduledOpInterface>(late[index]).getStream() == StreamKind::Compute;
    };
    LateTail tail{{}, block.getTerminator()};
    Touched touched;
    for (auto it = llvm::find_if(unit, isOnCompute); it != unit.end(); ++it) {
      tail.first.push_back(late[*it]);
      touched.add(accessesOf(late[*it]));
    }
    if (tail.first.empty())
      continue;
    for (auto command : block.getOps<ScheduledOpInterface>())
      if (!isLate.contains(command) && touched.conflictsWith(accessesOf(command))) {
        tail.second = command;
        break;
      }
    tails.push_back(std::move(tail));
  }
  return tails;
}
