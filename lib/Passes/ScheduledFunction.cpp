//===- ScheduledFunction.cpp - Commands and lifetimes of a scheduled function ----===//
#include "ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

/// Widens `lifetime` by the commands that use `buffer` or a view of it.
static void widen(Value buffer, const DenseMap<Operation *, int64_t> &position, AllocLifetime &lifetime) {
  for (Operation *user : buffer.getUsers()) {
    if (auto view = dyn_cast<ViewOp>(user)) {
      widen(view.getResult(), position, lifetime);
      continue;
    }
    auto it = position.find(user);
    if (it == position.end())
      continue;
    if (!lifetime.writer || it->second < lifetime.begin) {
      lifetime.begin = it->second;
      lifetime.writer = user;
    }
    lifetime.end = std::max(lifetime.end, it->second + 1);
  }
}

ScheduledFunction::ScheduledFunction(func::FuncOp func) : func(func) {
  DenseMap<Operation *, int64_t> position;
  for (Operation &op : func.getBody().front())
    if (isa<LaunchOp, CallOp>(op)) {
      position[&op] = commands.size();
      commands.push_back(&op);
    }
  for (AllocOp alloc : func.getBody().front().getOps<AllocOp>()) {
    AllocLifetime lifetime{alloc};
    widen(alloc.getBuffer(), position, lifetime);
    if (lifetime.writer)
      lifetimes.push_back(lifetime);
  }
}

SmallVector<func::FuncOp> mlir::ds::getSegments(ModuleOp module) {
  SmallVector<func::FuncOp> functions;
  for (func::FuncOp func : module.getOps<func::FuncOp>())
    if (func->hasAttr(DsDialect::kSegmentAttr))
      functions.push_back(func);
  llvm::stable_sort(functions, [](func::FuncOp a, func::FuncOp b) {
    auto kind = [](func::FuncOp func) {
      return func->getAttrOfType<SegmentKindAttr>(DsDialect::kSegmentAttr).getValue();
    };
    return kind(a) < kind(b);
  });
  return functions;
}

FlatSymbolRefAttr mlir::ds::getStateOf(func::FuncOp func, unsigned argument) {
  return func.getArgAttrOfType<FlatSymbolRefAttr>(argument, DsDialect::kStateAttr);
}

StringAttr mlir::ds::getInputOf(func::FuncOp func, unsigned argument) {
  return func.getArgAttrOfType<StringAttr>(argument, DsDialect::kInputAttr);
}
