//===- StageMeetings.cpp - What stages of a model have with each other ----------===//
//
// Messages and collectives are all that stages have with each other, so a program of these alone is made of
// their modules, and the runtime's verifier plays it: what it says of a program that is read from a file it
// says of one that is still to be made.
//
//===---------------------------------------------------------------------------===//
#include "StageMeetings.h"
#include "Support/Exchanges.h"
#include "Support/RuntimeBuffer.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Passes/StateNames.h"
#include "ds/Runtime/Program/Messages.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

namespace {

/// The program, and the op of each of its commands.
class MeetingsBuilder {
public:
  explicit MeetingsBuilder(MeshOp mesh) : mesh(mesh) {
    program.mesh = mesh.getMesh();
    program.stageAxes = mesh.find(mesh.getStagesAttr());
    program.stages.resize(program.mesh.size(program.stageAxes));
    program.world = program.mesh.size();
  }
  LogicalResult addModule(ModuleOp module);

  rt::Program program;
  SmallVector<CommunicateOp> ops;

private:
  LogicalResult addSegment(func::FuncOp func);
  LogicalResult addCommand(CommunicateOp op, const Exchanges &exchanges);
  void addSchedules(ModuleOp module);

  MeshOp mesh;
  llvm::StringMap<uint32_t> segments; ///< of the module that is being added
};

} // namespace

LogicalResult MeetingsBuilder::addCommand(CommunicateOp op, const Exchanges &exchanges) {
  bool message = isMessage(op);
  rt::Collective collective = toRuntimeCollective(op, nameOfMessage(op));
  collective.axes = mesh.find(op.getAxes());
  if (message && !program.stageAxes.hasAll(collective.axes)) // E7.
    return op.emitOpError("expects axes of the mesh's stages, for ranks of one stage run one text, but got ")
           << program.mesh.spell(collective.axes);
  rt::Command command;
  command.kind = rt::CommandKind::Collective;
  command.stream = static_cast<uint8_t>(op.getStream());
  command.callee = program.collectives.size();
  command.firstParam = program.params.size();
  if (traitsOf(op.getKind()).params > 0)
    program.params.push_back(op.getPeer());
  if (message)
    program.params.push_back(exchanges.behind(op));
  command.numParams = program.params.size() - command.firstParam;
  program.collectives.push_back(std::move(collective));
  program.commands.push_back(command);
  ops.push_back(op);
  return success();
}

LogicalResult MeetingsBuilder::addSegment(func::FuncOp func) {
  SegmentAttr kind = SegmentAttr::of(func);
  auto numStages = static_cast<int64_t>(program.stages.size());
  if (kind.getStage() >= numStages)
    return func.emitOpError("expects a stage below ") << numStages << ", but is of stage " << kind.getStage();
  rt::Segment segment;
  segment.stage = kind.getStage();
  segment.firstCommand = program.commands.size();
  Block &block = func.getBody().front();
  const Exchanges exchanges(block);
  for (auto communicate : block.getOps<CommunicateOp>())
    if (failed(addCommand(communicate, exchanges)))
      return failure();
  segment.numCommands = program.commands.size() - segment.firstCommand;
  segments[func.getSymName()] = program.segments.size();
  if (kind.does(Work::Evaluation))
    (isLogitsEntry(func) ? program.stages[segment.stage].logits.segment
                         : program.stages[segment.stage].evaluation) =
        static_cast<int32_t>(program.segments.size());
  program.segments.push_back(std::move(segment));
  return success();
}

/// Where there is no schedule, a step runs each of its segments once.
void MeetingsBuilder::addSchedules(ModuleOp module) {
  if (module.getOps<ScheduleOp>().empty())
    for (func::FuncOp func : getSegments(module)) {
      const uint32_t index = segments.at(func.getSymName());
      rt::Stage &stage = program.stages[program.segments[index].stage];
      if (stage.evaluation != static_cast<int32_t>(index) &&
          stage.logits.segment != static_cast<int32_t>(index))
        stage.schedule.push_back({index, 0, 1});
    }
  for (ScheduleOp schedule : module.getOps<ScheduleOp>())
    for (RunAttr run : schedule.getRuns().getAsRange<RunAttr>())
      program.stages[schedule.getStage()].schedule.push_back(
          {segments.at(run.getSegment().getValue()), static_cast<uint32_t>(run.getFirst()),
           static_cast<uint32_t>(std::min<int64_t>(run.getCount(), UINT32_MAX))});
}

LogicalResult MeetingsBuilder::addModule(ModuleOp module) {
  segments.clear();
  for (func::FuncOp func : getSegments(module))
    if (failed(addSegment(func)))
      return failure();
  addSchedules(module);
  return success();
}

/// The first message outside of segments, or, with `all`, anywhere.
static Operation *findMessage(ModuleOp module, bool all) {
  for (func::FuncOp func : module.getOps<func::FuncOp>())
    if (all || !SegmentAttr::of(func))
      for (Block &block : func.getBody())
        if (auto message = llvm::find_if(block, [](Operation &op) { return isMessage(&op); });
            message != block.end())
          return &*message;
  return nullptr;
}

LogicalResult mlir::ds::verifyStageMeetings(ArrayRef<ModuleOp> modules) {
  MeshOp mesh = MeshOp::lookup(modules.front());
  if (!mesh)
    return success();
  MeetingsBuilder builder(mesh);
  auto hasMessages = [](ModuleOp module) { return findMessage(module, /*all=*/true); };
  if (builder.program.stages.size() == 1 && llvm::none_of(modules, hasMessages))
    return success();
  for (ModuleOp module : modules)
    if (Operation *message = findMessage(module, /*all=*/false)) // E7.
      return message->emitOpError("expects to be in a segment, for of others nobody knows when they run");
  for (ModuleOp module : modules)
    if (failed(builder.addModule(module)))
      return failure();
  std::optional<rt::Mismeeting> mistake = rt::findMismeeting(builder.program);
  if (!mistake)
    return success();
  InFlightDiagnostic error = builder.ops[mistake->command].emitOpError() << mistake->what; // E7.
  if (mistake->other)
    error.attachNote(builder.ops[*mistake->other].getLoc())
        << "rank " << mistake->otherRank << ' ' << mistake->ofOther;
  return failure();
}
