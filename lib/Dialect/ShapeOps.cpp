//===- ShapeOps.cpp - Verifiers, builders and folds of shape ops ----------------===//
#include "OpHelpers.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::ds;

/// True when `dims` is strictly increasing and each entry is in [0, rank).
static bool areDims(ArrayRef<int64_t> dims, int64_t rank) {
  for (auto [index, dim] : llvm::enumerate(dims))
    if (dim < 0 || dim >= rank || (index && dim <= dims[index - 1]))
      return false;
  return true;
}

/// Emits "expects element type X, but got Y" unless both have one element type.
static LogicalResult verifySameElement(Operation *op, RankedTensorType expected, RankedTensorType type) {
  if (expected.getElementType() == type.getElementType())
    return success();
  return op->emitOpError("expects element type ")
         << expected.getElementType() << ", but got " << type.getElementType();
}

//===----------------------------------------------------------------------===//
// ConstantOp, IotaOp
//===----------------------------------------------------------------------===//

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult IotaOp::verify() {
  int64_t rank = tensorType(getResult()).getRank();
  if (static_cast<int64_t>(getDim()) >= rank) // C1.
    return emitOpError("expects a dimension below the rank ") << rank << ", but got " << getDim();
  return success();
}

LogicalResult RandomUniformOp::verify() {
  RankedTensorType numbers = tensorType(getResult()).clone(IntegerType::get(getContext(), 64));
  return getNumbers() ? expectType(*this, "numbers", numbers, getNumbers().getType()) : success(); // C1.
}

//===----------------------------------------------------------------------===//
// BroadcastOp
//===----------------------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  RankedTensorType input = tensorType(getInput()), result = tensorType(getResult());
  if (static_cast<int64_t>(getDims().size()) != input.getRank() ||
      !areDims(getDims(), result.getRank())) // C1.
    return emitOpError("expects one increasing result dimension per dimension of ")
           << input << " in " << result << ", but got [" << getDims() << "]";
  for (auto [dim, target] : llvm::enumerate(getDims())) { // C2.
    int64_t size = input.getDimSize(dim), wanted = result.getDimSize(target);
    if (size != 1 && size != wanted)
      return emitOpError("expects input dimension ")
             << dim << " to have size 1 or " << wanted << ", but got " << size;
  }
  return verifySameElement(*this, input, result); // C3.
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getInput());
  if (splat && getType().hasStaticShape())
    return splat.resizeSplat(getType());
  // broadcast(broadcast(x)) = broadcast(x).
  if (auto inner = getInput().getDefiningOp<BroadcastOp>()) {
    SmallVector<int64_t> dims;
    for (int64_t dim : inner.getDims())
      dims.push_back(getDims()[dim]);
    getInputMutable().assign(inner.getInput());
    setDims(dims);
    return getResult();
  }
  return {};
}

//===----------------------------------------------------------------------===//
// ReshapeOp, TransposeOp
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  RankedTensorType input = tensorType(getInput()), result = tensorType(getResult());
  if (input.getNumElements() != result.getNumElements()) // C1.
    return emitOpError("expects ") << input.getNumElements() << " elements, but got "
                                   << result.getNumElements();
  return verifySameElement(*this, input, result); // C2.
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto elements = dyn_cast_or_null<DenseElementsAttr>(adaptor.getInput()))
    return elements.reshape(getType());
  if (auto inner = getInput().getDefiningOp<ReshapeOp>()) {
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  return {};
}

void TransposeOp::build(OpBuilder &builder, OperationState &state, Value input, ArrayRef<int64_t> perm) {
  RankedTensorType type = tensorType(input);
  SmallVector<int64_t> shape;
  for (int64_t dim : perm)
    shape.push_back(type.getDimSize(dim));
  build(builder, state, type.clone(shape), input, perm);
}

LogicalResult TransposeOp::verify() {
  RankedTensorType input = tensorType(getInput()), result = tensorType(getResult());
  SmallVector<int64_t> sorted(getPerm());
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, input.getRank()))) // C1.
    return emitOpError("expects a permutation of ")
           << input.getRank() << " dimensions, but got [" << getPerm() << "]";
  SmallVector<int64_t> shape;
  for (int64_t dim : getPerm())
    shape.push_back(input.getDimSize(dim));
  if (input.clone(shape) != result) // C2.
    return emitOpError("expects result type ") << input.clone(shape) << ", but got " << result;
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (llvm::equal(getPerm(), llvm::seq<int64_t>(0, getPerm().size())))
    return getInput();
  if (auto inner = getInput().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> perm;
    for (int64_t dim : getPerm())
      perm.push_back(inner.getPerm()[dim]);
    getInputMutable().assign(inner.getInput());
    setPerm(perm);
    return getResult();
  }
  return {};
}

//===----------------------------------------------------------------------===//
// SliceOp, PadOp
//===----------------------------------------------------------------------===//

