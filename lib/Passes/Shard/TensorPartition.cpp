//===- TensorPartition.cpp - A segment as one rank runs it ----------------------===//
#include "TensorPartition.h"

#include "ds/Dialect/Emitter.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// What is made of nothing but what each rank has: in parts where its op can be run so, and else the part of
/// what is there.
Value TensorPartition::makePart(Value value, const Cut &cut) {
  Operation *op = value.getDefiningOp();
  const ShardingRule *rule = op ? &cuts.ruleOf(op) : nullptr;
  const unsigned number = op ? cast<OpResult>(value).getResultNumber() : 0;
  if (op && op->getNumResults() == 1)
    for (const ShardingFactor &factor : rule->factors) {
      std::optional<Blocks> blocks = findBlocks(factor, factor.results[number], cut, ranks.count);
      if (!blocks || factor.kind != FactorKind::Parallel)
        continue;
      SmallVector<Value> operands;
      for (auto [operand, place] : llvm::zip_equal(op->getOperands(), factor.operands))
        operands.push_back(place.has() ? readPart(operand, mlir::ds::cutOf(place, *blocks))
                                       : readAs(operand, analysis::kWhole));
      RankedTensorType type = localType(tensorType(value), cut, ranks.count);
      return cast<ShardingOpInterface>(op)
          .localize(builder, operands, TypeRange(type), {factor, *blocks, ranks})
          .front();
    }
  return takePart(builder, value.getLoc(), readAs(value, analysis::kWhole), cut, ranks);
}

/// This rank's part of a value that no parameter has part in.
Value TensorPartition::readPart(Value value, const Cut &cut) {
  for (const auto &[known, part] : parts.lookup(value))
    if (known == cut)
      return part;
  // What is made anew is work of what it is a part of, whoever reads it first.
  Operation *reader = current;
  follow(value.getDefiningOp() ? value.getDefiningOp() : reader, value);
  Value part = makePart(value, cut);
  follow(reader, {});
  parts[value].push_back({cut, part});
  return part;
}

/// Lets what is built be work of `op`; what is made of `value`, where there is one, forward where a forward
/// op will read that too, and backward where that is what made it.
void TensorPartition::follow(Operation *op, Value value) {
  current = op;
  auto isLaterForward = [&](Operation *user) { return isForward(user) && op && op->isBeforeInBlock(user); };
  if (value && op && !isForward(op) && llvm::any_of(value.getUsers(), isLaterForward))
    return listener.follow(op, Work::Forward);
  // A gradient may be read by an update before what goes on with it backward.
  Operation *maker = value ? value.getDefiningOp() : nullptr;
  if (maker && op && getWork(op) == Work::Update && getWork(maker) == Work::Backward)
    return listener.follow(op, Work::Backward);
  listener.follow(op);
}

RankedTensorType TensorPartition::wholeType(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument ? argumentTypes[argument.getArgNumber()] : tensorType(value);
}

Value TensorPartition::exchange(Value value, Form held, Form form) {
  const Location loc = value.getLoc();
  const RankedTensorType type = wholeType(value);
  Value own = locals[value].value;
  if (form == analysis::kAddends)
    return onFirstRank(builder, loc, readAs(value, analysis::kWhole), ranks);
  const bool isToPart = form >= analysis::kFirstPart;
  const bool isThere = held == analysis::kWhole || locals[value].made.count(analysis::kWhole);
  if (isToPart && !isThere && held >= analysis::kFirstPart && placement.exchangesParts())
    return exchangeParts(builder, loc, own, type, placement.cutOf(value, held), placement.cutOf(value, form),
                         ranks);
  if (isToPart && (isThere || held >= analysis::kFirstPart))
    return takePart(builder, loc, readAs(value, analysis::kWhole), placement.cutOf(value, form), ranks);
  if (held == analysis::kAddends)
    return isToPart ? scatterSum(builder, loc, own, placement.cutOf(value, form), ranks)
                    : combineAll(builder, loc, ReduceKind::Sum, own, ranks);
  return gatherParts(builder, loc, own, type, placement.cutOf(value, held), ranks);
}

Value TensorPartition::readAs(Value value, Form form) {
  if (form == analysis::kCopy)
    form = analysis::kWhole; // that differs in gradients alone
  auto found = locals.find(value);
  if (found == locals.end())
    return value; // an argument that is no state of the layers
  const Form held = placement.isFree(value) ? analysis::kWhole : placement.heldForm(value);
  if (held == form)
    return found->second.value;
  if (Value made = found->second.made.lookup(form))
    return made;
  follow(current, value);
  Value made = exchange(value, held, form);
  follow(current, {});
  locals[value].made[form] = made;
  return made;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

void TensorPartition::repeat(Operation *op, function_ref<Value(Value)> read) {
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, read(operand));
  Operation *own = builder.clone(*op, mapping);
  for (auto [result, local] : llvm::zip_equal(op->getResults(), own->getResults()))
    setLocal(result, local);
}

