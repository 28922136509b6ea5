// A word that an enum does not have: the message names those that it has, and nothing of the compiler's own code.
//
// RUN: %exits 3 ds-opt %s --emit=plan | FileCheck %s --implicit-check-not mlir::
// RUN: %exits 3 ds-opt %s --canonicalize | FileCheck %s --implicit-check-not mlir::
// CHECK: enum-words.mlir:[[#@LINE+3]]:{{[0-9]+}}: error: expected Phase to be one of: model, step, sharded, fused, resident, scheduled, planned
// CHECK: error: failed to parse Ds_PhaseAttr parameter 'value' which is to be a `Phase`
// CHECK: is no valid model
module attributes {ds.phase = #ds.phase<scalar>} {
}
