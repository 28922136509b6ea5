// RUN: ds-opt %s --ds-decompose --ds-normalize-shapes --ds-fuse-regions | FileCheck %s

// The norm of gradients reads each of them once: one kernel squares and adds up, and writes a number for each 16384.
// CHECK-LABEL: @reads_a_matrix_once
func.func @reads_a_matrix_once(%x: tensor<2048x768xf32>) -> tensor<f64> {
  // CHECK: %[[BLOCKS:.*]] = ds.reshape %arg0 : tensor<2048x768xf32> -> tensor<96x16384xf32>
  // CHECK: ds.fused(%[[BLOCKS]]) : (tensor<96x16384xf32>) -> tensor<96xf32>
  // CHECK: ds.fused({{.*}}) : (tensor<96xf32>) -> tensor<f64>
  // CHECK-NOT: ds.fused
  %s = ds.sum_of_squares %x : tensor<2048x768xf32> -> tensor<f64>
  return %s : tensor<f64>
}

// Of a bucket that is no multiple of 16384, and whose sum over micro-steps is needed besides.
// CHECK-LABEL: @reads_a_bucket_once
func.func @reads_a_bucket_once(%x: tensor<1600000xf32>, %y: tensor<1600000xf32>) -> (tensor<1600000xf32>, tensor<f64>) {
  // CHECK: %[[SUM:.*]] = ds.fused(%arg0, %arg1) : (tensor<1600000xf32>, tensor<1600000xf32>) -> tensor<1600000xf32>
  // CHECK: ds.slice %[[SUM]]
  // CHECK: ds.fused({{.*}}) : (tensor<97x16384xf32>) -> tensor<97xf32>
  // CHECK: ds.slice %[[SUM]]
  // CHECK: ds.fused({{.*}}) : (tensor<10752xf32>) -> tensor<f32>
  // CHECK: ds.fused({{.*}}) : (tensor<97xf32>, tensor<f32>) -> tensor<f64>
  // CHECK-NOT: ds.fused
  %g = ds.add %x, %y : tensor<1600000xf32>
  %s = ds.sum_of_squares %g : tensor<1600000xf32> -> tensor<f64>
  return %g, %s : tensor<1600000xf32>, tensor<f64>
}
