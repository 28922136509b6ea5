//===- VerifyStages.cpp - Stages that make one model ------------------------------===//
//
// Passes see one stage at a time. What several stages must say alike is compared here, each with the first
// that says it: the mesh, values that several have by one name, and what they send each other.
//
//===---------------------------------------------------------------------------===//
#include "StageMeetings.h"
#include "ds/Dialect/MeshShape.h"
#include "ds/Dialect/Stages.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"

namespace mlir::ds {
#define GEN_PASS_DEF_VERIFYSTAGES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

/// Verifies that `stage` has segments, which are of one stage as its schedules are (E2).
static LogicalResult verifyOneStage(ModuleOp stage) {
  std::optional<int64_t> number = findStageNumber(stage);
  auto funcs = stage.getOps<func::FuncOp>();
  if (llvm::none_of(funcs, [](func::FuncOp func) { return bool(SegmentAttr::of(func)); }))
    return stage.emitOpError("expects segments of a stage, but has none");
  for (func::FuncOp func : funcs)
    if (SegmentAttr segment = SegmentAttr::of(func); segment && segment.getStage() != *number)
      return func.emitOpError("expects a segment of stage ")
             << *number << ", as the others of its module are, but is of stage " << segment.getStage();
  for (ScheduleOp schedule : stage.getOps<ScheduleOp>())
    if (static_cast<int64_t>(schedule.getStage()) != *number)
      return schedule.emitOpError("expects to be of stage ")
             << *number << ", as its module is, but is of stage " << schedule.getStage();
  return success();
}

/// "[pp = 2, dp = 2] samples dp stages pp"
static std::string spell(const MeshShape &shape) {
  std::string text = shape.mesh.spell();
  for (auto [set, axes] :
       {std::pair("samples", shape.samples), {"zero", shape.zero}, {"stages", shape.stages}})
    if (!axes.isEmpty())
      text += std::string(" ") + set + " " + shape.mesh.spell(axes);
  return text;
}

/// Verifies that all declare the mesh of the first (E3).
static LogicalResult verifyMeshes(ArrayRef<ModuleOp> stages) {
  for (ModuleOp stage : stages)
    if (!MeshOp::lookup(stage)) {
      InFlightDiagnostic error = stage.emitOpError("expects a mesh, but declares none");
      error.attachNote() << "all stages declare the same, as ds.mesh @mesh axes [pp = 2] stages pp";
      return error;
    }
  const MeshShape expected = getMeshShape(stages.front());
  for (ModuleOp stage : stages.drop_front())
    if (const MeshShape shape = getMeshShape(stage); !(shape == expected)) {
      InFlightDiagnostic error = MeshOp::lookup(stage).emitOpError("expects the mesh of all stages, ")
                                 << spell(expected) << ", but got " << spell(shape);
      error.attachNote(MeshOp::lookup(stages.front()).getLoc())
          << "stage " << *findStageNumber(stages.front()) << " declares it here";
      return error;
    }
  return success();
}

/// Verifies that `stages`, which are in order, are those of the mesh (E4).
static LogicalResult verifyNumbers(ModuleOp module, ArrayRef<ModuleOp> stages) {
  const MeshShape shape = getMeshShape(stages.front());
  const int64_t count = shape.mesh.size(shape.stages);
  for (size_t index = 0; index < stages.size(); ++index) {
    ModuleOp stage = stages[index];
    const int64_t number = *findStageNumber(stage);
    if (number >= count)
      return stage.emitOpError("expects a stage below ")
             << count << ", the ranks of its mesh along " << shape.mesh.spell(shape.stages)
             << ", but is stage " << number;
    if (index == 0 || number != *findStageNumber(stages[index - 1]))
      continue;
    InFlightDiagnostic error = stage.emitOpError("expects each stage once, but stage ")
                               << number << " is there twice";
    error.attachNote(ModuleOp(stages[index - 1]).getLoc()) << "it is this one already";
    return error;
  }
  for (int64_t number = 0; number < count; ++number)
    if (number >= static_cast<int64_t>(stages.size()) || *findStageNumber(stages[number]) != number)
      return module.emitOpError("expects ")
             << count << " stages, the ranks of the mesh along " << shape.mesh.spell(shape.stages)
             << ", but stage " << number << " is missing";
  return success();
}

/// What two states of one name have to have in common; empty where they do.
static std::string findDifference(StateOp a, StateOp b) {
  if (a.getTensorType() != b.getTensorType())
    return "type";
  if (a.getRole() != b.getRole())
    return "role";
  if (a.getOwnerAttr() != b.getOwnerAttr() || a.getSlot() != b.getSlot())
    return "owner or slot";
  if (a.getInit() != b.getInit() || a.getTrainable() != b.getTrainable())
    return "initial value or training";
  if (a.getTied() && (a.getShards() != b.getShards() || a.getView() != b.getView() ||
                      a.getExisting() != b.getExisting() || a.getPieces() != b.getPieces()))
    return "the parts that ranks have of it";
  return {};
}

/// Verifies that `op` says the same of `name` as the first that has it, which `firsts` knows; `what` is in
/// what they differ (E5).
template <class Op, class Compare>
static LogicalResult verifyCopy(Op op, StringRef name, const char *kind, llvm::StringMap<Op> &firsts,
                                Compare findDifference) {
  auto [first, isNew] = firsts.try_emplace(name, op);
  std::string difference = isNew ? std::string() : findDifference(first->second, op);
  if (difference.empty())
    return success();
  InFlightDiagnostic error = op.emitOpError("expects ")
                             << kind << " '" << name << "' to be the same on all stages, but they differ in "
                             << difference;
  error.attachNote(first->second.getLoc()) << "another stage has it here";
  return error;
}

/// The tensor that argument `index` of `func` is, or lies in.
static Type tensorOf(func::FuncOp func, unsigned index) {
  Type type = func.getArgumentTypes()[index];
  auto buffer = dyn_cast<BufferType>(type);
  return buffer ? buffer.getTensor() : type;
}

/// The argument of `func` that is input `name`.
static std::optional<unsigned> findInput(func::FuncOp func, StringRef name) {
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (StringAttr input = getInputOf(func, index); input && input.getValue() == name)
      return index;
  return std::nullopt;
}

/// Verifies what stages have by one name: states, buckets and what waits between segments being of one stage,
/// and inputs (E5).
static LogicalResult verifyNames(ArrayRef<ModuleOp> stages) {
  llvm::StringMap<StateOp> states;
  llvm::StringMap<func::FuncOp> inputs;
  for (ModuleOp stage : stages) {
    for (StateOp state : stage.getOps<StateOp>())
      if (!state.getBucket() && !state.getSlots() &&
          failed(verifyCopy(state, state.getSymName(), "state", states, findDifference)))
        return failure();
    for (func::FuncOp func : stage.getOps<func::FuncOp>())
      for (unsigned index = 0; index < func.getNumArguments(); ++index) {
        StringAttr name = getInputOf(func, index);
        auto compare = [&](func::FuncOp a, func::FuncOp b) -> std::string {
          return tensorOf(a, *findInput(a, name.getValue())) == tensorOf(b, index) ? "" : "type";
        };
        if (name && failed(verifyCopy(func, name.getValue(), "input", inputs, compare)))
          return failure();
      }
  }
  return success();
}

/// Verifies that held-out data go through all stages or none (E6).
static LogicalResult verifyEvaluations(ArrayRef<ModuleOp> stages) {
  auto evaluates = [](ModuleOp stage) {
    return llvm::any_of(stage.getOps<func::FuncOp>(), [](func::FuncOp func) {
      SegmentAttr segment = SegmentAttr::of(func);
      return segment && segment.does(Work::Evaluation);
    });
  };
  ModuleOp first = stages.front();
  for (ModuleOp stage : stages)
    if (evaluates(stage) != evaluates(first)) {
      ModuleOp without = evaluates(first) ? stage : first, with = evaluates(first) ? first : stage;
      InFlightDiagnostic error = without.emitOpError("expects an evaluation, as stage ")
                                 << *findStageNumber(with) << " has one, but has none";
      error.attachNote(with.getLoc()) << "held-out data go through all stages or none";
      return error;
    }
  return success();
}

namespace {
struct VerifyStages : mlir::ds::impl::VerifyStagesBase<VerifyStages> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (hasStages(getOperation()) && failed(verify(getOperation())))
      signalPassFailure();
  }

  static LogicalResult verify(ModuleOp module) {
    for (Operation &op : *module.getBody())
      if (!isa<ModuleOp>(op)) // E1.
        return op.emitOpError("expects to be in a stage: a module of stages has nothing beside them");
    SmallVector<ModuleOp> stages = getStages(module);
    for (ModuleOp stage : stages)
      if (failed(verifyOneStage(stage)))
        return failure();
    stages = getStages(module);
    if (failed(verifyMeshes(stages)) || failed(verifyNumbers(module, stages)) ||
        failed(verifyNames(stages)) || failed(verifyEvaluations(stages)))
      return failure();
    for (ModuleOp stage : stages) {
      FailureOr<PhaseRange> phases = findPhases(stage);
      if (failed(phases))
        return failure();
      if (phases->first < Phase::Scheduled)
        return success();
    }
    return verifyStageMeetings(stages); // E7.
  }
};
} // namespace
