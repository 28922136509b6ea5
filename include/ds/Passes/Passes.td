//===- Passes.td - The passes, in pipeline order --------------------*- tablegen -*-===//
#ifndef DS_PASSES
#define DS_PASSES

include "mlir/Pass/PassBase.td"

#endif // DS_PASSES
