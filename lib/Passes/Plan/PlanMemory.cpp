//===- PlanMemory.cpp - Gives every buffer an offset in its arena ----------------===//
//
// Collects one packing problem from all segments (states and inputs live in all of them), solves it, has the
// independent checker look at the answer, and writes the offsets into the IR.
//
//===---------------------------------------------------------------------------===//
#include "ds/Analysis/Packing/MemoryPlan.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Runtime/Program/Program.h"

namespace mlir::ds {
#define GEN_PASS_DEF_PLANMEMORY
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
using ::ds::analysis::PackBuffer;

static constexpr std::array kSpaces = {Space::Device, Space::Host, Space::Nvme};

namespace {
/// An entry of the packing problem of a space.
struct Entry {
  Space space = Space::Device;
  size_t index = 0;
};

/// The packing problems of a module, one for each space, and whose buffer each of their entries is.
struct ModuleProblem {
  std::array<::ds::analysis::PackProblem, kSpaces.size()> problems;
  SmallVector<std::pair<StateOp, Entry>> states;
  llvm::MapVector<StringAttr, Entry> inputs;
  SmallVector<std::pair<AllocOp, Entry>> allocs;

  Entry add(Space space, const PackBuffer &buffer) {
    std::vector<PackBuffer> &buffers = problems[static_cast<size_t>(space)].buffers;
    buffers.push_back(buffer);
    return {space, buffers.size() - 1};
  }
  /// Adds something that lives all the time.
  Entry addPermanent(BufferType type) {
    PackBuffer buffer;
    buffer.bytes = reservedBytes(type);
    if (type.getSpace() == Space::Nvme)
      buffer.alignment = ::ds::rt::kStorageUnit;
    buffer.segment = PackBuffer::kAllSegments;
    return add(type.getSpace(), buffer);
  }
};

/// A plan of each space.
using Plans = std::array<::ds::analysis::MemoryPlan, kSpaces.size()>;
} // namespace

/// Adds the inputs and allocations of `func`, which is segment number `segment`.
static void addSegment(func::FuncOp func, uint32_t segment, ModuleProblem &module) {
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes())) {
    StringAttr input = getInputOf(func, index);
    if (input && !module.inputs.contains(input))
      module.inputs[input] = module.addPermanent(cast<BufferType>(type));
  }
  ScheduledFunction scheduled(func);
  for (const AllocLifetime &lifetime : scheduled.lifetimes) {
    AllocOp alloc = lifetime.alloc;
    BufferType type = alloc.getBuffer().getType();
    PackBuffer buffer;
    buffer.bytes = reservedBytes(alloc);
    buffer.segment = segment;
    buffer.alignment = alloc.getAlignment().value_or(buffer.alignment);
    buffer.begin = lifetime.begin;
    buffer.end = lifetime.end;
    module.allocs.push_back({alloc, module.add(type.getSpace(), buffer)});
  }
}

/// Solves the problem of each space, and looks at each solution once more.
static FailureOr<Plans> solve(ModuleOp module, const ModuleProblem &problem) {
  Plans plans;
  for (Space space : kSpaces) {
    const ::ds::analysis::PackProblem &own = problem.problems[static_cast<size_t>(space)];
    ::ds::Result<::ds::analysis::MemoryPlan> plan = ::ds::analysis::planMemory(own);
    if (!plan)
      return module.emitError("no plan of ") << stringifySpace(space) << " memory: " << plan.error().message;
    if (std::optional<::ds::analysis::Conflict> conflict = ::ds::analysis::check(*plan, own))
      return module.emitError("the plan of ")
             << stringifySpace(space) << " memory is wrong: " << conflict->message;
    plans[static_cast<size_t>(space)] = std::move(*plan);
  }
  return plans;
}

/// Writes the offsets of `plans` where printing and lowering look for them, and the arenas. The device's is
/// there even if it is empty; the others where something lies in them.
static void annotate(ModuleOp module, ModuleProblem &problem, const Plans &plans) {
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto offsetOf = [&](Entry entry) {
    return builder.getI64IntegerAttr(plans[static_cast<size_t>(entry.space)].offsets[entry.index]);
  };
  for (auto &[state, entry] : problem.states)
    state.setOffsetAttr(offsetOf(entry));
  for (auto &[alloc, entry] : problem.allocs)
    alloc.setOffsetAttr(offsetOf(entry));
  for (func::FuncOp func : getSegments(module))
    for (unsigned index = 0; index < func.getNumArguments(); ++index)
      if (StringAttr input = getInputOf(func, index))
        func.setArgAttr(index, kOffsetAttr, offsetOf(problem.inputs[input]));
  for (Space space : kSpaces)
    if (const ::ds::analysis::MemoryPlan &plan = plans[static_cast<size_t>(space)];
        space == Space::Device || plan.arenaBytes > 0)
      builder.create<ArenaOp>(module.getLoc(), space, plan.arenaBytes, plan.lowerBound);
  setPhase(module, Phase::Planned);
}

namespace {
struct PlanMemory : mlir::ds::impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requirePhase(module, getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    ModuleProblem problem;
    for (StateOp state : getPlacedStates(module))
      problem.states.push_back(
          {state, problem.addPermanent(BufferType::getContiguous(state.getLocalType(), state.getHome()))});
    for (auto [index, func] : llvm::enumerate(getSegments(module)))
      addSegment(func, index, problem);
    FailureOr<Plans> plans = solve(module, problem);
    if (failed(plans))
      return signalPassFailure();
    annotate(module, problem, *plans);
  }
};
} // namespace
