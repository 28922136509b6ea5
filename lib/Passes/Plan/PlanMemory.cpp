//===- PlanMemory.cpp - Gives every buffer an offset in its arena ----------------===//
//
// Collects one packing problem from all segments (states and inputs live in all of them), solves it, has the
// independent checker look at the answer, and writes the offsets into the IR.
//
//===---------------------------------------------------------------------------===//
#include "ds/Analysis/MemoryPlan.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"

namespace mlir::ds {
#define GEN_PASS_DEF_PLANMEMORY
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
using ::ds::analysis::PackBuffer;

namespace {
/// The packing problem of a module, and whose buffer each of its entries is.
struct ModuleProblem {
  ::ds::analysis::PackProblem problem;
  SmallVector<StateOp> states;                    ///< the first entries
  llvm::MapVector<StringAttr, int64_t> inputs;    ///< input name -> entry
  SmallVector<std::pair<AllocOp, size_t>> allocs; ///< with their entries

  /// Adds something that lives all the time.
  size_t addPermanent(int64_t bytes) {
    PackBuffer buffer;
    buffer.bytes = bytes;
    buffer.segment = PackBuffer::kAllSegments;
    problem.buffers.push_back(buffer);
    return problem.buffers.size() - 1;
  }
};
} // namespace

/// Adds the inputs and allocations of `func`, which is segment number `segment`.
static void addSegment(func::FuncOp func, uint32_t segment, ModuleProblem &module) {
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes())) {
    StringAttr input = getInputOf(func, index);
    if (input && !module.inputs.contains(input))
      module.inputs[input] = module.addPermanent(cast<BufferType>(type).getSizeInBytes());
  }
  ScheduledFunction scheduled(func);
  for (const AllocLifetime &lifetime : scheduled.lifetimes) {
    AllocOp alloc = lifetime.alloc;
    PackBuffer buffer;
    buffer.bytes = alloc.getBuffer().getType().getSizeInBytes();
    buffer.segment = segment;
    if (auto alignment = alloc->getAttrOfType<IntegerAttr>(kAlignmentAttr))
      buffer.alignment = alignment.getInt();
    buffer.begin = lifetime.begin;
    buffer.end = lifetime.end;
    module.allocs.push_back({alloc, module.problem.buffers.size()});
    module.problem.buffers.push_back(buffer);
  }
}

/// Writes the offsets of `plan` where printing and lowering look for them.
static void annotate(ModuleOp module, ModuleProblem &problem, const ::ds::analysis::MemoryPlan &plan) {
  Builder builder(module.getContext());
  for (auto [index, state] : llvm::enumerate(problem.states))
    state->setAttr(kOffsetAttr, builder.getI64IntegerAttr(plan.offsets[index]));
  for (auto &[alloc, entry] : problem.allocs)
    alloc.setOffsetAttr(builder.getI64IntegerAttr(plan.offsets[entry]));
  for (func::FuncOp func : getSegments(module))
    for (unsigned index = 0; index < func.getNumArguments(); ++index)
      if (StringAttr input = getInputOf(func, index))
        func.setArgAttr(index, kOffsetAttr, builder.getI64IntegerAttr(plan.offsets[problem.inputs[input]]));
  module->setAttr(kPlanAttr,
                  builder.getDictionaryAttr(
                      {builder.getNamedAttr("arena", builder.getI64IntegerAttr(plan.arenaBytes)),
                       builder.getNamedAttr("lower_bound", builder.getI64IntegerAttr(plan.lowerBound))}));
  setPhase(module, Phase::Planned);
}

namespace {
struct PlanMemory : mlir::ds::impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    ModuleProblem problem;
    for (StateOp state : getPlacedStates(module)) {
      problem.addPermanent(BufferType::getContiguous(state.getLocalType()).getSizeInBytes());
      problem.states.push_back(state);
    }
    for (auto [index, func] : llvm::enumerate(getSegments(module)))
      addSegment(func, index, problem);
    ::ds::Result<::ds::analysis::MemoryPlan> plan = ::ds::analysis::planMemory(problem.problem);
    if (!plan) {
      module.emitError("no memory plan: ") << plan.error().message;
      return signalPassFailure();
    }
    if (std::optional<::ds::analysis::Conflict> conflict = ::ds::analysis::check(*plan, problem.problem)) {
      module.emitError("the memory plan is wrong: ") << conflict->message;
      return signalPassFailure();
    }
    annotate(module, problem, *plan);
  }
};
} // namespace
