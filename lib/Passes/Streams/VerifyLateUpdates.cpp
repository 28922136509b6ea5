//===- VerifyLateUpdates.cpp - Updates of the step before come first -----------------===//
//
// What the segments that no schedule runs promise those that it runs (E8 of ds-verify-scheduled). That the
// streams keep the order in which commands stand is for events to see to, as everywhere.
//
//===---------------------------------------------------------------------------===//
#include "LateCommands.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/LateUpdates.h"
#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

/// Verifies that nothing but the update and what is late touches what is carried.
static LogicalResult verifyCarried(ModuleOp module) {
  SymbolTable symbols(module);
  for (func::FuncOp func : module.getOps<func::FuncOp>()) {
    SegmentAttr segment = SegmentAttr::of(func);
    if (segment && segment.does(Work::Update))
      continue;
    for (unsigned index = 0; index < func.getNumArguments(); ++index) {
      FlatSymbolRefAttr name = getStateOf(func, index);
      auto state = name ? symbols.lookup<StateOp>(name.getValue()) : StateOp();
      if (state && isCarried(state))
        return func.emitOpError("updates nothing, but has ")
               << name << ", which is carried to the updates of the next step";
    }
  }
  return success();
}

/// Windows of states that `func` writes, by state.
static DenseMap<Attribute, SmallVector<BufferAccess>> findWritten(func::FuncOp func) {
  DenseMap<Attribute, SmallVector<BufferAccess>> written;
  for (auto command : func.getBody().front().getOps<ScheduledOpInterface>())
    for (const BufferAccess &access : accessesOf(command))
      if (FlatSymbolRefAttr state = getStateOf(func, access.root); state && access.isWrite)
        written[state].push_back(access);
  return written;
}

static bool overlap(const BufferAccess &a, const BufferAccess &b) {
  return a.begin < b.end && b.begin < a.end;
}

/// Verifies that `rotated` updates each window that `flush` writes, and that no other work touches it before.
static LogicalResult verifyOrder(func::FuncOp rotated, func::FuncOp flush) {
  DenseMap<Attribute, SmallVector<BufferAccess>> missing = findWritten(flush);
  for (auto command : rotated.getBody().front().getOps<ScheduledOpInterface>())
    for (const BufferAccess &access : accessesOf(command)) {
      auto windows = missing.find(getStateOf(rotated, access.root));
      if (windows == missing.end())
        continue;
      if (getWork(command) == Work::Update) {
        if (access.isWrite) // a part of a window may be another's: all of them are written in order
          llvm::erase_if(windows->second, [&](const BufferAccess &window) {
            return access.begin <= window.begin && window.end <= access.end;
          });
      } else if (llvm::any_of(windows->second, [&](const BufferAccess &it) { return overlap(it, access); })) {
        return command->emitOpError("touches ") << windows->first << ", which is still to be updated";
      }
    }
  for (const auto &[state, windows] : missing)
    if (!windows.empty())
      return rotated.emitOpError("expects to update ") << state << ", as " << flush.getSymName() << " does";
  return success();
}

LogicalResult mlir::ds::verifyLateUpdates(ModuleOp module) {
  func::FuncOp rotated = getRotated(module), flush = getFlush(module);
  if (!rotated && !flush)
    return verifyCarried(module);
  if (!rotated || !flush)
    return (rotated ? rotated : flush)
               .emitOpError("updates and is not scheduled: expects a segment beside "
                            "it that updates and ")
           << (rotated ? "does nothing else" : "does other work as well");
  auto run = cast<RunAttr>((*module.getOps<ScheduleOp>().begin()).getRuns()[0]);
  auto first = module.lookupSymbol<func::FuncOp>(run.getSegment());
  SmallVector<Work> works(SegmentAttr::of(first).getWorks());
  if (!llvm::is_contained(works, Work::Update))
    works.push_back(Work::Update);
  if (SegmentAttr::of(rotated).getWorks() != ArrayRef(works) || run.getCount() != 1)
    return rotated.emitOpError("expects to do what ")
           << run << " does, and updates, but got " << SegmentAttr::of(rotated);
  if (failed(verifyOrder(rotated, flush)))
    return failure();
  return verifyCarried(module);
}
