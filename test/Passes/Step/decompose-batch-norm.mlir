// RUN: ds-opt %s --split-input-file --ds-decompose=keep-updates | FileCheck %s --implicit-check-not=_norm

// Sums lie over what is contiguous first; the variance that is kept has Bessel's correction, here 12 / 11, in its factor 0.1.
// CHECK-LABEL: @batch_norm
// CHECK: %[[X:.*]] = ds.reshape %{{.*}} : tensor<3x8x2x2xf32> -> tensor<3x8x4xf32>
// CHECK: %[[ROWS:.*]] = ds.reduce sum %[[X]] dims [2] : tensor<3x8x4xf32> -> tensor<3x8xf32>
// CHECK: %[[SUM:.*]] = ds.reduce sum %[[ROWS]] dims [0]
// CHECK: %[[MEAN:.*]] = ds.mul %[[SUM]], %{{.*}} : tensor<8xf32>
// CHECK: ds.rsqrt
// CHECK: ds.constant dense<0.109090909> : tensor<8xf32>
func.func @batch_norm(%x: tensor<3x8x2x2xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>) -> (tensor<3x8x2x2xf32>, tensor<8xf32>, tensor<8xf32>) {
  %y:5 = ds.batch_norm %x running(%m, %v) momentum 0.1 epsilon 1.0e-5 : (tensor<3x8x2x2xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<3x8x2x2xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %y#0, %y#3, %y#4 : tensor<3x8x2x2xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// In step with other ranks both means of forward and both of backward are those of all: 12 samples of 2 ranks are 24, of
// which 24 / 23 are 1.0434783 in the correction.
// CHECK-LABEL: @synchronized
// CHECK-COUNT-2: ds.rank_mean %{{.*}} : tensor<8xf32>
// CHECK: ds.constant dense<0.104347825> : tensor<8xf32>
// CHECK-COUNT-2: ds.rank_mean %{{.*}} : tensor<8xf32>
// CHECK-NOT: ds.rank_mean
module attributes {ds.phase = #ds.phase<step>} {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  func.func @synchronized(%x: tensor<3x8x4xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %g: tensor<3x8x4xf32>) -> (tensor<3x8x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<3x8x4xf32>) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %y:5 = ds.batch_norm %x running(%m, %v) sync momentum 0.1 epsilon 1.0e-5 : (tensor<3x8x4xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<3x8x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    %d:3 = ds.batch_norm_grad %x, %y#1, %y#2, %g sync : (tensor<3x8x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<3x8x4xf32>) -> (tensor<3x8x4xf32>, tensor<8xf32>, tensor<8xf32>)
    return %y#0, %y#3, %y#4, %d#0 : tensor<3x8x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<3x8x4xf32>
  }
}
