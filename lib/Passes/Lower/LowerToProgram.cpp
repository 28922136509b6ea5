//===- LowerToProgram.cpp - From the planned module to the program of all ranks --===//
//
// States and kernels first, since commands name them; then each segment with its commands and lifetimes, and
// the schedule, which names segments. Nothing is decided here: what the plan does not say is a mistake.
//
//===---------------------------------------------------------------------------===//
#include "ProgramBuilder.h"
#include "Support/RuntimeBuffer.h"
#include "ds/Dialect/Stages.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/LateUpdates.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/Slots.h"
#include "ds/Passes/StateNames.h"

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

/// The rank-0 states that the host reads after a step, by their name in the log.
static bool isOutput(StringRef name) {
  return llvm::is_contained({"loss", "grad_norm", "lr", "loss_scale", "skipped", "step", "eval_loss"}, name);
}

static rt::Init toRuntimeInit(InitAttr init) {
  rt::Init result;
  result.kind = static_cast<rt::Init::Kind>(init.getKind());
  result.a = init.getA().convertToDouble();
  result.b = init.getB().convertToDouble();
  return result;
}

FailureOr<uint64_t> StageBuilder::offsetOf(Value value) {
  if (auto alloc = value.getDefiningOp<AllocOp>()) {
    if (alloc.getOffset())
      return static_cast<uint64_t>(*alloc.getOffset());
    return alloc.emitOpError("expects an offset"), failure();
  }
  if (auto view = value.getDefiningOp<ViewOp>()) {
    FailureOr<uint64_t> source = offsetOf(view.getSource());
    unsigned elementBytes =
        rt::byteSize(toRuntimeType(view.getResult().getType().getTensor().getElementType()));
    if (failed(source))
      return failure();
    return *source + view.getOffset() * elementBytes;
  }
  auto argument = cast<BlockArgument>(value);
  auto func = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto offset = func.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kOffsetAttr);
  if (FlatSymbolRefAttr state = getStateOf(func, argument))
    offset = symbols.lookup<StateOp>(state.getValue()).getOffsetAttr();
  if (offset)
    return static_cast<uint64_t>(offset.getInt());
  return func.emitOpError("expects argument ") << argument.getArgNumber() << " to have an offset", failure();
}

/// The slots of the argument that `value` is or lies in.
static rt::Buffer readSlots(Value value) {
  rt::Buffer slots;
  auto root = dyn_cast<BlockArgument>(rootOfBuffer(value));
  auto func = root ? cast<func::FuncOp>(root.getOwner()->getParentOp()) : func::FuncOp();
  const int64_t count = func ? slotsOf(func, root.getArgNumber()) : 1;
  if (count > 1) {
    slots.slots = static_cast<uint32_t>(count);
    slots.slotStride = slotStride(cast<BufferType>(root.getType()));
  }
  return slots;
}

FailureOr<uint32_t> StageBuilder::bufferIndex(Value value) {
  FailureOr<uint64_t> offset = offsetOf(value);
  if (failed(offset))
    return failure();
  // A view of what differs by rank differs by rank as well.
  std::vector<uint64_t> axisStrides(program.mesh.numAxes());
  for (auto view = value.getDefiningOp<ViewOp>(); view; view = view.getSource().getDefiningOp<ViewOp>()) {
    if (!view.getShifts())
      continue;
    uint64_t bytes = rt::byteSize(toRuntimeType(view.getResult().getType().getTensor().getElementType()));
    for (auto [stride, shift] : llvm::zip_equal(axisStrides, mesh.resolve(*view.getShifts())))
      stride += shift * bytes;
  }
  return tables.addBuffer(cast<BufferType>(value.getType()), *offset, std::move(axisStrides),
                          readSlots(value));
}

void StageBuilder::addLifetime(BufferType type, uint64_t offset, uint32_t segment, uint32_t begin,
                               uint32_t end) {
  rt::Lifetime lifetime;
  lifetime.space = static_cast<rt::Space>(type.getSpace());
  lifetime.offset = offset;
  lifetime.bytes = reservedBytes(type);
  lifetime.segment = segment;
  lifetime.begin = begin;
  lifetime.end = end;
  lifetime.stage = stage;
  program.lifetimes.push_back(lifetime);
}

