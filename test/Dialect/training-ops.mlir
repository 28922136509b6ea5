// RUN: ds-opt %s --verify-roundtrip | FileCheck %s

// Ops that training sees otherwise, as their descriptions show them.

// CHECK-LABEL: @batch_norm
func.func @batch_norm(%x: tensor<4x8x5xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %g: tensor<4x8x5xf32>) {
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}} = ds.batch_norm %{{.*}} momentum 1.000000e-01 epsilon 1.000000e-05 : (tensor<4x8x5xf32>) -> (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>)
  %r, %mean, %rstd = ds.batch_norm %x momentum 0.1 epsilon 1.0e-5 : (tensor<4x8x5xf32>) -> (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>)
  // CHECK: %{{.*}} = ds.batch_norm %{{.*}} weight(%{{.*}}) bias(%{{.*}}) running(%{{.*}}, %{{.*}}) momentum 1.000000e-01 epsilon 1.000000e-05 : (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  %k:5 = ds.batch_norm %x weight(%w) bias(%b) running(%m, %v) momentum 0.1 epsilon 1.0e-5 : (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  // CHECK: %{{.*}} = ds.batch_norm %{{.*}} sync momentum
  %s:3 = ds.batch_norm %x sync momentum 0.1 epsilon 1.0e-5 : (tensor<4x8x5xf32>) -> (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>)
  // CHECK: ds.batch_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} weight(%{{.*}}) : (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8x5xf32>, tensor<8xf32>) -> (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>)
  %dx, %dw, %db = ds.batch_norm_grad %x, %mean, %rstd, %g weight(%w) : (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8x5xf32>, tensor<8xf32>) -> (tensor<4x8x5xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// CHECK-LABEL: @detach
func.func @detach(%x: tensor<4x8xf32>) {
  // CHECK: ds.detach %{{.*}} : tensor<4x8xf32>
  %r = ds.detach %x : tensor<4x8xf32>
  return
}
