//===- StageMeetings.cpp - What stages of a module have with each other ---------===//
//
// Messages and collectives are all that stages have with each other, so a program of these alone is made of
// the module, and the runtime's verifier plays it: what it says of a program that is read from a file it says
// of one that is still to be made.
//
//===---------------------------------------------------------------------------===//
#include "StageMeetings.h"
#include "Support/RuntimeBuffer.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/ScheduledFunction.h"
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
  LogicalResult addSegment(func::FuncOp func);
  void addSchedules(ModuleOp module);

  rt::Program program;
  SmallVector<CommunicateOp> ops;

private:
  LogicalResult addCommand(CommunicateOp op);
  void endExchange(size_t first);

  MeshOp mesh;
  llvm::StringMap<uint32_t> segments;
};

} // namespace

static bool isMessage(Operation *op) {
  auto communicate = dyn_cast_or_null<CommunicateOp>(op);
  return communicate && traitsOf(communicate.getKind()).isMessage;
}

/// Whether a message belongs to the exchange of the command before it.
static bool continues(Operation *before, Operation *op) {
  return isMessage(before) && isMessage(op) &&
         cast<CommunicateOp>(before).getStream() == cast<CommunicateOp>(op).getStream() &&
         cast<CommunicateOp>(before).getAxes() == cast<CommunicateOp>(op).getAxes();
}

LogicalResult MeetingsBuilder::addCommand(CommunicateOp op) {
  bool message = isMessage(op);
  // A message has the name of what is sent, which both ends know.
  std::string layer = layerOf(op);
  rt::Collective collective = toRuntimeCollective(op, layer.empty() ? "message" : layer);
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
    program.params.push_back(0);
  command.numParams = program.params.size() - command.firstParam;
  program.collectives.push_back(std::move(collective));
  program.commands.push_back(command);
  ops.push_back(op);
  return success();
}

/// Counts the messages behind each one from `first` on, up to the last command.
void MeetingsBuilder::endExchange(size_t first) {
  for (size_t i = first; i < program.commands.size(); ++i)
    program.params[program.commands[i].firstParam + 1] = program.commands.size() - 1 - i;
}

LogicalResult MeetingsBuilder::addSegment(func::FuncOp func) {
  SegmentAttr kind = SegmentAttr::of(func);
  auto numStages = static_cast<int64_t>(program.stages.size());
  if (kind.getStage() >= numStages)
    return func.emitOpError("expects a stage below ") << numStages << ", but is of stage " << kind.getStage();
  rt::Segment segment;
  segment.stage = kind.getStage();
  segment.firstCommand = program.commands.size();
  Operation *before = nullptr;
  size_t first = 0; // of the exchange
  for (Operation &op : func.getBody().front()) {
    if (!isa<ScheduledOpInterface>(op))
      continue;
    if (auto communicate = dyn_cast<CommunicateOp>(op)) {
      if (failed(addCommand(communicate)))
        return failure();
      if (!continues(before, &op) || program.commands.size() - first > rt::kMaxMessages)
        first = program.commands.size() - 1;
      if (isMessage(&op))
        endExchange(first);
    }
    before = &op;
  }
  segment.numCommands = program.commands.size() - segment.firstCommand;
  segments[func.getSymName()] = program.segments.size();
  if (kind.does(Work::Evaluation))
    program.stages[segment.stage].evaluation = program.segments.size();
  program.segments.push_back(std::move(segment));
  return success();
}

/// Where there is no schedule, a step runs each of its segments once.
void MeetingsBuilder::addSchedules(ModuleOp module) {
  bool hasSchedule = !module.getOps<ScheduleOp>().empty();
  for (auto [index, segment] : llvm::enumerate(program.segments))
    if (rt::Stage &stage = program.stages[segment.stage];
        !hasSchedule && stage.evaluation != static_cast<int32_t>(index))
      stage.schedule.push_back({static_cast<uint32_t>(index), 0, 1});
  for (ScheduleOp schedule : module.getOps<ScheduleOp>())
    for (RunAttr run : schedule.getRuns().getAsRange<RunAttr>())
      program.stages[schedule.getStage()].schedule.push_back(
          {segments.at(run.getSegment().getValue()), static_cast<uint32_t>(run.getFirst()),
           static_cast<uint32_t>(std::min<int64_t>(run.getCount(), UINT32_MAX))});
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

LogicalResult mlir::ds::verifyStageMeetings(ModuleOp module) {
  MeshOp mesh = MeshOp::lookup(module);
  if (!mesh)
    return success();
  MeetingsBuilder builder(mesh);
  if (builder.program.stages.size() == 1 && !findMessage(module, /*all=*/true))
    return success();
  if (Operation *message = findMessage(module, /*all=*/false)) // E7.
    return message->emitOpError("expects to be in a segment, for of others nobody knows when they run");
  for (func::FuncOp func : getSegments(module))
    if (failed(builder.addSegment(func)))
      return failure();
  builder.addSchedules(module);
  std::optional<rt::Mismeeting> mistake = rt::findMismeeting(builder.program);
  if (!mistake)
    return success();
  InFlightDiagnostic error = builder.ops[mistake->command].emitOpError() << mistake->what; // E7.
  if (mistake->other)
    error.attachNote(builder.ops[*mistake->other].getLoc())
        << "rank " << mistake->otherRank << ' ' << mistake->ofOther;
  return failure();
}