/// The texts of an attribute that may be absent.
static std::vector<std::string> toStrings(ArrayAttr texts) {
  std::vector<std::string> result;
  if (texts)
    for (StringRef text : texts.getAsValueRange<StringAttr>())
      result.push_back(text.str());
  return result;
}

/// What `op` declares; its place is still to be said.
rt::State StageBuilder::describeState(StateOp op) {
  rt::State state;
  state.name = op.getSymName().str();
  state.aliases = toStrings(op.getAliases().value_or(ArrayAttr()));
  state.readNames = toStrings(op.getReadNames().value_or(ArrayAttr()));
  state.role = static_cast<rt::Role>(op.getRole());
  if (op.getOwner())
    state.owner = op.getOwner()->str();
  state.slot = op.getSlot().value_or("").str();
  state.logicalShape.assign(op.getTensorType().getShape().begin(), op.getTensorType().getShape().end());
  state.init = toRuntimeInit(op.getInit());
  state.trainable = op.getTrainable();
  state.stage = stage;
  return state;
}

void StageBuilder::addState(StateOp op, uint64_t offset) {
  rt::State state = describeState(op);
  state.layout = op.getLayout();
  state.buffer = tables.addBuffer(BufferType::getContiguous(op.getLocalType(), op.getHome()), offset);
  if (op.getRole() == Role::Scalar && isOutput(state.name))
    program.outputs.push_back({state.name, state.buffer, stage});
  program.states.push_back(std::move(state));
}

/// Adds one state per member of the bucket that `op` holds values of: a window where the rank has all of it,
/// a part of the bucket where ranks hold it together.
void StageBuilder::addBucket(StateOp op, uint64_t offset) {
  auto bucket = symbols.lookup<BucketOp>(*op.getBucket());
  BufferType local = BufferType::getContiguous(op.getLocalType(), op.getHome());
  Type element = op.getTensorType().getElementType();
  for (auto [name, start] :
       llvm::zip_equal(bucket.getMembers().getAsValueRange<FlatSymbolRefAttr>(), bucket.getOffsets())) {
    auto member = symbols.lookup<StateOp>(name);
    rt::State state = describeState(member);
    if (op.getRole() != Role::Parameter) {
      // A moment or master of the member: the bucket says how it starts, and no archive has a name for it.
      state.owner = state.name;
      state.slot = op.getSlot()->str();
      state.name += "." + state.slot;
      state.aliases.clear();
      state.readNames.clear();
      state.role = static_cast<rt::Role>(op.getRole());
      state.init = toRuntimeInit(op.getInit());
      state.trainable = false;
    }
    state.layout = member.getLayout();
    if (op.isSharded()) {
      state.layout.bucket = op.getLayout().cuts.front();
      state.layout.offset = start;
      state.layout.shardElements = op.getLocalType().getNumElements();
      state.buffer = tables.addBuffer(local, offset);
    } else {
      auto type = member.getLocalType().clone(element);
      state.buffer = tables.addBuffer(BufferType::getContiguous(type, op.getHome()),
                                      offset + start * rt::byteSize(toRuntimeType(element)));
    }
    program.states.push_back(std::move(state));
  }
}

/// Takes a state that is of the entry for logits, which only the host that asks for them knows.
bool StageBuilder::takeForLogits(StateOp op, BufferType local, uint64_t offset) {
  rt::LogitsEntry &entry = program.stages[stage].logits;
  if (op.getRole() != Role::Scalar ||
      (op.getSymName() != kLogitsRowsState && op.getSymName() != kLogitsState))
    return false;
  (op.getSymName() == kLogitsState ? entry.logits : entry.rows) = tables.addBuffer(local, offset);
  return true;
}

LogicalResult StageBuilder::addStates() {
  for (StateOp op : getPlacedStates(module)) {
    IntegerAttr offset = op.getOffsetAttr();
    if (!offset)
      return op.emitOpError("expects an offset");
    BufferType local = BufferType::getContiguous(op.getLocalType(), op.getHome());
    addLifetime(local, offset.getInt(), rt::Lifetime::kWholeStep, 0, 0);
    if (op.getGatheredFrom() || isCarried(op) || op.getSlots())
      continue; // memory that nothing outside the commands looks at
    if (takeForLogits(op, local, offset.getInt()))
      continue;
    if (op.getBucket())
      addBucket(op, offset.getInt());
    else
      addState(op, offset.getInt());
  }
  return success();
}

