// RUN: ds-opt %s --verify-roundtrip | FileCheck %s

// What backward makes again, as the descriptions show it.

// CHECK-LABEL: @values
func.func @values(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>, %dy: tensor<4x8xf32>) -> (tensor<4x16xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: ds.recompute(%{{.*}}, %{{.*}}) after(%{{.*}} : tensor<4x8xf32>) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %again = ds.recompute (%x, %w) after(%dy : tensor<4x8xf32>) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>):
    %h = ds.matmul %a, %b : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    ds.yield %h : tensor<4x8xf32>
  }
  // CHECK: ds.after %{{.*}}, %{{.*}} : tensor<4x16xf32>, tensor<4x8xf32>
  %late = ds.after %x, %dy : tensor<4x16xf32>, tensor<4x8xf32>
  // CHECK: ds.recompute(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %at_once = ds.recompute (%dy) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    ds.yield %a : tensor<4x8xf32>
  }
  return %late, %again, %at_once : tensor<4x16xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
