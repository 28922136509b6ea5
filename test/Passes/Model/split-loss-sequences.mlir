// RUN: ds-opt %s --split-input-file --ds-offer-loss --ds-split-loss | FileCheck %s

// Two ranks have four tokens each of both sequences. Rows are counted by rank: each of two chunks has four rows of each.
// CHECK-LABEL: @by_rank
// CHECK: %[[H:.*]] = ds.reshape %{{.*}} : tensor<2x8x4xf32> -> tensor<2x2x4x4xf32>
// CHECK: %[[BY:.*]] = ds.transpose %[[H]] perm [1, 0, 2, 3] : tensor<2x2x4x4xf32>
// CHECK: %[[ROWS:.*]] = ds.reshape %[[BY]] : tensor<2x2x4x4xf32> -> tensor<2x8x4xf32>
// CHECK: %[[PIECES:.*]]:2 = ds.split %[[ROWS]] dim 1 : tensor<2x8x4xf32> -> tensor<2x4x4xf32>, tensor<2x4x4xf32>
// CHECK: ds.split %{{.*}} dim 1 : tensor<2x8xi64> -> tensor<2x4xi64>, tensor<2x4xi64>
// CHECK-COUNT-2: ds.cross_entropy {{.*}} : (tensor<8x100xf32>, tensor<8xi64>, tensor<f32>)
module attributes {ds.training = #ds.training<loss_chunks = 2>} {
  ds.mesh @mesh axes [sp = 2] zero sp
  func.func @by_rank(%x: tensor<2x8x4xf32>, %t: tensor<2x8xi64>, %w: tensor<4x100xf32>) -> tensor<f32> {
    %y = ds.matmul %x, %w : tensor<2x8x4xf32>, tensor<4x100xf32> -> tensor<2x8x100xf32>
    %z = ds.reshape %y : tensor<2x8x100xf32> -> tensor<16x100xf32>
    %s = ds.reshape %t : tensor<2x8xi64> -> tensor<16xi64>
    %loss, %lse, %count = ds.cross_entropy %z, %s ignore_index -100 : (tensor<16x100xf32>, tensor<16xi64>) -> (tensor<f32>, tensor<16xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}

// -----

// Seven of eight tokens are rows, which two ranks do not divide; rows of no sequence: these stay whole.
// CHECK-LABEL: @stays
// CHECK-NOT: ds.split
// CHECK: return
module attributes {ds.training = #ds.training<loss_chunks = 2>} {
  ds.mesh @mesh axes [sp = 2] zero sp
  func.func @stays(%x: tensor<1x8x4xf32>, %t: tensor<7xi64>, %w: tensor<4x100xf32>, %r: tensor<8x4xf32>, %u: tensor<8xi64>) -> (tensor<f32>, tensor<f32>) {
    %y = ds.matmul %x, %w : tensor<1x8x4xf32>, tensor<4x100xf32> -> tensor<1x8x100xf32>
    %c = ds.slice %y offsets [0, 0, 0] strides [1, 1, 1] : tensor<1x8x100xf32> -> tensor<1x7x100xf32>
    %z = ds.reshape %c : tensor<1x7x100xf32> -> tensor<7x100xf32>
    %l0, %s0, %c0 = ds.cross_entropy %z, %t ignore_index -100 : (tensor<7x100xf32>, tensor<7xi64>) -> (tensor<f32>, tensor<7xf32>, tensor<f32>)
    %v = ds.matmul %r, %w : tensor<8x4xf32>, tensor<4x100xf32> -> tensor<8x100xf32>
    %l1, %s1, %c1 = ds.cross_entropy %v, %u ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
    return %l0, %l1 : tensor<f32>, tensor<f32>
  }
}