/// Verifies that `window`, placed at offsets with strides, lies inside `whole`:
/// - offsets and strides have one entry per dimension, strides are positive (C1);
/// - the last element of each dimension is inside (C2);
/// - ranks and element types are equal (C3).
static LogicalResult verifyWindow(Operation *op, RankedTensorType whole, RankedTensorType window,
                                  ArrayRef<int64_t> offsets, ArrayRef<int64_t> strides) {
  if (whole.getRank() != window.getRank()) // C3.
    return op->emitOpError("expects rank ") << whole.getRank() << ", but got " << window.getRank();
  size_t rank = whole.getRank();
  if (offsets.size() != rank || strides.size() != rank ||
      llvm::any_of(strides, [](int64_t s) { return s <= 0; })) // C1.
    return op->emitOpError("expects ")
           << rank << " offsets and positive strides, but got [" << offsets << "] and [" << strides << "]";
  for (size_t dim = 0; dim < rank; ++dim) { // C2.
    int64_t size = window.getDimSize(dim);
    int64_t end = size ? offsets[dim] + strides[dim] * (size - 1) + 1 : offsets[dim];
    if (offsets[dim] < 0 || end > whole.getDimSize(dim))
      return op->emitOpError("expects dimension ") << dim << " to stay within [0, " << whole.getDimSize(dim)
                                                   << "), but got [" << offsets[dim] << ", " << end << ")";
  }
  return verifySameElement(op, whole, window);
}

LogicalResult SliceOp::verify() {
  return verifyWindow(*this, tensorType(getInput()), tensorType(getResult()), getOffsets(), getStrides());
}

OpFoldResult SliceOp::fold(FoldAdaptor) { return getInput().getType() == getType() ? getInput() : Value(); }

LogicalResult PadOp::verify() {
  return verifyWindow(*this, tensorType(getResult()), tensorType(getInput()), getOffsets(), getStrides());
}

//===----------------------------------------------------------------------===//
// ConcatOp, SplitOp
//===----------------------------------------------------------------------===//

/// Verifies that `pieces`, joined along `dim`, make `whole`:
/// - there is a piece, and `dim` is a dimension of the whole (C1);
/// - ranks, element types and the other sizes agree (C2);
/// - the sizes along `dim` add up (C3).
static LogicalResult verifyPieces(Operation *op, RankedTensorType whole, ValueRange pieces, int64_t dim) {
  if (pieces.empty() || dim >= whole.getRank()) // C1.
    return op->emitOpError("expects a piece and a dimension below ")
           << whole.getRank() << ", but got " << pieces.size() << " pieces and dimension " << dim;
  int64_t total = 0;
  for (Value piece : pieces) { // C2.
    RankedTensorType type = tensorType(piece);
    SmallVector<int64_t> expected(whole.getShape());
    if (type.getRank() == whole.getRank())
      expected[dim] = type.getDimSize(dim);
    if (type != whole.clone(expected))
      return op->emitOpError("expects pieces like ")
             << whole << " but in dimension " << dim << ", but got " << type;
    total += expected[dim];
  }
  if (total != whole.getDimSize(dim)) // C3.
    return op->emitOpError("expects sizes that add up to ") << whole.getDimSize(dim) << ", but got " << total;
  return success();
}

LogicalResult ConcatOp::verify() {
  return verifyPieces(*this, tensorType(getResult()), getInputs(), getDim());
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  if (getInputs().size() == 1)
    return getInputs().front();
  // concat of all pieces of one split, in order, along the same dimension.
  auto split = getInputs().front().getDefiningOp<SplitOp>();
  if (split && split.getDim() == getDim() && llvm::equal(split.getPieces(), getInputs()))
    return split.getInput();
  return {};
}

LogicalResult SplitOp::verify() { return verifyPieces(*this, tensorType(getInput()), getPieces(), getDim()); }

//===----------------------------------------------------------------------===//
// ReduceOp
//===----------------------------------------------------------------------===//

/// `type` without `dims`.
static RankedTensorType reducedType(RankedTensorType type, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (!llvm::is_contained(dims, dim))
      shape.push_back(type.getDimSize(dim));
  return type.clone(shape);
}

void ReduceOp::build(OpBuilder &builder, OperationState &state, ReduceKind kind, Value input,
                     ArrayRef<int64_t> dims) {
  build(builder, state, reducedType(tensorType(input), dims), kind, input, dims);
}

LogicalResult ReduceOp::verify() {
  RankedTensorType input = tensorType(getInput());
  if (!areDims(getDims(), input.getRank())) // C1.
    return emitOpError("expects increasing dimensions below ")
           << input.getRank() << ", but got [" << getDims() << "]";
  if (reducedType(input, getDims()) != getType()) // C2.
    return emitOpError("expects result type ") << reducedType(input, getDims()) << ", but got " << getType();
  return success();
}

OpFoldResult ReduceOp::fold(FoldAdaptor) { return getDims().empty() ? getInput() : Value(); }

int64_t ReduceOp::getFlops() {
  return isa<FloatType>(getElementTypeOrSelf(getType())) ? tensorType(getInput()).getNumElements() : 0;
}
