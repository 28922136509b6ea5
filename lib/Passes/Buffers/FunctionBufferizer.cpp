//===- FunctionBufferizer.cpp - Buffers for the tensors of one function ----------===//
//
// The walk and its ops.
//
//===---------------------------------------------------------------------------===//
#include "FunctionBufferizer.h"
#include "DyingOperands.h"
#include "PrepareFunction.h"

#include "ds/Passes/ScheduledFunction.h"
#include "ds/Runtime/Program/Program.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::ds;

FunctionBufferizer::FunctionBufferizer(func::FuncOp func, DenseMap<Value, Space> elsewhere,
                                       SymbolTable &symbols, KernelTable &kernels, int64_t stagingBytes)
    : func(func), symbols(symbols), kernels(kernels), table(func, std::move(elsewhere)), emitter(func, table),
      destinations(func, table, emitter, findGradients(func, symbols)),
      staged(func, table, emitter, stagingBytes) {}

FailureOr<Bufferized> FunctionBufferizer::run() {
  table.addArguments(symbols);
  Block &block = func.getBody().front();
  SmallVector<Operation *> tensorOps = llvm::map_to_vector(block, [](Operation &op) { return &op; });
  for (Operation *op : tensorOps) {
    emitter.begin(op);
    if (failed(bufferize(op)))
      return failure();
  }
  for (Operation *op : llvm::drop_begin(llvm::reverse(tensorOps))) // the return is gone already
    op->erase();
  // Asking for a place makes a view that may then not be taken; all name their root, so any order will do.
  for (ViewOp view : llvm::make_early_inc_range(block.getOps<ViewOp>()))
    if (view->use_empty())
      view.erase();
  staged.trim();
  BitVector tensors(block.getNumArguments());
  for (BlockArgument argument : block.getArguments())
    tensors[argument.getArgNumber()] = !isa<BufferType>(argument.getType());
  func.eraseArguments(tensors);
  return Bufferized{!emitter.hasCopied, staged.getSlots()};
}

