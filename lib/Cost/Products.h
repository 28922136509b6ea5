//===- Products.h - Products on a GPU's tensor cores, by their tiles -----------------===//
#ifndef DS_LIB_COST_PRODUCTS_H
#define DS_LIB_COST_PRODUCTS_H

#include "ds/Cost/Rates.h"

namespace ds::cost {

/// Seconds of the operations of a product in 16 bits on `device`, whose kernels have a rate of tiles.
double tiledSeconds(const Matmul &shape, const config::DeviceSpec &device);

/// Seconds of the operations of an unaligned product in 16 bits, which the library computes without the units
/// that load tiles; empty where `device` has no rate for them.
std::optional<double> unalignedSeconds(const Matmul &shape, const config::DeviceSpec &device);

} // namespace ds::cost

#endif // DS_LIB_COST_PRODUCTS_H
