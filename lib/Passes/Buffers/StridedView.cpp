//===- StridedView.cpp - Views as shapes and strides -----------------------------===//
#include "StridedView.h"

using namespace mlir;
using namespace mlir::ds;

StridedView mlir::ds::viewOf(BufferType type) {
  return {0, llvm::to_vector(type.getTensor().getShape()), llvm::to_vector(type.getStrides())};
}

std::optional<StridedView> mlir::ds::reshapeView(const StridedView &view, ArrayRef<int64_t> shape) {
  StridedView result{view.offset, llvm::to_vector(shape), SmallVector<int64_t>(shape.size(), 1), view.shifts};
  if (llvm::is_contained(shape, 0))
    return result;
  // Runs of dimensions that are contiguous among themselves, outermost first, without unit dimensions.
  SmallVector<std::pair<int64_t, int64_t>> runs; // (elements, stride of the innermost)
  for (auto [size, stride] : llvm::zip_equal(view.shape, view.strides)) {
    if (size == 1)
      continue;
    if (!runs.empty() && runs.back().second == stride * size)
      runs.back() = {runs.back().first * size, stride};
    else
      runs.push_back({size, stride});
  }
  // Each new dimension takes its part of the innermost run that is left.
  int64_t left = runs.empty() ? 1 : runs.back().first, stride = runs.empty() ? 1 : runs.back().second;
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim >= 0; --dim) {
    if (shape[dim] == 1)
      continue;
    if (left == 1) {
      runs.pop_back();
      if (runs.empty())
        return std::nullopt;
      std::tie(left, stride) = runs.back();
    }
    if (left % shape[dim] != 0)
      return std::nullopt;
    result.strides[dim] = stride;
    left /= shape[dim];
    stride *= shape[dim];
  }
  // Unit dimensions get the stride that a row-major layout would give them.
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 1, next = 1; dim >= 0; --dim) {
    if (shape[dim] == 1)
      result.strides[dim] = next;
    next = result.strides[dim] * shape[dim];
  }
  return result;
}

StridedView mlir::ds::transposeView(const StridedView &view, ArrayRef<int64_t> perm) {
  StridedView result{view.offset, {}, {}, view.shifts};
  for (int64_t dim : perm) {
    result.shape.push_back(view.shape[dim]);
    result.strides.push_back(view.strides[dim]);
  }
  return result;
}

StridedView mlir::ds::sliceView(const StridedView &view, ArrayRef<int64_t> offsets, ArrayRef<int64_t> steps,
                                ArrayRef<int64_t> shape) {
  StridedView result{view.offset, llvm::to_vector(shape), {}, view.shifts};
  for (auto [stride, offset, step] : llvm::zip_equal(view.strides, offsets, steps)) {
    result.offset += offset * stride;
    result.strides.push_back(stride * step);
  }
  return result;
}

StridedView mlir::ds::shardView(const StridedView &view, ArrayRef<int64_t> shape, MeshOp mesh,
                                AxesAttr axes) {
  return {view.offset, llvm::to_vector(shape), view.strides,
          addShifts(view.shifts, mesh.getShiftsOfParts(axes, shape[0] * view.strides[0]))};
}

ShiftsAttr mlir::ds::addShifts(ShiftsAttr outer, ShiftsAttr inner) {
  if (!outer || !inner)
    return outer ? outer : inner;
  SmallVector<StringAttr> names(outer.getNames());
  SmallVector<int64_t> strides(outer.getStrides());
  for (auto [name, stride] : llvm::zip_equal(inner.getNames(), inner.getStrides())) {
    auto *known = llvm::find(names, name);
    if (known == names.end()) {
      names.push_back(name);
      strides.push_back(stride);
    } else {
      strides[known - names.begin()] += stride;
    }
  }
  return ShiftsAttr::get(outer.getContext(), names, strides);
}
