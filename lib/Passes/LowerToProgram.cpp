//===- LowerToProgram.cpp - From the planned module to the program of one rank ---===//
#include "ds/Passes/LowerToProgram.h"

#include "RuntimeBuffer.h"
#include "ScheduledFunction.h"

#include "llvm/ADT/StringSwitch.h"

#include <map>
#include <tuple>

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

namespace {
/// Fills one program from one module.
class ProgramBuilder {
public:
  ProgramBuilder(ModuleOp module, const ProgramOptions &options) : module(module), symbols(module) {
    program.target = "cpu";
    program.threads = options.threads;
    program.microBatch = options.microBatch;
    program.accumulation = options.accumulation;
    program.streams = {rt::StreamKind::Compute};
  }

  FailureOr<rt::Program> build();

private:
  LogicalResult addStates();
  LogicalResult addSegment(func::FuncOp func);
  LogicalResult addCommand(Operation *op);
  void addKernels();
  void addInput(func::FuncOp func, unsigned argument);
  void limitInput(CallOp call);
  void addSchedule();

  /// Index of the buffer of `type` at `offset` bytes.
  uint32_t addBuffer(BufferType type, uint64_t offset);
  /// Index of the buffer that `value` names.
  FailureOr<uint32_t> bufferIndex(Value value);
  /// Bytes from the start of the arena to the first element of `value`.
  FailureOr<uint64_t> offsetOf(Value value);
  uint32_t addString(StringRef text);
  void addLifetime(BufferType type, uint64_t offset, uint32_t segment, uint32_t begin, uint32_t end);

  ModuleOp module;
  SymbolTable symbols;
  rt::Program program;
  std::map<std::tuple<uint8_t, uint8_t, uint64_t, std::vector<int64_t>, std::vector<int64_t>>, uint32_t>
      bufferIds;
  llvm::StringMap<uint32_t> stringIds;
  llvm::StringMap<uint16_t> kernelIds;
  llvm::StringMap<size_t> inputIds;
};
} // namespace

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

uint32_t ProgramBuilder::addBuffer(BufferType type, uint64_t offset) {
  rt::Buffer buffer = toRuntimeBuffer(type, offset);
  auto key = std::tuple(static_cast<uint8_t>(buffer.space), static_cast<uint8_t>(buffer.dtype), buffer.offset,
                        buffer.shape, buffer.strides);
  auto [it, isNew] = bufferIds.try_emplace(std::move(key), program.buffers.size());
  if (isNew)
    program.buffers.push_back(std::move(buffer));
  return it->second;
}

FailureOr<uint64_t> ProgramBuilder::offsetOf(Value value) {
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
  Attribute offset;
  if (FlatSymbolRefAttr state = getStateOf(func, argument.getArgNumber()))
    offset = symbols.lookup(state.getValue())->getAttr(kOffsetAttr);
  else
    offset = func.getArgAttr(argument.getArgNumber(), kOffsetAttr);
  if (auto integer = dyn_cast_or_null<IntegerAttr>(offset))
    return static_cast<uint64_t>(integer.getInt());
  return func.emitOpError("expects argument ") << argument.getArgNumber() << " to have an offset", failure();
}

FailureOr<uint32_t> ProgramBuilder::bufferIndex(Value value) {
  FailureOr<uint64_t> offset = offsetOf(value);
  if (failed(offset))
    return failure();
  return addBuffer(cast<BufferType>(value.getType()), *offset);
}

uint32_t ProgramBuilder::addString(StringRef text) {
  auto [it, isNew] = stringIds.try_emplace(text, program.strings.size());
  if (isNew)
    program.strings.push_back(text.str());
  return it->second;
}

void ProgramBuilder::addLifetime(BufferType type, uint64_t offset, uint32_t segment, uint32_t begin,
                                 uint32_t end) {
  rt::Lifetime lifetime;
  lifetime.space = static_cast<rt::Space>(type.getSpace());
  lifetime.offset = offset;
  lifetime.bytes = type.getSizeInBytes();
  lifetime.segment = segment;
  lifetime.begin = begin;
  lifetime.end = end;
  program.lifetimes.push_back(lifetime);
}

