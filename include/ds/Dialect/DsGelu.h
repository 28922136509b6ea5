//===- DsGelu.h - Products that apply GELU in C++ --------------------------------===//
//
// Apart from Ds.h, because passes know these ops by their interfaces alone: what includes this header names
// them.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_DIALECT_DSGELU_H
#define DS_DIALECT_DSGELU_H

#include "ds/Dialect/Ds.h"

#define GET_OP_CLASSES
#include "ds/Dialect/DsGeluOps.h.inc"

#endif // DS_DIALECT_DSGELU_H
