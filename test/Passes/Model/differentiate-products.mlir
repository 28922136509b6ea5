// RUN: ds-opt %s --split-input-file --ds-differentiate --mlir-print-op-generic | %python %oracle/check_ir_gradients.py | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-differentiate --ds-decompose --canonicalize --cse --mlir-print-op-generic | %python %oracle/check_ir_gradients.py | FileCheck %s
// REQUIRES: torch

// The gradients of products in all their forms against torch.autograd, as differentiated and after decomposition and clean-up.
// CHECK: 29 gradients compared

// Product of matrices as they are.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x5xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<5x3xf32>
func.func @forward(%a: tensor<4x5xf32> {ds.state = @a}, %b: tensor<5x3xf32> {ds.state = @b}) -> tensor<f32> {
  %y = ds.matmul %a, %b : tensor<4x5xf32>, tensor<5x3xf32> -> tensor<4x3xf32>
  %flat_ = ds.reshape %y : tensor<4x3xf32> -> tensor<12xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<12xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<12xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<12xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Batched product, both as they are.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x4x5xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x5x3xf32>
func.func @forward(%a: tensor<2x4x5xf32> {ds.state = @a}, %b: tensor<2x5x3xf32> {ds.state = @b}) -> tensor<f32> {
  %y = ds.matmul %a, %b : tensor<2x4x5xf32>, tensor<2x5x3xf32> -> tensor<2x4x3xf32>
  %flat_ = ds.reshape %y : tensor<2x4x3xf32> -> tensor<24xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<24xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<24xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<24xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Product of matrices transpose_rhs.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x5xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x5xf32>
func.func @forward(%a: tensor<4x5xf32> {ds.state = @a}, %b: tensor<3x5xf32> {ds.state = @b}) -> tensor<f32> {
  %y = ds.matmul %a, %b transpose_rhs : tensor<4x5xf32>, tensor<3x5xf32> -> tensor<4x3xf32>
  %flat_ = ds.reshape %y : tensor<4x3xf32> -> tensor<12xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<12xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<12xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<12xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Batched product transpose_rhs.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x4x5xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x3x5xf32>
func.func @forward(%a: tensor<2x4x5xf32> {ds.state = @a}, %b: tensor<2x3x5xf32> {ds.state = @b}) -> tensor<f32> {
  %y = ds.matmul %a, %b transpose_rhs : tensor<2x4x5xf32>, tensor<2x3x5xf32> -> tensor<2x4x3xf32>
  %flat_ = ds.reshape %y : tensor<2x4x3xf32> -> tensor<24xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<24xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<24xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<24xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Product of matrices transpose_lhs.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<5x4xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<5x3xf32>
func.func @forward(%a: tensor<5x4xf32> {ds.state = @a}, %b: tensor<5x3xf32> {ds.state = @b}) -> tensor<f32> {
  %y = ds.matmul %a, %b transpose_lhs : tensor<5x4xf32>, tensor<5x3xf32> -> tensor<4x3xf32>
  %flat_ = ds.reshape %y : tensor<4x3xf32> -> tensor<12xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<12xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<12xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<12xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Batched product transpose_lhs.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x5x4xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x5x3xf32>
func.func @forward(%a: tensor<2x5x4xf32> {ds.state = @a}, %b: tensor<2x5x3xf32> {ds.state = @b}) -> tensor<f32> {
  %y = ds.matmul %a, %b transpose_lhs : tensor<2x5x4xf32>, tensor<2x5x3xf32> -> tensor<2x4x3xf32>
  %flat_ = ds.reshape %y : tensor<2x4x3xf32> -> tensor<24xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<24xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<24xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<24xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Product of matrices transpose_lhs transpose_rhs.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<5x4xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x5xf32>
func.func @forward(%a: tensor<5x4xf32> {ds.state = @a}, %b: tensor<3x5xf32> {ds.state = @b}) -> tensor<f32> {
  %y = ds.matmul %a, %b transpose_lhs transpose_rhs : tensor<5x4xf32>, tensor<3x5xf32> -> tensor<4x3xf32>
  %flat_ = ds.reshape %y : tensor<4x3xf32> -> tensor<12xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<12xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<12xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<12xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Batched product transpose_lhs transpose_rhs.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x5x4xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x3x5xf32>
func.func @forward(%a: tensor<2x5x4xf32> {ds.state = @a}, %b: tensor<2x3x5xf32> {ds.state = @b}) -> tensor<f32> {
  %y = ds.matmul %a, %b transpose_lhs transpose_rhs : tensor<2x5x4xf32>, tensor<2x3x5xf32> -> tensor<2x4x3xf32>
  %flat_ = ds.reshape %y : tensor<2x4x3xf32> -> tensor<24xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<24xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<24xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<24xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Leading dimensions as rows, with bias, accumulator and ReLU.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x2x4x5xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x5xf32>
ds.state @c role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3xf32>
ds.state @d role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x2x4x3xf32>
func.func @forward(%a: tensor<2x2x4x5xf32> {ds.state = @a}, %b: tensor<3x5xf32> {ds.state = @b}, %c: tensor<3xf32> {ds.state = @c}, %d: tensor<2x2x4x3xf32> {ds.state = @d}) -> tensor<f32> {
  %y = ds.matmul %a, %b bias(%c) into(%d) transpose_rhs epilogue(relu) : tensor<2x2x4x5xf32>, tensor<3x5xf32>, tensor<3xf32> into tensor<2x2x4x3xf32> -> tensor<2x2x4x3xf32>
  %flat_ = ds.reshape %y : tensor<2x2x4x3xf32> -> tensor<48xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<48xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<48xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<48xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// GELU in a product, which is taken again of what the product gives.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x4x5xbf16>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x5xbf16>
ds.state @c role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3xbf16>
func.func @forward(%a: tensor<2x4x5xbf16> {ds.state = @a}, %b: tensor<3x5xbf16> {ds.state = @b}, %c: tensor<3xbf16> {ds.state = @c}) -> tensor<f32> {
  %y = ds.matmul %a, %b bias(%c) transpose_rhs epilogue(gelu) : tensor<2x4x5xbf16>, tensor<3x5xbf16>, tensor<3xbf16> -> tensor<2x4x3xbf16>
  %wide_ = ds.convert %y : tensor<2x4x3xbf16> -> tensor<2x4x3xf32>
  %flat_ = ds.reshape %wide_ : tensor<2x4x3xf32> -> tensor<24xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<24xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<24xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<24xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// GELU in a product, and what it is taken of: both are read, and then the latter alone.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x4x5xbf16>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x5xbf16>
ds.state @c role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3xbf16>
func.func @forward(%a: tensor<2x4x5xbf16> {ds.state = @a}, %b: tensor<3x5xbf16> {ds.state = @b}, %c: tensor<3xbf16> {ds.state = @c}) -> tensor<f32> {
  %g, %h = ds.matmul %a, %b bias(%c) transpose_rhs epilogue(gelu) : tensor<2x4x5xbf16>, tensor<3x5xbf16>, tensor<3xbf16> -> tensor<2x4x3xbf16>, tensor<2x4x3xbf16>
  %y = ds.add %g, %h : tensor<2x4x3xbf16>
  %wide_ = ds.convert %y : tensor<2x4x3xbf16> -> tensor<2x4x3xf32>
  %flat_ = ds.reshape %wide_ : tensor<2x4x3xf32> -> tensor<24xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<24xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<24xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<24xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x4x5xbf16>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x5xbf16>
ds.state @c role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3xbf16>
func.func @forward(%a: tensor<2x4x5xbf16> {ds.state = @a}, %b: tensor<3x5xbf16> {ds.state = @b}, %c: tensor<3xbf16> {ds.state = @c}) -> tensor<f32> {
  %g, %h = ds.matmul %a, %b bias(%c) transpose_rhs epilogue(gelu) : tensor<2x4x5xbf16>, tensor<3x5xbf16>, tensor<3xbf16> -> tensor<2x4x3xbf16>, tensor<2x4x3xbf16>
  %wide_ = ds.convert %h : tensor<2x4x3xbf16> -> tensor<2x4x3xf32>
  %flat_ = ds.reshape %wide_ : tensor<2x4x3xf32> -> tensor<24xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<24xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<24xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<24xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}