void TensorPartition::rewriteCut(Operation *op, const OpWay &way) {
  const ShardingFactor &factor = cuts.ruleOf(op).factors[way.factor];
  SmallVector<Value> operands;
  for (auto [value, place] : llvm::zip_equal(op->getOperands(), factor.operands)) {
    if (!placement.isFree(value))
      operands.push_back(
          readAs(value, placement.formOf(value, place, factor, way.blocks, /*isResult=*/false)));
    else
      operands.push_back(place.has() ? readPart(value, mlir::ds::cutOf(place, way.blocks))
                                     : readAs(value, analysis::kWhole));
  }
  SmallVector<Type> types;
  for (auto [value, place] : llvm::zip_equal(op->getResults(), factor.results)) {
    RankedTensorType type = tensorType(value);
    types.push_back(place.has() ? localType(type, mlir::ds::cutOf(place, way.blocks), ranks.count) : type);
  }
  SmallVector<Value> made =
      cast<ShardingOpInterface>(op).localize(builder, operands, types, {factor, way.blocks, ranks});
  for (auto [result, local] : llvm::zip_equal(op->getResults(), made))
    setLocal(result, local);
}

Value TensorPartition::readGradient(Value value, StringAttr parameter) {
  if (placement.isFree(value))
    return readAs(value, analysis::kWhole);
  if (std::optional<Cut> cut = cutOf(parameter)) {
    ArrayRef<Cut> known = cuts.of(value);
    return readAs(value, static_cast<Form>(analysis::kFirstPart + (llvm::find(known, *cut) - known.begin())));
  }
  const bool isAddends = placement.heldForm(value) == analysis::kAddends && placement.makesAddends(parameter);
  return readAs(value, isAddends ? analysis::kAddends : analysis::kWhole);
}

/// An update of what the rank has: its body is elementwise, and so the same for any shape.
void TensorPartition::rewriteUpdate(UpdateOp update) {
  auto readOwn = [&](Value value) { return locals[value].value; };
  auto readWhole = [&](Value value) { return readAs(value, analysis::kWhole); };
  auto states = llvm::map_to_vector(update.getStates(), readOwn);
  auto scalars = llvm::map_to_vector(update.getScalars(), readWhole);
  Value gradient = readGradient(update.getGradient(), update.getParameterAttr().getAttr());
  const ArrayRef<int64_t> shape = tensorType(gradient).getShape();
  SmallVector<Type> types;
  for (Value result : update.getResults())
    types.push_back(RankedTensorType::get(shape, tensorType(result).getElementType()));
  auto own =
      builder.create<UpdateOp>(update.getLoc(), types, update.getParameterAttr(), states, gradient, scalars);
  own->setDiscardableAttrs(update->getDiscardableAttrDictionary());
  Block &body = own.getBody().emplaceBlock();
  for (Value operand : own->getOperands())
    body.addArgument(operand.getType(), update.getLoc());
  OpBuilder inside = OpBuilder::atBlockEnd(&body);
  SmallVector<Value> results = update.build(inside, body.getArguments());
  inside.create<YieldOp>(update.getLoc(), results);
  for (auto [result, made] : llvm::zip_equal(update.getResults(), own.getResults()))
    setLocal(result, made);
}

void TensorPartition::rewrite(Operation *op) {
  follow(op, {});
  if (auto update = dyn_cast<UpdateOp>(op))
    return rewriteUpdate(update);
  if (isa<SumOfSquaresOp>(op))
    return repeat(op, [&](Value value) { return readGradient(value, parameters.lookup(value)); });
  const OpWay way = placement.wayOf(op);
  if (way.factor >= 0)
    return rewriteCut(op, way);
  repeat(op,
         [&](Value value) { return readAs(value, way.onAddends ? analysis::kAddends : analysis::kWhole); });
}

//===----------------------------------------------------------------------===//
// The segment
//===----------------------------------------------------------------------===//

void TensorPartition::retypeArguments() {
  for (BlockArgument argument : segment.getBody().getArguments()) {
    setLocal(argument, argument);
    argumentTypes.push_back(tensorType(argument));
    StringAttr name = segment.nameOf(argument);
    if (std::optional<Cut> cut = name ? cutOf(name) : std::nullopt)
      argument.setType(localType(tensorType(argument), *cut, ranks.count));
  }
}

void TensorPartition::run() {
  Block &body = segment.getBody();
  SmallVector<Operation *> old;
  for (Operation &op : body.without_terminator())
    old.push_back(&op);
  for (auto update : body.getOps<UpdateOp>())
    parameters[update.getGradient()] = update.getParameterAttr().getAttr();
  Operation *terminator = segment.getTerminator();
  builder.setInsertionPoint(terminator);
  // Types of whole values are read off the old ops, which stay until the end; arguments have new ones now.
  retypeArguments();
  for (Operation *op : old)
    rewrite(op);
  for (OpOperand &result : terminator->getOpOperands()) {
    StringAttr state = segment.nameOfResult(result.getOperandNumber());
    follow(result.get().getDefiningOp(), {});
    StringAttr parameter = placement.parameterOfGradient(state);
    const bool isUpdated = result.get().getDefiningOp<UpdateOp>() != nullptr;
    result.set(parameter   ? readGradient(result.get(), parameter)
               : isUpdated ? locals[result.get()].value
                           : readAs(result.get(), analysis::kWhole));
  }
  follow(nullptr, {});
  for (Operation *op : llvm::reverse(old))
    op->erase();
}
