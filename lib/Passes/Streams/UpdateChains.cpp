//===- UpdateChains.cpp - Launches on the host that go over the same elements -------===//
#include "UpdateChains.h"

#include "ds/Passes/ScheduledFunction.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::ds;

bool mlir::ds::isUniformUpdate(Operation *op) {
  auto launch = dyn_cast<LaunchOp>(op);
  return launch && !launch.getSpeculative() && !launch.getPredicate() &&
         launch.getStream() == StreamKind::Host && launch.getExtents() && launch.getNumItems() == 1;
}

static bool isOnStorage(TransferOp op) { return op.getStream() == StreamKind::Storage; }

static bool movesStorageOf(Operation *op) {
  auto transfer = dyn_cast<TransferOp>(op);
  return transfer && isOnStorage(transfer);
}

bool UpdateChain::movesStorage() const { return llvm::any_of(commands, movesStorageOf); }

bool UpdateChain::passesOn() const {
  return !movesStorage() && llvm::any_of(commands, llvm::IsaPred<TransferOp>);
}

UpdateChains::UpdateChains(func::FuncOp func) : body(func.getBody().front()) {
  for (Operation &op : body)
    if (isa<ScheduledOpInterface>(op)) {
      position[&op] = commands.size();
      commands.push_back(&op);
      accesses.push_back(accessesOf(&op));
    }
}

/// Whether only uniform launches over all of `alloc` touch it, and transfers that bring it from storage or
/// take it anywhere. What comes from the device stays whole: it comes as soon as it is made.
static bool isOwn(AllocOp alloc) {
  Value buffer = alloc.getBuffer();
  BufferType type = alloc.getBuffer().getType();
  if (type.getSpace() != Space::Host || type.getTensor().getRank() == 0)
    return false;
  bool isLaunched = false;
  for (Operation *user : buffer.getUsers()) {
    isLaunched |= isUniformUpdate(user);
    auto transfer = dyn_cast<TransferOp>(user);
    bool isMoved = transfer && (isOnStorage(transfer) || transfer.getSource() == buffer);
    bool isWhole = isUniformUpdate(user) &&
                   cast<LaunchOp>(user).getExtents()->front() == type.getTensor().getNumElements();
    if (!isMoved && !isWhole)
      return false;
  }
  return isLaunched;
}

SmallVector<UpdateChain> UpdateChains::find() const {
  llvm::EquivalenceClasses<Operation *> tied;
  SmallVector<Value> owned;
  for (Operation *command : commands)
    if (isUniformUpdate(command))
      tied.insert(command);
  for (AllocOp alloc : body.getOps<AllocOp>()) {
    if (!isOwn(alloc))
      continue;
    owned.push_back(alloc.getBuffer());
    Operation *first = *llvm::find_if(alloc->getUsers(), isUniformUpdate);
    for (Operation *user : alloc->getUsers())
      tied.unionSets(first, user);
  }
  llvm::MapVector<Operation *, UpdateChain> chains;
  for (Operation *command : commands)
    if (auto leader = tied.findLeader(command); leader != tied.member_end()) {
      UpdateChain &chain = chains[*leader];
      chain.commands.push_back(command);
      if (isUniformUpdate(command))
        chain.elements = cast<LaunchOp>(command).getExtents()->front();
    }
  for (Value own : owned)
    chains[tied.getLeaderValue(*own.getUsers().begin())].own.push_back(own);
  return llvm::map_to_vector(chains, [](auto &entry) { return entry.second; });
}

bool UpdateChains::canMove(const UpdateChain &chain) const {
  size_t place = 0;
  SmallVector<BufferAccess> all;
  for (Operation *launch : chain.launches()) {
    place = position.at(launch);
    if (cast<LaunchOp>(launch).getExtents()->front() != chain.elements)
      return false;
  }
  for (Operation *command : chain.commands) {
    size_t own = position.at(command);
    llvm::append_range(all, accesses[own]);
    for (size_t other = std::min(own, place); other < std::max(own, place); ++other)
      if (!llvm::is_contained(chain.commands, commands[other]) && conflict(accesses[own], accesses[other]))
        return false;
  }
  return llvm::none_of(all, [&](const BufferAccess &a) {
    return llvm::any_of(all, [&](const BufferAccess &b) {
      return a.conflictsWith(b) && (a.begin != b.begin || a.end != b.end);
    });
  });
}