void StageBuilder::addInput(func::FuncOp func, unsigned argument) {
  StringAttr name = getInputOf(func, argument);
  auto offset = func.getArgAttrOfType<IntegerAttr>(argument, kOffsetAttr);
  // Segments share an input: the first that has it brings it.
  if (!name || !offset || !inputIds.try_emplace(name.getValue(), program.inputs.size()).second)
    return;
  auto type = cast<BufferType>(func.getArgumentTypes()[argument]);
  rt::Input input;
  input.name = name.str();
  input.buffer = tables.addBuffer(type, offset.getInt());
  input.stage = stage;
  addLifetime(type, offset.getInt(), rt::Lifetime::kWholeStep, 0, 0);
  if (auto indices = module->getAttrOfType<ArrayAttr>(DsDialect::kIndicesAttr))
    for (auto known : indices.getAsRange<IndicesAttr>())
      if (known.getInput() == name) {
        input.indexLimit = known.getBelow();
        input.hasIgnoreIndex = known.getIgnored().has_value();
        input.ignoreIndex = known.getIgnored().value_or(0);
        for (size_t run = 0; run < known.getTargets().size(); run += 2)
          input.targets.push_back({static_cast<uint64_t>(known.getTargets()[run]),
                                   static_cast<uint64_t>(known.getTargets()[run + 1])});
      }
  program.inputs.push_back(input);
}

/// What the program says of the work that `segment` does.
static rt::WorkSet worksOf(SegmentAttr segment) {
  rt::WorkSet works;
  for (Work work : segment.getWorks())
    works.add(work == Work::Transfer ? rt::Work::Transfer : static_cast<rt::Work>(work));
  return works;
}

LogicalResult StageBuilder::addSegment(func::FuncOp func) {
  SegmentAttr kind = SegmentAttr::of(func);
  if (kind.getStage() != stage) {
    InFlightDiagnostic error = func.emitOpError("is of stage ")
                               << kind.getStage() << ", but stands in the module of stage " << stage;
    error.attachNote() << "each stage of a program is a module of its own";
    return error;
  }
  uint32_t index = program.segments.size();
  for (unsigned argument = 0; argument < func.getNumArguments(); ++argument)
    addInput(func, argument);
  ScheduledFunction scheduled(func);
  rt::Segment segment;
  segment.name = func.getSymName().str();
  segment.stage = stage;
  segment.chunk = kind.getChunk();
  segment.work = worksOf(kind);
  segment.firstCommand = program.commands.size();
  segment.numCommands = scheduled.commands.size();
  program.segments.push_back(segment);
  exchanges.emplace(func.getBody().front());
  for (ScheduledOpInterface command : scheduled.commands)
    if (failed(addCommand(command)))
      return failure();
  for (AllocLifetime &lifetime : scheduled.lifetimes) {
    FailureOr<uint64_t> offset = offsetOf(lifetime.alloc.getBuffer());
    if (failed(offset))
      return failure();
    addLifetime(lifetime.alloc.getBuffer().getType(), *offset, index, lifetime.begin, lifetime.end);
    program.lifetimes.back().bytes = reservedBytes(lifetime.alloc);
  }
  return success();
}

/// What `run`, of a segment that does `works`, waits for, by lane.
static rt::LaneCounts waitsOf(RunAttr run, rt::WorkSet works) {
  rt::LaneCounts after{};
  const auto own = static_cast<unsigned>(rt::laneOf(works));
  for (auto [index, count] : llvm::enumerate(run.getAfter()))
    after[index < own ? index : index + 1] = static_cast<uint32_t>(count);
  return after;
}

void StageBuilder::addSchedule(uint32_t firstSegment) {
  rt::Stage &own = program.stages[stage];
  llvm::StringMap<uint32_t> ids;
  for (auto [index, func] : llvm::enumerate(getSegments(module))) {
    ids[func.getSymName()] = firstSegment + index;
    if (SegmentAttr::of(func).does(Work::Evaluation))
      (isLogitsEntry(func) ? own.logits.segment : own.evaluation) =
          static_cast<int32_t>(firstSegment + index);
  }
  for (ScheduleOp schedule : module.getOps<ScheduleOp>())
    for (RunAttr run : schedule.getRuns().getAsRange<RunAttr>()) {
      uint32_t segment = ids.at(run.getSegment().getValue());
      own.schedule.push_back({segment, static_cast<uint32_t>(run.getFirst()),
                              static_cast<uint32_t>(run.getCount()),
                              static_cast<rt::Gradients>(run.getGradients()), run.getReduced(),
                              waitsOf(run, program.segments[segment].work)});
    }
}