LogicalResult FunctionBufferizer::bufferize(Operation *op) {
  if (auto ret = dyn_cast<func::ReturnOp>(op))
    return bufferizeReturn(ret);
  if (auto fused = dyn_cast<FusedOp>(op))
    return bufferizeFused(fused), success();
  if (auto call = dyn_cast<LibraryOpInterface>(op))
    return bufferizeCall(call);
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    return bufferizeCollective(collective), success();
  if (auto shard = dyn_cast<LocalShardOp>(op))
    return bufferizeLocalShard(shard), success();
  if (auto store = dyn_cast<StoreOp>(op))
    return bufferizeStore(store), success();
  if (auto load = dyn_cast<LoadOp>(op))
    return bufferizeLoad(load), success();
  if (auto move = dyn_cast<MoveOp>(op))
    return bufferizeMove(move), success();
  if (auto presume = dyn_cast<PresumeOp>(op))
    return bufferizePresume(presume), success();
  if (auto concat = dyn_cast<ConcatOp>(op))
    return bufferizeConcat(concat), success();
  if (auto pad = dyn_cast<PadOp>(op))
    return bufferizePad(pad), success();
  if (auto split = dyn_cast<SplitOp>(op))
    return bufferizeSplit(split), success();
  using View = const StridedView &;
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return bufferizeView(reshape.getInput(), reshape,
                         [&](View v) { return reshapeView(v, reshape.getType().getShape()); }),
           success();
  if (auto after = dyn_cast<AfterOp>(op))
    return table.bind(after, table.at(after.getValue())), success();
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return bufferizeView(transpose.getInput(), transpose,
                         [&](View v) { return std::optional(transposeView(v, transpose.getPerm())); }),
           success();
  if (auto slice = dyn_cast<SliceOp>(op))
    return bufferizeView(slice.getInput(), slice,
                         [&](View v) {
                           return std::optional(sliceView(v, slice.getOffsets(), slice.getStrides(),
                                                          slice.getType().getShape()));
                         }),
           success();
  InFlightDiagnostic error = op->emitOpError("expects to be fused or lowered before buffers are assigned");
  error.attachNote() << "run ds-decompose and ds-fuse-regions first";
  return error;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

void FunctionBufferizer::bufferizeFused(FusedOp op) {
  SmallVector<Value> inputs =
      llvm::map_to_vector(op.getInputs(), [&](Value input) { return table.at(input); });
  SmallVector<Value> outputs;
  const DyingOperands dying(op, table);
  for (OpResult result : op.getResults()) {
    Value buffer;
    if (!destinations.find(result))
      buffer = dying.find(result);
    if (buffer && llvm::is_contained(outputs, buffer))
      buffer = {};
    outputs.push_back(buffer ? buffer : destinations.makeBuffer(result));
    table.bind(result, outputs.back());
  }
  SmallVector<Type> types = llvm::to_vector(TypeRange(inputs));
  llvm::append_range(types, TypeRange(outputs));
  KernelUse use = kernels.getKernel(op, types);
  emitter.builder.create<LaunchOp>(op.getLoc(), use.kernel.getValue(), inputs, outputs, use.extents,
                                   streamFor(emitter.space));
}

/// Matrices of rank 2 or of a batch: collapses leading dimensions so that `buffer` has `rank`.
Value FunctionBufferizer::matmulOperand(Value buffer, int64_t rank, bool isResult, Location loc) {
  BufferType type = bufferType(buffer);
  if (!isResult && type.getStrides().back() != 1 && type.getStrides()[type.getStrides().size() - 2] != 1 &&
      type.getTensor().getShape().back() != 1)
    buffer = emitter.toContiguous(buffer, loc);
  if (type.getTensor().getRank() == rank)
    return buffer;
  ArrayRef<int64_t> shape = type.getTensor().getShape();
  int64_t rows = 1;
  for (int64_t size : shape.drop_back())
    rows *= size;
  SmallVector<int64_t> collapsed = {rows, shape.back()};
  std::optional<StridedView> view = reshapeView(viewOf(bufferType(buffer)), collapsed);
  if (!view) {
    assert(!isResult && "a result is made where it collapses");
    buffer = emitter.toContiguous(buffer, loc);
    view = reshapeView(viewOf(bufferType(buffer)), collapsed);
  }
  return emitter.createView(buffer, *view, loc);
}

/// Whether the elements of the last dimension lie side by side.
static bool isDenseInside(BufferType type) {
  ArrayRef<int64_t> shape = type.getTensor().getShape();
  return shape.empty() || shape.back() == 1 || type.getStrides().back() == 1;
}

Value FunctionBufferizer::makeCallResult(OpResult result, const LibraryCall &call) {
  Value buffer = destinations.makeBuffer(result);
  ArrayRef<int64_t> shape = tensorType(result).getShape();
  bool isPlaceable = bufferType(buffer).isContiguous();
  if (!isPlaceable && call.takesStrides)
    isPlaceable =
        !isa<MatmulOp>(result.getOwner()) || // which sees its leading dimensions as rows
        reshapeView(viewOf(bufferType(buffer)),
                    {tensorType(result).getNumElements() / std::max<int64_t>(shape.back(), 1), shape.back()})
            .has_value();
  emitter.hasCopied |= !isPlaceable;
  return isPlaceable ? buffer
                     : emitter.allocate(tensorType(result), destinations.categoryOf(result), result.getLoc());
}

SmallVector<Value> FunctionBufferizer::placeResults(LibraryOpInterface op, const LibraryCall &call) {
  SmallVector<Value> results(op->getNumResults());
  for (auto [result, operand] : call.inPlace) {
    Value buffer = table.at(op->getOperand(operand));
    Destination destination = destinations.find(op->getResult(result));
    bool isInPlace =
        (destination && isSameWindow(*destination, buffer)) || table.diesAlone(op->getOpOperand(operand));
    if (!isInPlace || !bufferType(buffer).isContiguous()) {
      Value target = destinations.makeBuffer(op->getResult(result));
      emitter.copy(buffer, target, op->getLoc());
      emitter.hasCopied = true;
      buffer = target;
    }
    results[result] = buffer;
  }
  for (auto [result, operand] : call.mayShare)
    if (!results[result] && !destinations.find(op->getResult(result)) &&
        table.diesAlone(op->getOpOperand(operand)) &&
        bufferType(table.at(op->getOperand(operand))).isContiguous())
      results[result] = table.at(op->getOperand(operand));
  for (OpResult result : op->getResults()) {
    Value &buffer = results[result.getResultNumber()];
    if (!buffer)
      buffer = makeCallResult(result, call);
    table.bind(result, buffer);
  }
  return results;
}

LogicalResult FunctionBufferizer::bufferizeCall(LibraryOpInterface op) {
  LibraryCall call = op.getLibraryCall();
  unsigned numOperands = op->getNumOperands();
  Location loc = op->getLoc();
  SmallVector<Value> results = placeResults(op, call);
  bool isMatmul = call.callee == ::ds::rt::LibraryFn::Matmul;
  int64_t rank = isMatmul ? tensorType(op->getOperand(1)).getRank() : 0;
  SmallVector<Value> arguments;
  SmallVector<int64_t> writes;
  for (auto [position, index] : llvm::enumerate(call.order)) {
    bool isResult = index >= numOperands;
    Value buffer = isResult ? results[index - numOperands] : table.at(op->getOperand(index));
    bool isFactor = isMatmul && position < 2;
    if (!isResult && !isFactor && (!call.takesStrides || !isDenseInside(bufferType(buffer))))
      buffer = emitter.toContiguous(buffer, loc);
    if (isMatmul && bufferType(buffer).getTensor().getRank() > 1) // all but a bias
      buffer = matmulOperand(buffer, rank, isResult, loc);
    if (isResult)
      writes.push_back(position);
    arguments.push_back(buffer);
  }
  auto cost = dyn_cast<CostOpInterface>(op.getOperation());
  emitter.builder.create<CallOp>(loc, call.callee, arguments, writes,
                                 emitter.builder.getArrayAttr(call.params), streamFor(emitter.space),
                                 cost ? emitter.builder.getI64IntegerAttr(cost.getFlops()) : IntegerAttr());
  return success();
}

void FunctionBufferizer::bufferizeConcat(ConcatOp op) {
  Value whole = destinations.concatBuffer(op, table.positionOf(op));
  StridedView view = viewOf(bufferType(whole));
  SmallVector<int64_t> offsets(view.shape.size(), 0), steps(view.shape.size(), 1);
  for (Value input : op.getInputs()) {
    Value part =
        emitter.createView(whole, sliceView(view, offsets, steps, tensorType(input).getShape()), op.getLoc());
    if (!isSameWindow(table.at(input), part))
      emitter.copy(table.at(input), part, op.getLoc());
    offsets[op.getDim()] += tensorType(input).getShape()[op.getDim()];
  }
}

void FunctionBufferizer::bufferizePad(PadOp op) {
  Value whole = destinations.makeBuffer(op.getResult());
  table.bind(op.getResult(), whole);
  emitter.builder.create<CallOp>(op.getLoc(), ::ds::rt::LibraryFn::Fill, whole, ArrayRef<int64_t>{0},
                                 emitter.builder.getArrayAttr(emitter.builder.getF64FloatAttr(0)),
                                 streamFor(emitter.space));
  StridedView window = sliceView(viewOf(bufferType(whole)), op.getOffsets(), op.getStrides(),
                                 tensorType(op.getInput()).getShape());
  emitter.copy(table.at(op.getInput()), emitter.createView(whole, window, op.getLoc()), op.getLoc());
}

void FunctionBufferizer::bufferizeSplit(SplitOp op) {
  int64_t rank = tensorType(op.getInput()).getRank(), next = 0;
  for (Value piece : op.getPieces()) {
    SmallVector<int64_t> offsets(rank, 0), steps(rank, 1);
    offsets[op.getDim()] = next;
    next += tensorType(piece).getDimSize(op.getDim());
    if (piece.use_empty()) // a copy for each of 900 chunks of a loss has one piece that is read, and 900 in
                           // all
      continue;
    bufferizeView(op.getInput(), piece, [&](const StridedView &view) {
      return std::optional(sliceView(view, offsets, steps, tensorType(piece).getShape()));
    });
  }
}

void FunctionBufferizer::bufferizeView(Value source, Value result,
                                       function_ref<std::optional<StridedView>(const StridedView &)> make) {
  Value buffer = table.at(source);
  std::optional<StridedView> view = make(viewOf(bufferType(buffer)));
  if (!view) {
    buffer = emitter.toContiguous(buffer, result.getLoc());
    view = make(viewOf(bufferType(buffer)));
  }
  table.bind(result, emitter.createView(buffer, *view, result.getLoc()));
}

LogicalResult FunctionBufferizer::bufferizeReturn(func::ReturnOp op) {
  // What is copied in the end is part of the last that the segment does.
  if (SegmentAttr segment = SegmentAttr::of(func))
    emitter.follow(op, segment.does(Work::Evaluation) ? Work::Forward : segment.getWorks().back());
  // A copy may read the old value of a state that another copy replaces (two states that change places): what
  // such copies read is put aside before any state is written.
  SmallVector<std::pair<Value, Value>> copies;
  llvm::SmallSetVector<Value, 8> targets;
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    auto state = func.getResultAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kStateAttr);
    if (!state)
      return op.emitOpError("expects every result to be a state, but result ") << index << " is none";
    Value target = table.ofState(state);
    if (table.at(value) == target)
      continue;
    copies.push_back({table.at(value), target});
    targets.insert(target);
  }
  emitter.hasCopied |= !copies.empty();
  for (Value &source : llvm::make_first_range(copies))
    if (targets.contains(table.rootOf(source)))
      source = emitter.toPrivate(source, op.getLoc());
  for (auto [source, target] : copies)
    emitter.copy(source, target, op.getLoc());
  emitter.builder.create<func::ReturnOp>(op.getLoc());
  op.erase();
  func.setFunctionType(emitter.builder.getFunctionType(func.getBody().front().getArgumentTypes(), {}));
  func.removeResAttrsAttr();
  return success();
}
