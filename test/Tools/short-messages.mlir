// An error says where an op is and what is wrong with it, and prints it where that is asked for.
// RUN: %exits 3 ds-opt %s --ds-bufferize | FileCheck %s --implicit-check-not="see current operation"
// RUN: %exits 3 ds-opt %s --ds-bufferize --mlir-print-op-on-diagnostic | FileCheck %s --check-prefixes=CHECK,WITH
// CHECK: short-messages.mlir:[[@LINE+3]]:8: error: 'ds.tanh' op expects to be fused or lowered before buffers are assigned
// WITH: note: see current operation: %{{.*}} = "ds.tanh"
func.func @not_fused(%x: tensor<4xf32> {ds.input = "x"}) {
  %t = ds.tanh %x : tensor<4xf32>
  return
}