LogicalResult ProgramBuilder::addStates() {
  for (StateOp op : module.getOps<StateOp>()) {
    auto offset = op->getAttrOfType<IntegerAttr>(kOffsetAttr);
    if (!offset)
      return op.emitOpError("expects an offset");
    BufferType type = BufferType::getContiguous(op.getTensorType(), op.getHome());
    rt::State state;
    state.name = op.getSymName().str();
    if (op.getAliases())
      for (StringRef alias : op.getAliases()->getAsValueRange<StringAttr>())
        state.aliases.push_back(alias.str());
    state.role = static_cast<rt::Role>(op.getRole());
    if (op.getOwner())
      state.owner = op.getOwner()->str();
    state.logicalShape.assign(op.getTensorType().getShape().begin(), op.getTensorType().getShape().end());
    state.buffer = addBuffer(type, offset.getInt());
    state.init = toRuntimeInit(op.getInit());
    state.trainable = op.getTrainable();
    addLifetime(type, offset.getInt(), rt::Lifetime::kWholeStep, 0, 0);
    if (op.getRole() == Role::Scalar && isOutput(state.name))
      program.outputs.push_back({state.name, state.buffer});
    program.states.push_back(std::move(state));
  }
  return success();
}

void ProgramBuilder::addKernels() {
  for (KernelOp kernel : module.getOps<KernelOp>()) {
    kernelIds[kernel.getSymName()] = program.kernels.size();
    rt::Kernel entry;
    entry.name = kernel.getSymName().str();
    program.kernels.push_back(entry);
  }
}

void ProgramBuilder::addInput(func::FuncOp func, unsigned argument) {
  StringAttr name = getInputOf(func, argument);
  auto offset = func.getArgAttrOfType<IntegerAttr>(argument, kOffsetAttr);
  if (!name || !offset || !inputIds.try_emplace(name.getValue(), program.inputs.size()).second)
    return;
  auto type = cast<BufferType>(func.getArgumentTypes()[argument]);
  rt::Input input;
  input.name = name.str();
  input.buffer = addBuffer(type, offset.getInt());
  addLifetime(type, offset.getInt(), rt::Lifetime::kWholeStep, 0, 0);
  program.inputs.push_back(input);
}

/// Which operand of a library function holds indices into which dimension of which other operand.
struct IndexUse {
  unsigned ids, table;
  int64_t dim;
  bool ignores; ///< params[0] is a value that is skipped
};

static std::optional<IndexUse> indexUse(StringRef callee) {
  return llvm::StringSwitch<std::optional<IndexUse>>(callee)
      .Case("embedding_forward", IndexUse{1, 0, 0, false})
      .Case("embedding_backward", IndexUse{0, 2, 0, false})
      .Case("cross_entropy_forward", IndexUse{1, 0, 1, true})
      .Case("cross_entropy_backward", IndexUse{1, 0, 1, true})
      .Default(std::nullopt);
}

/// Where the elements of `buffer` come from, looking through views and copies.
static Value findOrigin(Value buffer) {
  if (auto view = buffer.getDefiningOp<ViewOp>())
    return findOrigin(view.getSource());
  if (buffer.getDefiningOp<AllocOp>())
    for (Operation *user : buffer.getUsers())
      if (auto copy = dyn_cast<CallOp>(user);
          copy && copy.getCallee() == "copy" && copy.getBuffers()[1] == buffer)
        return findOrigin(copy.getBuffers()[0]);
  return buffer;
}

void ProgramBuilder::limitInput(CallOp call) {
  std::optional<IndexUse> use = indexUse(call.getCallee());
  if (!use)
    return;
  auto argument = dyn_cast<BlockArgument>(findOrigin(call.getBuffers()[use->ids]));
  auto func = call->getParentOfType<func::FuncOp>();
  StringAttr name = argument ? getInputOf(func, argument.getArgNumber()) : StringAttr();
  if (!name)
    return;
  rt::Input &input = program.inputs[inputIds.at(name.getValue())];
  int64_t limit = cast<BufferType>(call.getBuffers()[use->table].getType()).getTensor().getDimSize(use->dim);
  input.indexLimit = input.indexLimit ? std::min(input.indexLimit, limit) : limit;
  if (use->ignores) {
    input.hasIgnoreIndex = true;
    input.ignoreIndex = cast<IntegerAttr>(call.getParams()[0]).getInt();
  }
}

static rt::LibraryFn libraryFn(StringRef callee) {
  return llvm::StringSwitch<rt::LibraryFn>(callee)
      .Case("matmul", rt::LibraryFn::Matmul)
      .Case("attention_forward", rt::LibraryFn::AttentionForward)
      .Case("attention_backward", rt::LibraryFn::AttentionBackward)
      .Case("embedding_forward", rt::LibraryFn::EmbeddingForward)
      .Case("embedding_backward", rt::LibraryFn::EmbeddingBackward)
      .Case("cross_entropy_forward", rt::LibraryFn::CrossEntropyForward)
      .Case("cross_entropy_backward", rt::LibraryFn::CrossEntropyBackward)
      .Case("fill", rt::LibraryFn::Fill)
      .Default(rt::LibraryFn::Copy);
}

