//===- DsTraining.h - Ops that training sees otherwise, in C++ ---------------------===//
//
// Apart from Ds.h, because passes know these ops by their interfaces alone: what includes this header names
// them.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_DIALECT_DSTRAINING_H
#define DS_DIALECT_DSTRAINING_H

#include "ds/Dialect/Ds.h"

#include "ds/Dialect/DsTrainingInterfaces.h.inc"

#define GET_OP_CLASSES
#include "ds/Dialect/DsTrainingOps.h.inc"

#endif // DS_DIALECT_DSTRAINING_H
