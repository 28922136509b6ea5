// RUN: ds-opt %s --split-input-file --ds-differentiate --mlir-print-op-generic | %python %oracle/check_ir_gradients.py | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-differentiate --ds-decompose --canonicalize --cse --mlir-print-op-generic | %python %oracle/check_ir_gradients.py | FileCheck %s
// REQUIRES: torch

// Transposed convolutions and batch norms against torch.autograd.
// CHECK: 5 gradients compared

// A transposed convolution in two groups, with a row behind what its windows reach.
ds.state @x role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x4x3x2xf32>
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x3x3x2xf32>
func.func @forward(%x: tensor<2x4x3x2xf32> {ds.state = @x}, %w: tensor<4x3x3x2xf32> {ds.state = @w}) -> tensor<f32> {
  %y = ds.conv_grad_input %w, %x stride [2, 3] padding [1, 0] dilation [1, 2] groups 2 : tensor<4x3x3x2xf32>, tensor<2x4x3x2xf32> -> tensor<2x6x6x7xf32>
  %flat_ = ds.reshape %y : tensor<2x6x6x7xf32> -> tensor<504xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<504xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<504xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<504xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Batch norm, of which weight and bias are trained, through a function that is not linear.
ds.state @x role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x4x5xf32>
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @forward(%x: tensor<3x4x5xf32> {ds.state = @x}, %w: tensor<4xf32> {ds.state = @w}, %b: tensor<4xf32> {ds.state = @b}) -> tensor<f32> {
  %y, %mean, %rstd = ds.batch_norm %x weight(%w) bias(%b) momentum 0.1 epsilon 1.0e-5 : (tensor<3x4x5xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4x5xf32>, tensor<4xf32>, tensor<4xf32>)
  %p = ds.sin %y : tensor<3x4x5xf32>
  %flat_ = ds.reshape %p : tensor<3x4x5xf32> -> tensor<60xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<60xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<60xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<60xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}