void StageBuilder::addArenas() {
  rt::ArenaBytes &arenas = program.stages[stage].arenas;
  for (auto arena : module.getOps<ArenaOp>())
    (arena.getSpace() == Space::Device ? arenas.device
     : arena.getSpace() == Space::Host ? arenas.host
                                       : arenas.nvme) = arena.getBytes();
  // What the log puts beside what the run has used.
  program.predicted.peakBytes = std::max(program.predicted.peakBytes, arenas.device);
}

void StageBuilder::addFiles() {
  FilesOp files = FilesOp::lookup(module);
  if (!files)
    return;
  for (std::string &name : toStrings(files.getUnused().value_or(ArrayAttr())))
    if (!llvm::is_contained(program.unusedWeights, name))
      program.unusedWeights.push_back(std::move(name));
  program.convertsWeights |= files.getConverts();
  if (program.modelConfig.empty())
    program.modelConfig = files.getConfig().value_or("").str();
}

LogicalResult StageBuilder::build() {
  if (failed(requirePhase(module, "emit=program", Phase::Planned)))
    return failure();
  addArenas();
  addFiles();
  if (failed(addStates()))
    return failure();
  const auto firstSegment = static_cast<uint32_t>(program.segments.size());
  for (func::FuncOp func : getSegments(module))
    if (failed(addSegment(func)))
      return failure();
  addSchedule(firstSegment);
  return success();
}

/// Work of one rank in a step: where stages have more and less of it, the mean.
static void predictFlops(rt::Program &program) {
  const auto count = static_cast<double>(program.stages.size());
  for (const rt::Stage &stage : program.stages)
    for (const rt::ScheduleEntry &entry : stage.schedule) {
      const rt::Segment &segment = program.segments[entry.segment];
      for (uint32_t index = 0; index < segment.numCommands; ++index) {
        const rt::Command &command = program.commands[segment.firstCommand + index];
        program.predicted.flopsPerStep += entry.count * command.flops / count;
        program.predicted.recomputeFlops +=
            command.part == rt::Part::Recompute ? entry.count * command.flops / count : 0;
      }
    }
}

/// Inputs of one name are one input: what any stage cannot read is refused for all.
static void shareLimits(rt::Program &program) {
  llvm::StringMap<rt::Input> known;
  for (const rt::Input &input : program.inputs) {
    rt::Input &common = known.try_emplace(input.name, input).first->second;
    if (input.indexLimit > 0)
      common.indexLimit =
          common.indexLimit > 0 ? std::min(common.indexLimit, input.indexLimit) : input.indexLimit;
    if (input.hasIgnoreIndex)
      common.hasIgnoreIndex = true, common.ignoreIndex = input.ignoreIndex;
    if (!input.targets.empty())
      common.targets = input.targets;
  }
  for (rt::Input &input : program.inputs) {
    const rt::Input &common = known.find(input.name)->second;
    input.indexLimit = common.indexLimit;
    input.hasIgnoreIndex = common.hasIgnoreIndex;
    input.ignoreIndex = common.ignoreIndex;
    input.targets = common.targets;
  }
}

FailureOr<rt::Program> mlir::ds::lowerStates(ModuleOp module) {
  SmallVector<ModuleOp> stages = getStages(module);
  ProgramTables tables(stages, ProgramOptions());
  for (auto [number, stage] : llvm::enumerate(stages))
    if (failed(StageBuilder(tables, stage, number).addStates()))
      return failure();
  return std::move(tables.program);
}

FailureOr<rt::Program> mlir::ds::lowerToProgram(ModuleOp module, const ProgramOptions &options) {
  SmallVector<ModuleOp> stages = getStages(module);
  ProgramTables tables(stages, options);
  if (failed(tables.addKernels(module)))
    return failure();
  for (auto [number, stage] : llvm::enumerate(stages))
    if (failed(StageBuilder(tables, stage, number).build()))
      return failure();
  rt::Program &program = tables.program;
  shareLimits(program);
  if (llvm::is_contained(program.streams, rt::StreamKind::Host))
    program.hostThreads = options.hostThreads;
  predictFlops(program);
  return std::move(program);
}
