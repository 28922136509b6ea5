// RUN: ds-opt %s --split-input-file --ds-differentiate --mlir-print-op-generic | %python %oracle/check_ir_gradients.py | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-differentiate --ds-decompose --canonicalize --cse --mlir-print-op-generic | %python %oracle/check_ir_gradients.py | FileCheck %s
// REQUIRES: torch

// Every rule for gradients but those of products (differentiate-products.mlir) and of what pictures need (differentiate-pictures.mlir) against torch.autograd, as differentiated and after decomposition and clean-up.
// CHECK: 36 gradients compared

// One operand, chained so that each factor counts.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
func.func @forward(%a: tensor<6xf32> {ds.state = @a}) -> tensor<f32> {
  %v0 = ds.neg %a : tensor<6xf32>
  %v1 = ds.abs %v0 : tensor<6xf32>
  %v2 = ds.tanh %v1 : tensor<6xf32>
  %v3 = ds.sin %v2 : tensor<6xf32>
  %v4 = ds.exp %v3 : tensor<6xf32>
  %v_exp1 = ds.exp %v4 : tensor<6xf32>
  %v5 = ds.log %v_exp1 : tensor<6xf32>
  %v6 = ds.sigmoid %v5 : tensor<6xf32>
  %v7 = ds.cos %v6 : tensor<6xf32>
  %v8 = ds.erf %v7 : tensor<6xf32>
  %flat_ = ds.reshape %v8 : tensor<6xf32> -> tensor<6xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<6xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<6xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<6xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// GELU in both forms, on both sides of 0.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
func.func @forward(%a: tensor<6xf32> {ds.state = @a}) -> tensor<f32> {
  %e = ds.gelu %a : tensor<6xf32>
  %n = ds.neg %a : tensor<6xf32>
  %t = ds.gelu tanh %n : tensor<6xf32>
  %y = ds.sub %e, %t : tensor<6xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<6xf32>
  %weighted_ = ds.mul %y, %weights_ : tensor<6xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<6xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Roots, of what is positive.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
func.func @forward(%a: tensor<6xf32> {ds.state = @a}) -> tensor<f32> {
  %e = ds.exp %a : tensor<6xf32>
  %s = ds.sqrt %e : tensor<6xf32>
  %r = ds.rsqrt %s : tensor<6xf32>
  %y = ds.mul %r, %s : tensor<6xf32>
  %z = ds.add %y, %r : tensor<6xf32>
  %flat_ = ds.reshape %z : tensor<6xf32> -> tensor<6xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<6xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<6xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<6xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Two operands; each used twice.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
func.func @forward(%a: tensor<6xf32> {ds.state = @a}, %b: tensor<6xf32> {ds.state = @b}) -> tensor<f32> {
  %s = ds.add %a, %b : tensor<6xf32>
  %d = ds.sub %a, %b : tensor<6xf32>
  %m = ds.mul %s, %d : tensor<6xf32>
  %e = ds.exp %b : tensor<6xf32>
  %q = ds.div %m, %e : tensor<6xf32>
  %x = ds.max %q, %a : tensor<6xf32>
  %n = ds.min %x, %b : tensor<6xf32>
  %y = ds.add %n, %q : tensor<6xf32>
  %flat_ = ds.reshape %y : tensor<6xf32> -> tensor<6xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<6xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<6xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<6xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Where both are equal each receives half.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
func.func @forward(%a: tensor<6xf32> {ds.state = @a}) -> tensor<f32> {
  %x = ds.max %a, %a : tensor<6xf32>
  %n = ds.min %x, %a : tensor<6xf32>
  %flat_ = ds.reshape %n : tensor<6xf32> -> tensor<6xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<6xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<6xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<6xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Powers, of a variable and of a constant exponent, also 0 (the second term has no gradient).
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
func.func @forward(%a: tensor<6xf32> {ds.state = @a}, %b: tensor<6xf32> {ds.state = @b}) -> tensor<f32> {
  %e = ds.exp %a : tensor<6xf32>
  %p = ds.pow %e, %b : tensor<6xf32>
  %three = ds.constant dense<3.0> : tensor<6xf32>
  %c = ds.pow %a, %three : tensor<6xf32>
  %zero = ds.constant dense<0.0> : tensor<6xf32>
  %one = ds.pow %a, %zero : tensor<6xf32>
  %s = ds.add %p, %c : tensor<6xf32>
  %y = ds.add %s, %one : tensor<6xf32>
  %flat_ = ds.reshape %y : tensor<6xf32> -> tensor<6xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<6xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<6xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<6xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// A power of 0: what the base contributes is 0, and the logarithm of 0 never shows.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
func.func @forward(%a: tensor<6xf32> {ds.state = @a}, %b: tensor<6xf32> {ds.state = @b}) -> tensor<f32> {
  %zero = ds.constant dense<0.0> : tensor<6xf32>
  %base = ds.max %a, %zero : tensor<6xf32>
  %e = ds.exp %b : tensor<6xf32>
  %p = ds.pow %base, %e : tensor<6xf32>
  %flat_ = ds.reshape %p : tensor<6xf32> -> tensor<6xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<6xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<6xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<6xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Selection and conversion to doubles and back.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
func.func @forward(%a: tensor<6xf32> {ds.state = @a}, %b: tensor<6xf32> {ds.state = @b}) -> tensor<f32> {
  %c = ds.compare lt %a, %b : tensor<6xf32>
  %s = ds.select %c, %a, %b : tensor<6xf32>
  %w = ds.convert %s : tensor<6xf32> -> tensor<6xf64>
  %q = ds.mul %w, %w : tensor<6xf64>
  %n = ds.convert %q : tensor<6xf64> -> tensor<6xf32>
  %f = ds.floor %b : tensor<6xf32>
  %y = ds.mul %n, %f : tensor<6xf32>
  %g = ds.sub %y, %b : tensor<6xf32>
  %h = ds.mul %g, %a : tensor<6xf32>
  %flat_ = ds.reshape %h : tensor<6xf32> -> tensor<6xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<6xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<6xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<6xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Broadcast along a new, a unit and a kept dimension; transposition.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x1xf32>
func.func @forward(%a: tensor<3x1xf32> {ds.state = @a}) -> tensor<f32> {
  %b = ds.broadcast %a dims [0, 2] : tensor<3x1xf32> -> tensor<3x2x4xf32>
  %t = ds.transpose %b perm [2, 0, 1] : tensor<3x2x4xf32> -> tensor<4x3x2xf32>
  %i = ds.exp %t : tensor<4x3x2xf32>
  %flat_ = ds.reshape %i : tensor<4x3x2xf32> -> tensor<24xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<24xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<24xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<24xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Windows, strided ones too.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x9xf32>
func.func @forward(%a: tensor<4x9xf32> {ds.state = @a}) -> tensor<f32> {
  %s = ds.slice %a offsets [1, 1] strides [2, 3] : tensor<4x9xf32> -> tensor<2x3xf32>
  %e = ds.exp %s : tensor<2x3xf32>
  %p = ds.pad %e offsets [0, 1] strides [3, 2] : tensor<2x3xf32> -> tensor<5x7xf32>
  %q = ds.mul %p, %p : tensor<5x7xf32>
  %flat_ = ds.reshape %q : tensor<5x7xf32> -> tensor<35xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<35xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<35xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<35xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Pieces joined and cut; the middle piece is not used.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x3xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x5xf32>
func.func @forward(%a: tensor<2x3xf32> {ds.state = @a}, %b: tensor<2x5xf32> {ds.state = @b}) -> tensor<f32> {
  %c = ds.concat %a, %b dim 1 : tensor<2x3xf32>, tensor<2x5xf32> -> tensor<2x8xf32>
  %s:3 = ds.split %c dim 1 : tensor<2x8xf32> -> tensor<2x2xf32>, tensor<2x4xf32>, tensor<2x2xf32>
  %y = ds.mul %s#0, %s#2 : tensor<2x2xf32>
  %flat_ = ds.reshape %y : tensor<2x2xf32> -> tensor<4xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<4xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<4xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<4xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Reductions; maxima are shared by equals (the second reduction sees pairs of them).
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x4x2xf32>
func.func @forward(%a: tensor<3x4x2xf32> {ds.state = @a}) -> tensor<f32> {
  %s = ds.reduce sum %a dims [0, 2] : tensor<3x4x2xf32> -> tensor<4xf32>
  %m = ds.reduce max %a dims [1] : tensor<3x4x2xf32> -> tensor<3x2xf32>
  %b = ds.broadcast %m dims [0, 2] : tensor<3x2xf32> -> tensor<3x4x2xf32>
  %n = ds.reduce max %b dims [1, 2] : tensor<3x4x2xf32> -> tensor<3xf32>
  %i = ds.reduce min %a dims [0, 1, 2] : tensor<3x4x2xf32> -> tensor<f32>
  %ib = ds.broadcast %i dims [] : tensor<f32> -> tensor<4xf32>
  %nb = ds.broadcast %n dims [1] : tensor<3xf32> -> tensor<4x3xf32>
  %ns = ds.reduce sum %nb dims [1] : tensor<4x3xf32> -> tensor<4xf32>
  %x = ds.mul %s, %ib : tensor<4xf32>
  %y = ds.mul %x, %ns : tensor<4xf32>
  %flat_ = ds.reshape %y : tensor<4xf32> -> tensor<4xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<4xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<4xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<4xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Softmax along the middle dimension.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x4x3xf32>
func.func @forward(%a: tensor<2x4x3xf32> {ds.state = @a}) -> tensor<f32> {
  %y = ds.softmax %a dim 1 : tensor<2x4x3xf32>
  %flat_ = ds.reshape %y : tensor<2x4x3xf32> -> tensor<24xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<24xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<24xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<24xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Its logarithm.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x4x3xf32>
func.func @forward(%a: tensor<2x4x3xf32> {ds.state = @a}) -> tensor<f32> {
  %y = ds.softmax log %a dim 2 : tensor<2x4x3xf32>
  %flat_ = ds.reshape %y : tensor<2x4x3xf32> -> tensor<24xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<24xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<24xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<24xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Layer norm over two dimensions, its statistics used as well.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x2x4xf32>
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x4xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x4xf32>
func.func @forward(%a: tensor<3x2x4xf32> {ds.state = @a}, %w: tensor<2x4xf32> {ds.state = @w}, %b: tensor<2x4xf32> {ds.state = @b}) -> tensor<f32> {
  %y, %mean, %rstd = ds.layer_norm %a weight(%w) bias(%b) over 2 epsilon 1.0e-5 : tensor<3x2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<3x2x4xf32>, tensor<3xf32>, tensor<3xf32>
  %p = ds.mul %mean, %rstd : tensor<3xf32>
  %pb = ds.broadcast %p dims [0] : tensor<3xf32> -> tensor<3x2x4xf32>
  %z = ds.add %y, %pb : tensor<3x2x4xf32>
  %flat_ = ds.reshape %z : tensor<3x2x4xf32> -> tensor<24xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<24xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<24xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<24xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Only a statistic of a layer norm is used.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x2x4xf32>
func.func @forward(%a: tensor<3x2x4xf32> {ds.state = @a}) -> tensor<f32> {
  %y, %mean, %rstd = ds.layer_norm %a over 1 epsilon 1.0e-5 : tensor<3x2x4xf32> -> tensor<3x2x4xf32>, tensor<3x2xf32>, tensor<3x2xf32>
  %flat_ = ds.reshape %rstd : tensor<3x2xf32> -> tensor<6xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<6xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<6xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<6xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// RMS norm, its statistic used as well.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x2x4xf32>
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @forward(%a: tensor<3x2x4xf32> {ds.state = @a}, %w: tensor<4xf32> {ds.state = @w}) -> tensor<f32> {
  %y, %rstd = ds.rms_norm %a weight(%w) over 1 epsilon 1.0e-6 : tensor<3x2x4xf32>, tensor<4xf32> -> tensor<3x2x4xf32>, tensor<3x2xf32>
  %pb = ds.broadcast %rstd dims [0, 1] : tensor<3x2xf32> -> tensor<3x2x4xf32>
  %z = ds.add %y, %pb : tensor<3x2x4xf32>
  %flat_ = ds.reshape %z : tensor<3x2x4xf32> -> tensor<24xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<24xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<24xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<24xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// Grouped-query attention, causal over a longer past, with a mask.
ds.state @q role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x3x4x5xf32>
ds.state @k role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x6x2x5xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x6x2x5xf32>
func.func @forward(%m: tensor<1x4x1x6xf32> {ds.input = "m"}, %q: tensor<2x3x4x5xf32> {ds.state = @q}, %k: tensor<2x6x2x5xf32> {ds.state = @k}, %v: tensor<2x6x2x5xf32> {ds.state = @v}) -> tensor<f32> {
  %y, %lse = ds.attention %q, %k, %v mask(%m) causal scale 0.3 : (tensor<2x3x4x5xf32>, tensor<2x6x2x5xf32>, tensor<2x6x2x5xf32>, tensor<1x4x1x6xf32>) -> (tensor<2x3x4x5xf32>, tensor<2x4x3xf32>)
  %flat_ = ds.reshape %y : tensor<2x3x4x5xf32> -> tensor<120xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<120xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<120xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<120xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// A convolution in two groups whose last column no window reaches.
ds.state @x role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x4x6x7xf32>
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6x2x3x2xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
func.func @forward(%x: tensor<2x4x6x7xf32> {ds.state = @x}, %w: tensor<6x2x3x2xf32> {ds.state = @w}, %b: tensor<6xf32> {ds.state = @b}) -> tensor<f32> {
  %y = ds.conv %x, %w bias(%b) stride [2, 3] padding [1, 0] dilation [1, 2] groups 2 : tensor<2x4x6x7xf32>, tensor<6x2x3x2xf32>, tensor<6xf32> -> tensor<2x6x3x2xf32>
  %flat_ = ds.reshape %y : tensor<2x6x3x2xf32> -> tensor<72xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<72xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<72xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<72xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// A convolution over one dimension, of which the input is not trained.
ds.state @x role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x3x9xf32>
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x3x3xf32>
ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @forward(%x: tensor<2x3x9xf32> {ds.state = @x}, %w: tensor<4x3x3xf32> {ds.state = @w}, %b: tensor<4xf32> {ds.state = @b}) -> tensor<f32> {
  %y = ds.conv %x, %w bias(%b) stride [1] padding [2] dilation [2] groups 1 : tensor<2x3x9xf32>, tensor<4x3x3xf32>, tensor<4xf32> -> tensor<2x4x9xf32>
  %flat_ = ds.reshape %y : tensor<2x4x9xf32> -> tensor<72xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<72xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<72xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<72xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}

// -----

// A table that is also the output matrix; some targets are ignored.
ds.state @t role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<5x4xf32>
func.func @forward(%i: tensor<2x3xi64> {ds.input = "i"}, %j: tensor<6xi64> {ds.input = "j"}, %t: tensor<5x4xf32> {ds.state = @t}) -> tensor<f32> {
  %e = ds.embedding %t, %i : tensor<5x4xf32>, tensor<2x3xi64> -> tensor<2x3x4xf32>
  %r = ds.reshape %e : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %l = ds.matmul %r, %t transpose_rhs : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %loss, %lse, %count = ds.cross_entropy %l, %j ignore_index 2 : (tensor<6x5xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<f32>)
  return %loss : tensor<f32>
}

// -----

// Looking up row 2 gives it no gradient, though the product gives it one. Ids of both widths.
ds.state @t role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<5x4xf32>
func.func @forward(%i: tensor<2x3xi64> {ds.input = "i"}, %k: tensor<6xi32> {ds.input = "k"}, %j: tensor<6xi64> {ds.input = "j"}, %t: tensor<5x4xf32> {ds.state = @t}) -> tensor<f32> {
  %e = ds.embedding %t, %i padding_index 2 : tensor<5x4xf32>, tensor<2x3xi64> -> tensor<2x3x4xf32>
  %r = ds.reshape %e : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %f = ds.embedding %t, %k padding_index 0 : tensor<5x4xf32>, tensor<6xi32> -> tensor<6x4xf32>
  %s = ds.add %r, %f : tensor<6x4xf32>
  %l = ds.matmul %s, %t transpose_rhs : tensor<6x4xf32>, tensor<5x4xf32> -> tensor<6x5xf32>
  %loss, %lse, %count = ds.cross_entropy %l, %j ignore_index 2 : (tensor<6x5xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<f32>)
  return %loss : tensor<f32>
}

// -----

// Dropout draws the same numbers in both directions.
ds.state @a role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x2x4xf32>
func.func @forward(%rng: tensor<2xi64> {ds.input = "rng"}, %a: tensor<3x2x4xf32> {ds.state = @a}) -> tensor<f32> {
  %y = ds.dropout %a, %rng probability 0.4 id 3 : tensor<3x2x4xf32>, tensor<2xi64>
  %z = ds.mul %y, %y : tensor<3x2x4xf32>
  %flat_ = ds.reshape %z : tensor<3x2x4xf32> -> tensor<24xf32>
  %weights_ = ds.iota dim 0 start 1 step 1 : tensor<24xf32>
  %weighted_ = ds.mul %flat_, %weights_ : tensor<24xf32>
  %loss_ = ds.reduce sum %weighted_ dims [0] : tensor<24xf32> -> tensor<f32>
  return %loss_ : tensor<f32>
}
