//===- Work.cpp - Which part of a step an op is, and of which layer --------------===//
#include "ds/Dialect/Work.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::ds;

std::optional<Work> mlir::ds::getWork(Operation *op) {
  auto work = op->getAttrOfType<WorkAttr>(DsDialect::kWorkAttr);
  return work ? std::optional(work.getValue()) : std::nullopt;
}

void mlir::ds::setWork(Operation *op, Work work) {
  op->setAttr(DsDialect::kWorkAttr, WorkAttr::get(op->getContext(), work));
}

bool mlir::ds::needsWork(Operation *op) {
  return !op->hasTrait<OpTrait::ConstantLike>() && !op->hasTrait<OpTrait::IsTerminator>() &&
         !isa<ViewOp, AfterOp>(op);
}

std::string mlir::ds::layerOf(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (std::string layer = layerOf(part); !layer.empty())
        return layer;
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return layerOf(call.getCallee());
  return "";
}

/// What `op` itself says of its layer; null for nothing.
static LayerAttr saidBy(Operation *op) { return op->getAttrOfType<LayerAttr>(DsDialect::kLayerAttr); }

std::string mlir::ds::layerOf(Operation *op) {
  LayerAttr layer = saidBy(op);
  return layer ? layer.getName() : layerOf(op->getLoc());
}

/// Sets what is not null and not there yet.
static void say(Operation *op, Attribute work, Attribute layer) {
  if (work && !op->hasAttr(DsDialect::kWorkAttr))
    op->setAttr(DsDialect::kWorkAttr, work);
  if (layer && !op->hasAttr(DsDialect::kLayerAttr))
    op->setAttr(DsDialect::kLayerAttr, layer);
}

void mlir::ds::markWork(Block &block, Work work) {
  Attribute attr = WorkAttr::get(block.getParentOp()->getContext(), work);
  for (Operation &op : block)
    if (needsWork(&op) && !op.hasAttr(DsDialect::kWorkAttr))
      say(&op, attr, LayerAttr::of(&op));
}

void mlir::ds::copyWork(Operation *from, Operation *to) {
  say(to, from->getAttr(DsDialect::kWorkAttr), from->getAttr(DsDialect::kLayerAttr));
}

void mlir::ds::clearWork(Operation *op) {
  op->removeAttr(DsDialect::kWorkAttr);
  op->removeAttr(DsDialect::kLayerAttr);
}

//===----------------------------------------------------------------------===//
// #ds.layer
//===----------------------------------------------------------------------===//

LayerAttr LayerAttr::of(Operation *op) {
  if (LayerAttr layer = saidBy(op))
    return layer;
  std::string name = layerOf(op->getLoc());
  return name.empty() ? LayerAttr() : named(op->getContext(), name);
}

LayerAttr LayerAttr::named(MLIRContext *context, StringRef name) {
  int64_t number = 0;
  for (size_t begin = 0, end; begin < name.size(); begin = end + 1) {
    end = std::min(name.find('.', begin), name.size());
    if (!llvm::all_of(name.slice(begin, end), llvm::isDigit) ||
        name.slice(begin, end).getAsInteger(10, number))
      continue;
    LayerAttr layer = get(context, name.take_front(begin).drop_back(begin > 0), number, name.substr(end + 1));
    if (layer.getName() == name) // not of "h.03", which is another layer than h.3
      return layer;
    break;
  }
  return get(context, name, std::nullopt, "");
}

std::string LayerAttr::getName() const {
  if (!getNumber())
    return getStack().str();
  return (getStack() + (getStack().empty() ? "" : ".") + Twine(*getNumber()) +
          (getPart().empty() ? "" : ".") + getPart())
      .str();
}

Attribute LayerAttr::parse(AsmParser &parser, Type) {
  std::string stack, part;
  std::optional<int64_t> number;
  if (parser.parseLess() || parser.parseString(&stack))
    return {};
  if (succeeded(parser.parseOptionalComma()) && parser.parseInteger(number.emplace()))
    return {};
  if (number && succeeded(parser.parseOptionalComma()) && parser.parseString(&part))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<LayerAttr>(parser.getContext(), StringRef(stack), number, StringRef(part));
}

void LayerAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printString(getStack());
  if (getNumber())
    printer << ", " << *getNumber();
  if (!getPart().empty()) {
    printer << ", ";
    printer.printString(getPart());
  }
  printer << '>';
}

LogicalResult LayerAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef stack,
                                std::optional<int64_t> number, StringRef part) {
  if (number.value_or(0) < 0)
    return emitError() << "expects a layer's number that is not negative, but got " << *number;
  if (!number && stack.empty())
    return emitError() << "expects a layer to have a name or a number";
  return success();
}

bool mlir::ds::isBefore(Work a, Work b) {
  auto rank = [](Work work) {
    switch (work) {
    case Work::Forward:
    case Work::Evaluation:
      return 0;
    case Work::Recompute:
      return 1;
    case Work::Backward:
    case Work::InputGradient:
    case Work::WeightGradient:
      return 2;
    case Work::Update:
      return 3;
    case Work::Transfer:
      return 4;
    }
    llvm_unreachable("all work is ranked");
  };
  return rank(a) < rank(b);
}

void WorkListener::follow(Operation *op) {
  work = op ? op->getAttr(DsDialect::kWorkAttr) : Attribute();
  layer = op ? op->getAttr(DsDialect::kLayerAttr) : Attribute();
}

void WorkListener::follow(Operation *op, Work work) {
  follow(op);
  this->work = WorkAttr::get(op->getContext(), work);
}

void WorkListener::notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) {
  if (needsWork(op))
    say(op, work, layer);
}
