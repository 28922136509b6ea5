// RUN: ds-opt %s --ds-lower-precision --ds-offer-loss --ds-split-loss --ds-differentiate --ds-sink-loss --ds-build-step | FileCheck %s

// The gradients of a loss in chunks are one chain of products in f32. What is kept is added once it is complete, until
// ds-decompose starts the chain from it (decompose-accumulate.mlir). Evaluation makes the chunks of the loss, and no gradient.

module @chunks attributes {ds.training = #ds.training<gradient_accumulation_steps = 2, optimizer = {type = lion, lr = 0.5},
    loss_chunks = 2, precision = {compute = bf16, gradient = f32}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6x8xf32>
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %t: tensor<4xi64> {ds.input = "t"}, %w: tensor<6x8xf32> {ds.state = @w}) -> tensor<f32> {
    %h = ds.matmul %x, %w transpose_rhs : tensor<4x8xf32>, tensor<6x8xf32> -> tensor<4x6xf32>
    %loss, %lse, %count = ds.cross_entropy %h, %t ignore_index -100 : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}

// CHECK: func.func @first
// CHECK: %[[PART:.*]] = ds.matmul {{.*}} transpose_lhs{{.*}} : tensor<2x6xbf16>, tensor<2x8xbf16> -> tensor<6x8xf32>
// CHECK: %[[SUM:.*]] = ds.matmul {{.*}} into(%[[PART]]) transpose_lhs{{.*}} : tensor<2x6xbf16>, tensor<2x8xbf16> into tensor<6x8xf32> -> tensor<6x8xf32>
// CHECK: %[[ROUNDED:.*]] = ds.convert %[[SUM]]
// CHECK: %[[KEPT:.*]] = ds.accumulate %[[ROUNDED]]
// CHECK: return {{.*}}%[[KEPT]] :

// CHECK: func.func @last
// CHECK-SAME: %[[KEPT:[a-z0-9]*]]: tensor<6x8xf32> {ds.state = @w.grad}
// CHECK: ds.matmul {{.*}} into(
// CHECK: %[[ROUNDED:.*]] = ds.convert
// CHECK: %[[TOTAL:.*]] = ds.accumulate %[[ROUNDED]] into %[[KEPT]]
// CHECK: ds.sum_of_squares %[[TOTAL]]

// CHECK: func.func @evaluate
// CHECK-COUNT-2: ds.cross_entropy {{.*}} over(
// CHECK-NOT: ds.cross_entropy_grad
