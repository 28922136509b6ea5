//===- Products.h - Which products to measure again -----------------------------===//
#ifndef DS_LIB_RUNTIME_CALIBRATE_PRODUCTS_H
#define DS_LIB_RUNTIME_CALIBRATE_PRODUCTS_H

#include <cstddef>
#include <vector>

namespace ds::rt {

/// Of rows [m, n, k, rates...] those where a form reaches less than three quarters of what it does with
/// smaller sizes, or takes as much longer than with larger ones: somebody else had the processor for as long
/// as they were measured, which no spread shows.
std::vector<size_t> findSlowShapes(const std::vector<std::vector<double>> &grid);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CALIBRATE_PRODUCTS_H
