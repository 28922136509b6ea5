//===- KernelTable.cpp - One symbol for equal kernels ----------------------------===//
#include "KernelTable.h"

#include "ds/Codegen/KernelClass.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::ds;

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

/// What `kernel` computes but for what its values are called, as one number.
static size_t hashOf(KernelOp kernel) {
  llvm::hash_code hash = llvm::hash_combine(kernel.getNumInputs(), kernel.getBuffers());
  for (Operation &op : kernel.getBody().front())
    hash =
        llvm::hash_combine(hash, OperationEquivalence::computeHash(&op, OperationEquivalence::ignoreHashValue,
                                                                   OperationEquivalence::ignoreHashValue,
                                                                   OperationEquivalence::IgnoreLocations));
  return hash;
}

/// Whether `a` and `b` compute the same on the same buffers.
static bool areEqual(KernelOp a, KernelOp b) {
  return a.getNumInputs() == b.getNumInputs() && a.getBuffers() == b.getBuffers() &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(),
                                                    OperationEquivalence::IgnoreLocations);
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
  std::optional<ArrayRef<int64_t>> shape =
      areContiguous(buffers) ? uniformShape(fused.getBody().front()) : std::nullopt;
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

  SmallVector<KernelOp, 1> &alike = known[hashOf(kernel)];
  auto equal = llvm::find_if(alike, [&](KernelOp other) { return areEqual(other, kernel); });
  if (equal != alike.end()) {
    kernel.erase();
    kernel = *equal;
  } else {
    std::string name;
    do
      name = "kernel_" + std::to_string(nextNumber++);
    while (taken.contains(name));
    kernel.setSymName(name);
    alike.push_back(kernel);
  }
  int64_t elements = 1;
  for (int64_t size : shape.value_or(ArrayRef<int64_t>{}))
    elements *= size;
  return {FlatSymbolRefAttr::get(kernel),
          shape ? builder.getDenseI64ArrayAttr(elements) : DenseI64ArrayAttr()};
}
