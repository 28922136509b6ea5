// RUN: ds-opt %s --ds-sink-loss | FileCheck %s

// Each chunk's product, conversion and loss stand before their gradient, the sum of losses before what reads it. A
// product that something else reads stays; so does all else.

// CHECK-LABEL: func.func @chunks
// CHECK: %[[OTHER:.*]] = ds.matmul %[[X:.*]], %[[W:.*]] : tensor<4x8xf32>, tensor<8x6xf32>
// CHECK-NEXT: %[[EXP:.*]] = ds.exp %[[X]]
// CHECK-NEXT: %[[Y1:.*]] = ds.matmul
// CHECK-NEXT: %[[F1:.*]] = ds.convert %[[Y1]]
// CHECK-NEXT: %[[L1:.*]], %[[S1:.*]], %{{.*}} = ds.cross_entropy %[[F1]]
// CHECK-NEXT: %[[D1:.*]] = ds.cross_entropy_grad %[[F1]], %{{.*}}, %[[S1]]
// CHECK-NEXT: %[[L0:.*]], %[[S0:.*]], %{{.*}} = ds.cross_entropy %[[OTHER]]
// CHECK-NEXT: %[[D0:.*]] = ds.cross_entropy_grad %[[OTHER]], %{{.*}}, %[[S0]]
// CHECK-NEXT: %[[SUM:.*]] = ds.add %[[L0]], %[[L1]]
// CHECK-NEXT: return %[[SUM]], %[[D0]], %[[D1]], %[[OTHER]], %[[EXP]]
func.func @chunks(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %xb: tensor<4x8xbf16>, %wb: tensor<8x6xbf16>, %t: tensor<4xi64>,
                  %n: tensor<f32>, %g: tensor<f32>)
    -> (tensor<f32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x8xf32>) {
  %y0 = ds.matmul %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %l0, %s0, %c0 = ds.cross_entropy %y0, %t over(%n) ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %y1 = ds.matmul %xb, %wb : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xbf16>
  %f1 = ds.convert %y1 : tensor<4x6xbf16> -> tensor<4x6xf32>
  %l1, %s1, %c1 = ds.cross_entropy %f1, %t over(%n) ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %sum = ds.add %l0, %l1 : tensor<f32>
  %e = ds.exp %x : tensor<4x8xf32>
  %d1 = ds.cross_entropy_grad %f1, %t, %s1, %n, %g ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xf32>
  %d0 = ds.cross_entropy_grad %y0, %t, %s0, %n, %g ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xf32>
  return %sum, %d0, %d1, %y0, %e : tensor<f32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x8xf32>
}

// Two losses sink to the same sum. What both read stands before the first of them.

// CHECK-LABEL: func.func @two_losses_of_one_product
// CHECK: %[[EXP:.*]] = ds.exp
// CHECK-NEXT: %[[Y:.*]] = ds.matmul
// CHECK-NEXT: %[[L1:.*]], %{{.*}}, %{{.*}} = ds.cross_entropy %[[Y]], %[[U:.*]] over
// CHECK-NEXT: %[[L0:.*]], %{{.*}}, %{{.*}} = ds.cross_entropy %[[Y]], %[[T:.*]] over
// CHECK-NEXT: %[[SUM:.*]] = ds.add %[[L0]], %[[L1]]
// CHECK-NEXT: return %[[SUM]], %[[EXP]]
func.func @two_losses_of_one_product(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %t: tensor<4xi64>, %u: tensor<4xi64>, %n: tensor<f32>)
    -> (tensor<f32>, tensor<4x8xf32>) {
  %y = ds.matmul %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %l0, %s0, %c0 = ds.cross_entropy %y, %t over(%n) ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %l1, %s1, %c1 = ds.cross_entropy %y, %u over(%n) ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %sum = ds.add %l0, %l1 : tensor<f32>
  %e = ds.exp %x : tensor<4x8xf32>
  return %sum, %e : tensor<f32>, tensor<4x8xf32>
}
