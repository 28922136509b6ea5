//===- LowerCommands.cpp - Launches, calls, collectives and events --------------===//
//
// A command is a row of numbers into the program's tables. The rows stand in issue order for all streams
// together: the runtime deals them out, and only events say what waits for what.
//
//===---------------------------------------------------------------------------===//
#include "ProgramBuilder.h"
#include "Support/RuntimeCall.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/LibraryTable.h"

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
      return copy && copy.getCallee() == rt::LibraryFn::Copy && copy.getBuffers()[1] == buffer;
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

namespace mlir::ds {

/// Lowers one command: what its kind says in a program, into the tables of the builder.
class CommandLowering {
public:
  CommandLowering(StageBuilder &builder, ScheduledOpInterface op);
  LogicalResult run();

private:
  LogicalResult lower(LaunchOp launch);
  LogicalResult lower(CallOp call);
  LogicalResult lower(CommunicateOp collective);
  LogicalResult lower(TransferOp transfer) { return addOperands(transfer->getOperands()); }
  LogicalResult lower(RecordOp record) { return nameEvent(record.getEvent()); }
  LogicalResult lower(WaitOp wait) { return nameEvent(wait.getEvent()); }

  LogicalResult addOperands(ValueRange values);
  LogicalResult addWorkspace(Value workspace);
  LogicalResult nameEvent(uint64_t event);
  void limitInput(CallOp call);

  StageBuilder &builder;
  rt::Program &program;
  ScheduledOpInterface op;
  rt::Command command;
};

} // namespace mlir::ds

CommandLowering::CommandLowering(StageBuilder &builder, ScheduledOpInterface op)
    : builder(builder), program(builder.program), op(op) {
  command.kind = op.getCommandKind();
  command.stream = builder.tables.addStream(op.getStream());
  command.firstOperand = program.operands.size();
  command.firstParam = program.params.size();
  command.flops = op.getCountedFlops();
}

// An index beyond its table would read past a buffer, and no verifier sees data: the input that it comes from
// gets the least limit of all its readers, to which the runtime holds each batch before it is used.
void CommandLowering::limitInput(CallOp call) {
  const std::optional<IndexUse> &use = entryOf(call.getCallee()).indices;
  if (!use || use->isOpenIn(call.getParams().getValue()))
    return;
  auto argument = dyn_cast<BlockArgument>(findOrigin(call.getBuffers()[use->ids]));
  auto func = call->getParentOfType<func::FuncOp>();
  StringAttr name = argument ? getInputOf(func, argument.getArgNumber()) : StringAttr();
  if (!name)
    return;
  rt::Input &input = program.inputs[builder.inputIds.at(name.getValue())];
  int64_t limit = cast<BufferType>(call.getBuffers()[use->table].getType()).getTensor().getDimSize(use->dim);
  input.indexLimit = input.indexLimit ? std::min(input.indexLimit, limit) : limit;
  if (use->ignores) {
    input.hasIgnoreIndex = true;
    input.ignoreIndex = cast<IntegerAttr>(call.getParams()[0]).getInt();
  }
}

LogicalResult CommandLowering::addOperands(ValueRange values) {
  for (Value value : values) {
    FailureOr<uint32_t> index = builder.bufferIndex(value);
    if (failed(index))
      return failure();
    program.operands.push_back(*index);
    command.bytes += cast<BufferType>(value.getType()).getSizeInBytes();
  }
  return success();
}

LogicalResult CommandLowering::addWorkspace(Value workspace) {
  if (!workspace)
    return success();
  FailureOr<uint32_t> index = builder.bufferIndex(workspace);
  if (succeeded(index))
    command.workspace = *index;
  return index;
}

LogicalResult CommandLowering::lower(LaunchOp launch) {
  command.callee = builder.tables.kernelIndex(launch.getKernel());
  for (int64_t item = 0; item < launch.getNumItems(); ++item)
    if (failed(addOperands(launch.getItemInputs(item))) || failed(addOperands(launch.getItemOutputs(item))))
      return failure();
  if (launch.getExtents())
    llvm::append_range(program.params, *launch.getExtents());
  if (!launch.getPredicate())
    return success();
  FailureOr<uint32_t> predicate = builder.bufferIndex(launch.getPredicate());
  if (succeeded(predicate))
    command.predicate = *predicate;
  return predicate;
}

LogicalResult CommandLowering::lower(CallOp call) {
  command.callee = static_cast<uint32_t>(call.getCallee());
  if (failed(addOperands(call.getBuffers())))
    return failure();
  command.bytes = call.getTraffic();
  for (Attribute param : call.getParams())
    program.params.push_back(toRuntimeParam(param));
  limitInput(call);
  return addWorkspace(call.getWorkspace());
}

LogicalResult CommandLowering::lower(CommunicateOp op) {
  command.callee = program.collectives.size();
  const rt::CollectiveTraits &traits = traitsOf(op.getKind());
  bool isOneBuffer = op.getInputs() == op.getOutputs();
  if (traits.isOneOperand && !isOneBuffer)
    return op.emitOpError("has no command in a program: a ")
           << stringifyCollectiveKind(op.getKind()) << " out of place";
  if (builder.mesh.getSize(op.getAxes()) == 1)
    return op.emitOpError("expects axes of several ranks, but got ")
           << builder.mesh.getMesh().spell(builder.mesh.find(op.getAxes()));
  // What a rank says when it has waited too long: where the model has such a layer, people know it by that.
  std::string name = traits.isMessage ? nameOfMessage(op) : layerOf(op);
  program.collectives.push_back(toRuntimeCollective(op, name.empty() ? op.getLabel(builder.symbols) : name));
  program.collectives.back().axes = builder.mesh.find(op.getAxes());
  SmallVector<Value> operands(op.getInputs());
  if (traits.params > 0)
    program.params.push_back(op.getPeer());
  if (traits.isMessage)
    program.params.push_back(builder.exchanges->behind(op));
  if (!traits.isOneOperand)
    llvm::append_range(operands, op.getOutputs());
  if (failed(addOperands(operands)))
    return failure();
  return addWorkspace(op.getWorkspace());
}

LogicalResult CommandLowering::nameEvent(uint64_t event) {
  command.callee = builder.tables.addEvent(event);
  return success();
}

/// Recomputes what the forward made: a part of its own for whoever counts what the model needs.
static rt::Part partOf(Operation *op) {
  switch (getWork(op).value_or(Work::Evaluation)) {
  case Work::Forward:
    return rt::Part::Forward;
  case Work::Recompute:
    return rt::Part::Recompute;
  case Work::Backward:
  case Work::InputGradient:
  case Work::WeightGradient:
    return rt::Part::Backward;
  case Work::Update:
    return rt::Part::Update;
  case Work::Evaluation:
  case Work::Transfer:
    break;
  }
  return rt::Part::None;
}

LogicalResult CommandLowering::run() {
  auto lowerAs = [&](auto concrete) { return lower(concrete); };
  if (failed(llvm::TypeSwitch<Operation *, LogicalResult>(op)
                 .Case<LaunchOp, CallOp, CommunicateOp, TransferOp, RecordOp, WaitOp>(lowerAs)))
    return failure();
  command.numOperands = program.operands.size() - command.firstOperand;
  command.numParams = program.params.size() - command.firstParam;
  command.part = partOf(op);
  std::string layer = layerOf(op);
  command.location =
      builder.tables.addString(op.getLabel(builder.symbols) + (layer.empty() ? "" : " " + layer));
  program.commands.push_back(command);
  return success();
}

LogicalResult StageBuilder::addCommand(ScheduledOpInterface op) { return CommandLowering(*this, op).run(); }
