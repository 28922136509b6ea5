//===- DsOps.td - All ops of the dialect ----------------------------*- tablegen -*-===//
#ifndef DS_OPS
#define DS_OPS

include "ds/Dialect/DsElementwiseOps.td"
include "ds/Dialect/DsShapeOps.td"
include "ds/Dialect/DsNetworkOps.td"
include "ds/Dialect/DsStateOps.td"

#endif // DS_OPS
