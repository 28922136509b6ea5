//===- KernelTable.cpp - One symbol for equal kernels ----------------------------===//
#include "KernelTable.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::ds;

/// The shape that all values of `fused` have but for scalars that are repeated to it; nullopt when the body
/// does anything but treat all elements alike.
static std::optional<ArrayRef<int64_t>> uniformShape(FusedOp fused) {
  if (fused.getNumResults() == 0)
    return std::nullopt;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(fused.getResult(0).getType()).getShape();
  if (shape.empty())
    return std::nullopt;
  auto hasShape = [&](Value value) { return cast<RankedTensorType>(value.getType()).getShape() == shape; };
  auto isScalar = [](Value value) { return cast<RankedTensorType>(value.getType()).getRank() == 0; };
  for (BlockArgument argument : fused.getBody().getArguments())
    if (!hasShape(argument) && !isScalar(argument))
      return std::nullopt;
  for (Operation &op : fused.getBody().front().without_terminator()) {
    auto constant = dyn_cast<ConstantOp>(op);
    bool isUniform = isa<ScalarBodyOpInterface>(op) ||
                     (constant && isa<SplatElementsAttr>(constant.getValue())) ||
                     (isa<BroadcastOp>(op) && isScalar(op.getOperand(0)));
    if (!isUniform || (!hasShape(op.getResult(0)) && !isScalar(op.getResult(0))))
      return std::nullopt;
  }
  return llvm::all_of(fused.getBody().front().getTerminator()->getOperands(), hasShape) ? std::optional(shape)
                                                                                        : std::nullopt;
}

/// `type` over `?` elements, or itself for scalars.
static RankedTensorType anySize(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getRank() == 0 ? tensor : tensor.clone({ShapedType::kDynamic});
}

/// Copies a uniform body to tensors of any size.
static void cloneUniformBody(FusedOp fused, Region &region) {
  Block *body = &region.emplaceBlock();
  OpBuilder builder = OpBuilder::atBlockEnd(body);
  IRMapping mapping;
  for (BlockArgument argument : fused.getBody().getArguments())
    mapping.map(argument, body->addArgument(anySize(argument.getType()), argument.getLoc()));
  for (Operation &op : fused.getBody().front()) {
    auto constant = dyn_cast<ConstantOp>(op);
    if (constant && constant.getType().getRank() != 0) {
      auto scalar = RankedTensorType::get({}, constant.getType().getElementType());
      Value value = builder.create<ConstantOp>(
          op.getLoc(), scalar, cast<SplatElementsAttr>(constant.getValue()).resizeSplat(scalar));
      mapping.map(constant.getResult(), builder.create<BroadcastOp>(op.getLoc(), anySize(constant.getType()),
                                                                    value, ArrayRef<int64_t>{}));
      continue;
    }
    Operation *clone = builder.clone(op, mapping);
    for (OpResult result : clone->getResults())
      result.setType(anySize(result.getType()));
  }
}

/// True when every buffer is contiguous.
static bool areContiguous(TypeRange buffers) {
  return llvm::all_of(buffers, [](Type type) { return cast<BufferType>(type).isContiguous(); });
}

KernelTable::KernelTable(ModuleOp module) : module(module) {
  for (Operation &op : *module.getBody())
    if (auto name = op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
      taken.insert(name.getValue());
}

KernelUse KernelTable::getKernel(FusedOp fused, TypeRange buffers) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  std::optional<ArrayRef<int64_t>> shape = areContiguous(buffers) ? uniformShape(fused) : std::nullopt;
  SmallVector<Attribute> types;
  for (Type type : buffers) {
    auto buffer = cast<BufferType>(type);
    types.push_back(TypeAttr::get(
        shape ? BufferType::get(type.getContext(), anySize(buffer.getTensor()),
                                buffer.getTensor().getRank() ? ArrayRef<int64_t>{1} : ArrayRef<int64_t>{},
                                buffer.getSpace())
              : buffer));
  }
  auto kernel = builder.create<KernelOp>(fused.getLoc(), "kernel", fused.getInputs().size(),
                                         builder.getArrayAttr(types));
  if (shape)
    cloneUniformBody(fused, kernel.getBody());
  else
    fused.getBody().cloneInto(&kernel.getBody(), *std::make_unique<IRMapping>());

  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, OpPrintingFlags().useLocalScope().enableDebugInfo(false));
  FlatSymbolRefAttr &symbol = known[text];
  if (symbol) {
    kernel.erase();
  } else {
    std::string name;
    do
      name = "kernel_" + std::to_string(nextNumber++);
    while (taken.contains(name));
    kernel.setSymName(name);
    symbol = FlatSymbolRefAttr::get(builder.getContext(), name);
  }
  int64_t elements = 1;
  for (int64_t size : shape.value_or(ArrayRef<int64_t>{}))
    elements *= size;
  return {symbol, shape ? builder.getDenseI64ArrayAttr(elements) : DenseI64ArrayAttr()};
}
