// Scores and logits with windows, caps and slopes: gradients against autograd.
// RUN: ds-opt %s --split-input-file --ds-differentiate --mlir-print-op-generic | %python %oracle/check_ir_gradients.py | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-differentiate --ds-decompose --canonicalize --cse --mlir-print-op-generic | %python %oracle/check_ir_gradients.py | FileCheck %s
// REQUIRES: torch
// CHECK: 16 gradients compared

// A causal window over a longer past.
ds.state @q role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x5x4x3xf32>
ds.state @k role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x7x2x3xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x7x2x3xf32>
func.func @forward(%q: tensor<2x5x4x3xf32> {ds.state = @q}, %k: tensor<2x7x2x3xf32> {ds.state = @k}, %v: tensor<2x7x2x3xf32> {ds.state = @v}) -> tensor<f32> {
  %y, %lse = ds.attention %q, %k, %v causal window 3 scale 0.7 : (tensor<2x5x4x3xf32>, tensor<2x7x2x3xf32>, tensor<2x7x2x3xf32>) -> (tensor<2x5x4x3xf32>, tensor<2x4x5xf32>)
  %flat_ = ds.reshape %y : tensor<2x5x4x3xf32> -> tensor<120xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<120xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<120xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<120xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// A window to both sides.
ds.state @q role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x5x4x3xf32>
ds.state @k role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x7x2x3xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x7x2x3xf32>
func.func @forward(%q: tensor<2x5x4x3xf32> {ds.state = @q}, %k: tensor<2x7x2x3xf32> {ds.state = @k}, %v: tensor<2x7x2x3xf32> {ds.state = @v}) -> tensor<f32> {
  %y, %lse = ds.attention %q, %k, %v window 2 scale 0.7 : (tensor<2x5x4x3xf32>, tensor<2x7x2x3xf32>, tensor<2x7x2x3xf32>) -> (tensor<2x5x4x3xf32>, tensor<2x4x5xf32>)
  %flat_ = ds.reshape %y : tensor<2x5x4x3xf32> -> tensor<120xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<120xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<120xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<120xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// A cap that bends the scores.
ds.state @q role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x5x4x3xf32>
ds.state @k role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x7x2x3xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x7x2x3xf32>
func.func @forward(%q: tensor<2x5x4x3xf32> {ds.state = @q}, %k: tensor<2x7x2x3xf32> {ds.state = @k}, %v: tensor<2x7x2x3xf32> {ds.state = @v}) -> tensor<f32> {
  %y, %lse = ds.attention %q, %k, %v causal cap 0.6 scale 0.7 : (tensor<2x5x4x3xf32>, tensor<2x7x2x3xf32>, tensor<2x7x2x3xf32>) -> (tensor<2x5x4x3xf32>, tensor<2x4x5xf32>)
  %flat_ = ds.reshape %y : tensor<2x5x4x3xf32> -> tensor<120xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<120xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<120xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<120xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Slopes.
ds.state @q role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x5x4x3xf32>
ds.state @k role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x7x2x3xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x7x2x3xf32>
func.func @forward(%s: tensor<4xf32> {ds.input = "s"}, %q: tensor<2x5x4x3xf32> {ds.state = @q}, %k: tensor<2x7x2x3xf32> {ds.state = @k}, %v: tensor<2x7x2x3xf32> {ds.state = @v}) -> tensor<f32> {
  %y, %lse = ds.attention %q, %k, %v slopes(%s) causal scale 0.7 : (tensor<2x5x4x3xf32>, tensor<2x7x2x3xf32>, tensor<2x7x2x3xf32>, tensor<4xf32>) -> (tensor<2x5x4x3xf32>, tensor<2x4x5xf32>)
  %flat_ = ds.reshape %y : tensor<2x5x4x3xf32> -> tensor<120xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<120xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<120xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<120xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// All at once, beside a mask.
ds.state @q role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x5x4x3xf32>
ds.state @k role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x7x2x3xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x7x2x3xf32>
func.func @forward(%m: tensor<1x4x1x7xf32> {ds.input = "m"}, %s: tensor<4xf32> {ds.input = "s"}, %q: tensor<2x5x4x3xf32> {ds.state = @q}, %k: tensor<2x7x2x3xf32> {ds.state = @k}, %v: tensor<2x7x2x3xf32> {ds.state = @v}) -> tensor<f32> {
  %y, %lse = ds.attention %q, %k, %v mask(%m) slopes(%s) causal window 3 cap 0.6 scale 0.7 : (tensor<2x5x4x3xf32>, tensor<2x7x2x3xf32>, tensor<2x7x2x3xf32>, tensor<1x4x1x7xf32>, tensor<4xf32>) -> (tensor<2x5x4x3xf32>, tensor<2x4x5xf32>)
  %flat_ = ds.reshape %y : tensor<2x5x4x3xf32> -> tensor<120xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<120xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<120xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<120xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// A loss of capped logits.
ds.state @l role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6x5xf32>
func.func @forward(%j: tensor<6xi64> {ds.input = "j"}, %l: tensor<6x5xf32> {ds.state = @l}) -> tensor<f32> {
  %loss, %lse, %count = ds.cross_entropy %l, %j ignore_index 2 cap 0.6 : (tensor<6x5xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<f32>)
  return %loss : tensor<f32>
}