LogicalResult ProgramBuilder::addCommand(Operation *op) {
  rt::Command command;
  command.firstOperand = program.operands.size();
  command.firstParam = program.params.size();
  auto addOperands = [&](ValueRange values) {
    for (Value value : values) {
      FailureOr<uint32_t> index = bufferIndex(value);
      if (failed(index))
        return failure();
      program.operands.push_back(*index);
      command.bytes += cast<BufferType>(value.getType()).getSizeInBytes();
    }
    return success();
  };
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    command.kind = rt::CommandKind::Kernel;
    command.callee = kernelIds.at(launch.getKernel());
    if (failed(addOperands(launch.getInputs())) || failed(addOperands(launch.getOutputs())))
      return failure();
    if (launch.getExtent())
      program.params.push_back(*launch.getExtent());
  } else {
    auto call = cast<CallOp>(op);
    command.kind = rt::CommandKind::Library;
    command.callee = static_cast<uint16_t>(libraryFn(call.getCallee()));
    command.flops = call.getFlops().value_or(0);
    if (failed(addOperands(call.getBuffers())))
      return failure();
    for (Attribute param : call.getParams())
      program.params.push_back(isa<IntegerAttr>(param)
                                   ? cast<IntegerAttr>(param).getInt()
                                   : llvm::bit_cast<int64_t>(cast<FloatAttr>(param).getValueAsDouble()));
    if (Value workspace = call.getWorkspace()) {
      FailureOr<uint32_t> index = bufferIndex(workspace);
      if (failed(index))
        return failure();
      command.workspace = *index;
    }
    limitInput(call);
  }
  command.numOperands = program.operands.size() - command.firstOperand;
  command.numParams = program.params.size() - command.firstParam;
  std::string layer = layerOf(op->getLoc());
  command.location = addString(nameOfCommand(op, symbols) + (layer.empty() ? "" : " " + layer));
  program.commands.push_back(command);
  return success();
}

LogicalResult ProgramBuilder::addSegment(func::FuncOp func) {
  uint32_t index = program.segments.size();
  for (unsigned argument = 0; argument < func.getNumArguments(); ++argument)
    addInput(func, argument);
  ScheduledFunction scheduled(func);
  rt::Segment segment;
  segment.name = func.getSymName().str();
  segment.kind =
      static_cast<rt::SegmentKind>(func->getAttrOfType<SegmentKindAttr>(DsDialect::kSegmentAttr).getValue());
  segment.firstCommand = program.commands.size();
  segment.numCommands = scheduled.commands.size();
  program.segments.push_back(segment);
  for (Operation *command : scheduled.commands)
    if (failed(addCommand(command)))
      return failure();
  for (AllocLifetime &lifetime : scheduled.lifetimes) {
    FailureOr<uint64_t> offset = offsetOf(lifetime.alloc.getBuffer());
    if (failed(offset))
      return failure();
    addLifetime(lifetime.alloc.getBuffer().getType(), *offset, index, lifetime.begin, lifetime.end);
  }
  return success();
}

void ProgramBuilder::addSchedule() {
  for (auto [index, segment] : llvm::enumerate(program.segments)) {
    switch (segment.kind) {
    case rt::SegmentKind::Evaluation:
      program.evaluation = index;
      break;
    case rt::SegmentKind::Middle:
      if (program.accumulation > 2)
        program.schedule.push_back({static_cast<uint32_t>(index), program.accumulation - 2});
      break;
    default:
      program.schedule.push_back({static_cast<uint32_t>(index), 1});
    }
  }
}

FailureOr<rt::Program> ProgramBuilder::build() {
  auto plan = module->getAttrOfType<DictionaryAttr>(kPlanAttr);
  if (!plan) {
    InFlightDiagnostic error = module.emitError("expects a planned module");
    error.attachNote() << "run ds-plan-memory first";
    return error;
  }
  program.arenas.device = plan.getAs<IntegerAttr>("arena").getInt();
  program.predicted.peakBytes = program.arenas.device;
  if (failed(addStates()))
    return failure();
  addKernels();
  for (func::FuncOp func : getSegments(module))
    if (failed(addSegment(func)))
      return failure();
  addSchedule();
  for (const rt::Slot &slot : program.schedule) {
    const rt::Segment &segment = program.segments[slot.segment];
    for (uint32_t index = 0; index < segment.numCommands; ++index)
      program.predicted.flopsPerStep += slot.count * program.commands[segment.firstCommand + index].flops;
  }
  return std::move(program);
}

FailureOr<rt::Program> mlir::ds::lowerToProgram(ModuleOp module, const ProgramOptions &options) {
  return ProgramBuilder(module, options).build();
}
