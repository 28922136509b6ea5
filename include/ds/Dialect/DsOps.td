//===- DsOps.td - All ops of the dialect ----------------------------*- tablegen -*-===//
#ifndef DS_OPS
#define DS_OPS

include "ds/Dialect/DsElementwiseOps.td"
include "ds/Dialect/DsShapeOps.td"
include "ds/Dialect/DsNetworkOps.td"
include "ds/Dialect/DsStateOps.td"
include "ds/Dialect/DsCommunicationOps.td"
include "ds/Dialect/DsUpdateOps.td"
include "ds/Dialect/DsShardOps.td"
include "ds/Dialect/DsSpaceOps.td"
include "ds/Dialect/DsRecomputeOps.td"

#endif // DS_OPS
