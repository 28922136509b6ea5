//===- ScheduledFunction.h - Commands and lifetimes of a scheduled function ------===//
//
// What planning, reporting and lowering all read from a function of phase scheduled: its commands in issue
// order, and for each allocation the commands between which it holds a value. An allocation lives from the
// first command that touches it, or a view of it, to the last; what another stream touches lives on until the
// compute stream has waited for that. So lifetimes stay intervals of one order, and whoever comes later in it
// comes later in time.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PASSES_SCHEDULEDFUNCTION_H
#define DS_PASSES_SCHEDULEDFUNCTION_H

#include "ds/Passes/BufferAccess.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

class Exchanges;

/// An allocation and the commands [begin, end) during which it is live.
struct AllocLifetime {
  AllocOp alloc;
  int64_t begin = 0, end = 0;
  ScheduledOpInterface writer = {}; ///< the command that touches it first
};

/// A function as a list of commands.
struct ScheduledFunction {
  explicit ScheduledFunction(func::FuncOp func);

  func::FuncOp func;
  SmallVector<ScheduledOpInterface> commands;
  SmallVector<int64_t> completion;      ///< for each command, the one at which compute knows that it has run
  SmallVector<AllocLifetime> lifetimes; ///< in order of allocation; unused allocations are left out

private:
  void findCompletions();
  void widen(Value buffer, const Exchanges &exchanges, AllocLifetime &lifetime) const;

  DenseMap<Operation *, int64_t> position;
};

/// The commands of `func` that compute, in issue order.
SmallVector<Operation *> getComputeCommands(func::FuncOp func);

/// Bytes of the device that are live while each launch and call of `func` runs: states, inputs, and
/// allocations but those `without`.
std::vector<int64_t> getLiveBytes(func::FuncOp func, const DenseSet<Operation *> &without);

/// The states of `module` that have memory of their own: members of buckets lie in the buckets' states.
SmallVector<StateOp> getPlacedStates(ModuleOp module);

/// The segments of `module` in the order in which its schedule first runs them, then those that it does not
/// run.
SmallVector<func::FuncOp> getSegments(ModuleOp module);

/// How often a step runs `func`: what its module's schedule says; in a module without one, once unless it is
/// no segment or an evaluation.
int64_t runsPerStep(func::FuncOp func);

/// Name of a function's state or input argument; null when it is the other kind.
FlatSymbolRefAttr getStateOf(func::FuncOp func, unsigned argument);
/// The same of `value`; null as well where that is no argument.
FlatSymbolRefAttr getStateOf(func::FuncOp func, Value value);
StringAttr getInputOf(func::FuncOp func, unsigned argument);

/// The states of `func`, by name, that nobody reads after it, which does not return them: gradients that
/// micro-steps have added up end with the update, and the next step's first micro-step sets them.
DenseSet<Attribute> findEnding(func::FuncOp func, const SymbolTable &symbols);

/// The argument of `func`, which takes buffers, that holds `state`; added where there is none.
Value addStateArgument(func::FuncOp func, StateOp state);

/// Bytes that a plan gives a buffer: in storage whole units, which a disk writes as one.
int64_t reservedBytes(BufferType type);
/// The same of an allocation: whole units as well where storage is moved through it.
int64_t reservedBytes(AllocOp alloc);

/// Attribute that gives inputs their place, in bytes from the start of the device's arena.
inline constexpr StringLiteral kOffsetAttr = "ds.offset";

} // namespace mlir::ds

#endif // DS_PASSES_SCHEDULEDFUNCTION_H
