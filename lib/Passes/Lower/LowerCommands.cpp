//===- LowerCommands.cpp - Launches, calls, collectives and events --------------===//
//
// A command is a row of numbers into the program's tables. The rows stand in issue order for all streams
// together: the runtime deals them out, and only events say what waits for what.
//
//===---------------------------------------------------------------------------===//
#include "ProgramBuilder.h"
#include "Support/RuntimeCall.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/CommandNames.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

/// Where the elements of `buffer` come from, looking through views and copies.
static Value findOrigin(Value buffer) {
  for (Value next = buffer; next;) {
    buffer = next;
    auto isCopy = [&](Operation *user) {
      auto copy = dyn_cast<CallOp>(user);
      return copy && copy.getCallee() == "copy" && copy.getBuffers()[1] == buffer;
    };
    next = {};
    if (auto view = buffer.getDefiningOp<ViewOp>())
      next = view.getSource();
    else if (buffer.getDefiningOp<AllocOp>())
      if (auto copy = llvm::find_if(buffer.getUsers(), isCopy); copy != buffer.user_end())
        next = cast<CallOp>(*copy).getBuffers()[0];
  }
  return buffer;
}

// An index beyond its table would read past a buffer, and no verifier sees data: the input that it comes from
// gets the least limit of all its readers, to which the runtime holds each batch before it is used.
void ProgramBuilder::limitInput(CallOp call) {
  const LibraryEntry *function = findLibraryFunction(call.getCallee());
  const std::optional<IndexUse> &use = function->indices;
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

uint8_t ProgramBuilder::streamIndex(StreamKind kind) {
  auto stream = llvm::find(program.streams, static_cast<rt::StreamKind>(kind));
  if (stream == program.streams.end())
    stream = program.streams.insert(stream, static_cast<rt::StreamKind>(kind));
  return stream - program.streams.begin();
}

LogicalResult ProgramBuilder::addOperands(rt::Command &command, ValueRange values) {
  for (Value value : values) {
    FailureOr<uint32_t> index = bufferIndex(value);
    if (failed(index))
      return failure();
    program.operands.push_back(*index);
    command.bytes += cast<BufferType>(value.getType()).getSizeInBytes();
  }
  return success();
}

LogicalResult ProgramBuilder::addWorkspace(rt::Command &command, Value workspace) {
  if (!workspace)
    return success();
  FailureOr<uint32_t> index = bufferIndex(workspace);
  if (succeeded(index))
    command.workspace = *index;
  return index;
}

LogicalResult ProgramBuilder::addLaunch(rt::Command &command, LaunchOp launch) {
  command.kind = rt::CommandKind::Kernel;
  command.callee = kernelIds.at(launch.getKernel());
  for (int64_t item = 0; item < launch.getNumItems(); ++item)
    if (failed(addOperands(command, launch.getItemInputs(item))) ||
        failed(addOperands(command, launch.getItemOutputs(item))))
      return failure();
  if (launch.getExtents())
    llvm::append_range(program.params, *launch.getExtents());
  if (!launch.getPredicate())
    return success();
  FailureOr<uint32_t> predicate = bufferIndex(launch.getPredicate());
  if (succeeded(predicate))
    command.predicate = *predicate;
  return predicate;
}

LogicalResult ProgramBuilder::addCall(rt::Command &command, CallOp call) {
  const LibraryEntry *function = findLibraryFunction(call.getCallee());
  if (!function)
    return call.emitOpError("expects a library function, but got \"") << call.getCallee() << "\"";
  command.kind = rt::CommandKind::Library;
  command.callee = static_cast<uint32_t>(function->fn);
  command.flops = call.getFlops().value_or(0);
  if (failed(addOperands(command, call.getBuffers())))
    return failure();
  for (Attribute param : call.getParams())
    program.params.push_back(toRuntimeParam(param));
  limitInput(call);
  return addWorkspace(command, call.getWorkspace());
}

LogicalResult ProgramBuilder::addCollective(rt::Command &command, CommunicateOp op) {
  command.kind = rt::CommandKind::Collective;
  command.callee = program.collectives.size();
  bool isOneBuffer = op.getInputs() == op.getOutputs();
  if (op.getKind() == CollectiveKind::Send || op.getKind() == CollectiveKind::Recv ||
      (op.getKind() == CollectiveKind::Broadcast && !isOneBuffer))
    return op.emitOpError("has no command in a program: a ")
           << stringifyCollectiveKind(op.getKind()) << (isOneBuffer ? "" : " out of place");
  if (mesh.getSize(op.getAxes()) == 1)
    return op.emitOpError("expects axes of several ranks, but got ")
           << mesh.getMesh().spell(mesh.find(op.getAxes()));
  // What a rank says when it has waited too long: where the model has such a layer, people know it by that.
  std::string name = layerOf(op);
  program.collectives.push_back(toRuntimeCollective(op, name.empty() ? nameOfCommand(op, symbols) : name));
  program.collectives.back().axes = mesh.find(op.getAxes());
  SmallVector<Value> operands(op.getInputs());
  if (op.getKind() == CollectiveKind::Broadcast)
    program.params.push_back(op.getPeer());
  else
    llvm::append_range(operands, op.getOutputs());
  if (failed(addOperands(command, operands)))
    return failure();
  return addWorkspace(command, op.getWorkspace());
}

LogicalResult ProgramBuilder::addTransfer(rt::Command &command, TransferOp op) {
  command.kind = op.getStream() == StreamKind::Storage ? rt::CommandKind::Storage : rt::CommandKind::Copy;
  return addOperands(command, op->getOperands());
}

/// Makes again what the forward made: a part of its own for whoever counts what the model needs.
static rt::Part partOf(Operation *op) {
  switch (getWork(op).value_or(Work::Evaluation)) {
  case Work::Forward:
    return rt::Part::Forward;
  case Work::Recompute:
    return rt::Part::Again;
  case Work::Backward:
  case Work::InputGradient:
  case Work::WeightGradient:
    return rt::Part::Backward;
  case Work::Update:
    return rt::Part::Update;
  case Work::Evaluation:
    break;
  }
  return rt::Part::None;
}

LogicalResult ProgramBuilder::addCommand(Operation *op) {
  rt::Command command;
  command.firstOperand = program.operands.size();
  command.firstParam = program.params.size();
  command.stream = streamIndex(streamOf(op));
  // IR numbers events as it likes; the program's are as dense as its table of events.
  auto addEvent = [&](rt::CommandKind kind, uint64_t event) -> LogicalResult {
    command.kind = kind;
    command.callee = eventIds.try_emplace(event, program.numEvents).first->second;
    program.numEvents = eventIds.size();
    return success();
  };
  LogicalResult added =
      llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case([&](LaunchOp launch) { return addLaunch(command, launch); })
          .Case([&](CallOp call) { return addCall(command, call); })
          .Case([&](CommunicateOp collective) { return addCollective(command, collective); })
          .Case([&](TransferOp transfer) { return addTransfer(command, transfer); })
          .Case([&](RecordOp event) { return addEvent(rt::CommandKind::RecordEvent, event.getEvent()); })
          .Case([&](WaitOp event) { return addEvent(rt::CommandKind::WaitEvent, event.getEvent()); });
  if (failed(added))
    return failure();
  command.numOperands = program.operands.size() - command.firstOperand;
  command.numParams = program.params.size() - command.firstParam;
  command.part = partOf(op);
  std::string layer = layerOf(op);
  command.location = addString(nameOfCommand(op, symbols) + (layer.empty() ? "" : " " + layer));
  program.commands.push_back(command);
  return success();
}
