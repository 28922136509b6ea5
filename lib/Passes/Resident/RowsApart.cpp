//===- RowsApart.cpp - Which rows lie further apart than they are long ---------------------===//
#include "RowsApart.h"

#include "ds/Cost/RowPitch.h"

using namespace mlir;
using namespace mlir::ds;
using ::ds::rt::LibraryFn;

std::optional<Rows> mlir::ds::findRowsApart(RankedTensorType tensor) {
  if (tensor.getRank() < 2 || !isa<FloatType>(tensor.getElementType()) || tensor.getNumElements() == 0)
    return std::nullopt;
  const int64_t elements = tensor.getShape().back();
  const std::optional<int64_t> pitch = ::ds::cost::rowPitch(elements, tensor.getElementTypeBitWidth() / 8);
  return pitch ? std::optional<Rows>({elements, *pitch}) : std::nullopt;
}

bool mlir::ds::walksRows(LibraryFn callee, ArrayRef<Attribute> params, unsigned index) {
  switch (callee) {
  case LibraryFn::Matmul: {
    const int64_t activation = cast<IntegerAttr>(params[3]).getInt();
    return index < 2 || (index == 2 && activation < static_cast<int64_t>(::ds::rt::Activation::Gelu));
  }
  case LibraryFn::CrossEntropyForward:
    return index == 0;
  case LibraryFn::CrossEntropyBackward:
  case LibraryFn::CrossEntropyWithGradient:
    return index == 0 || index == 5;
  default:
    return false;
  }
}

bool mlir::ds::walksRows(Operation *op, Value value) {
  auto library = dyn_cast<LibraryOpInterface>(op);
  if (!library)
    return false;
  const LibraryCall call = library.getLibraryCall();
  bool isNamed = false;
  for (auto [index, number] : llvm::enumerate(call.order)) {
    const bool isResult = number >= op->getNumOperands();
    const Value named =
        isResult ? Value(op->getResult(number - op->getNumOperands())) : op->getOperand(number);
    if (named != value)
      continue;
    if (!walksRows(call.callee, call.params, index))
      return false;
    isNamed = true;
  }
  return isNamed;
}
