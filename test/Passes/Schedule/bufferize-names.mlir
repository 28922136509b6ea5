// RUN: ds-opt %s --ds-bufferize | FileCheck %s

// A parameter has the name that the first kernel would get.
// CHECK: ds.state @kernel_0
// CHECK: ds.launch @kernel_1
// CHECK: ds.kernel @kernel_1
ds.state @kernel_0 role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @last(%w: tensor<4xf32> {ds.state = @kernel_0}) -> (tensor<4xf32> {ds.state = @kernel_0}) {
  %r = ds.fused (%w) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: tensor<4xf32>):
    %n = ds.neg %x : tensor<4xf32>
    ds.yield %n : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
