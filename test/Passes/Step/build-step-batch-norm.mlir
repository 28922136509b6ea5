// RUN: ds-opt %s --split-input-file --ds-differentiate --ds-build-step | FileCheck %s

// Each training segment writes what is kept; evaluation reads it in place of the batch's own, and writes nothing.
// CHECK-LABEL: module @keeps
// CHECK: func.func @first({{.*}}) -> (tensor<8xf32> {ds.state = @mean}, tensor<8xf32> {ds.state = @variance}, tensor<f32> {ds.state = @loss}
// CHECK: ds.batch_norm %{{.*}} running({{.*}}) momentum
// CHECK: func.func @last({{.*}}) -> (tensor<8xf32> {ds.state = @mean}, tensor<8xf32> {ds.state = @variance}, tensor<f32> {ds.state = @loss}
// CHECK: ds.batch_norm
// CHECK: func.func @evaluate(%[[X:.*]]: tensor<4x8xf32> {ds.input = "x"}, %{{.*}}: tensor<8xf32> {ds.state = @w}, %[[MEAN:.*]]: tensor<8xf32> {ds.state = @mean}, %[[VARIANCE:.*]]: tensor<8xf32> {ds.state = @variance}) -> (tensor<f32> {ds.state = @eval_loss})
// CHECK-NOT: ds.batch_norm
// CHECK: %[[SHIFTED:.*]] = ds.add %[[VARIANCE]]
// CHECK: ds.rsqrt %[[SHIFTED]]
// CHECK: ds.sub
module @keeps attributes {ds.training = #ds.training<gradient_accumulation_steps = 2>} {
  ds.state @w role(parameter) trainable init(#ds.init<constant, 1.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @mean role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @variance role(buffer) init(#ds.init<constant, 1.0, 0.0>) home(device) : tensor<8xf32>
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}, %m: tensor<8xf32> {ds.state = @mean}, %v: tensor<8xf32> {ds.state = @variance}) -> (tensor<f32>, tensor<8xf32> {ds.state = @mean}, tensor<8xf32> {ds.state = @variance}) {
    %y:5 = ds.batch_norm %x weight(%w) running(%m, %v) momentum 0.1 epsilon 1.0e-5 : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    %s = ds.sin %y#0 : tensor<4x8xf32>
    %l = ds.reduce sum %s dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
    return %l, %y#3, %y#4 : tensor<f32>, tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// Over the samples of all ranks, forward and backward.
// CHECK-LABEL: module @synchronizes
// CHECK: func.func @last
// CHECK: ds.batch_norm %{{.*}} sync momentum
// CHECK: ds.batch_norm_grad %{{.*}} sync 
// CHECK: func.func @evaluate
// CHECK: ds.batch_norm
module @synchronizes attributes {ds.training = #ds.training<sync_batch_norm = true>} {
  ds.state @w role(parameter) trainable init(#ds.init<constant, 1.0, 0.0>) home(device) : tensor<4x8xf32>
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<4x8xf32> {ds.state = @w}) -> tensor<f32> {
    %p = ds.mul %x, %w : tensor<4x8xf32>
    %y:3 = ds.batch_norm %p momentum 0.1 epsilon 1.0e-5 : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
    %s = ds.sin %y#0 : tensor<4x8xf32>
    %l = ds.reduce sum %s dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}
