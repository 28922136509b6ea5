// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-verify-model

// A model that is fine says nothing.

ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
func.func @forward(%x: tensor<4xf32> {ds.input = "x"}, %w: tensor<4xf32> {ds.state = @w}) -> tensor<f32> {
  %p = ds.mul %x, %w : tensor<4xf32>
  %l = ds.reduce sum %p dims [0] : tensor<4xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// expected-error@+1 {{expects a function @forward in phase model, but the module has none}}
module {
}

// -----

// expected-error@+1 {{expects a rank-0 float loss as first result, but got 'tensor<4xf32>'}}
func.func @forward(%x: tensor<4xf32> {ds.input = "x"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{expects argument 0 to be either an input or a state, but got neither}}
func.func @forward(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// expected-error@+1 {{expects argument 0 to hold a declared state, but got @w}}
func.func @forward(%w: tensor<f32> {ds.state = @w}) -> tensor<f32> {
  return %w : tensor<f32>
}

// -----

// expected-note@+1 {{state @w is declared here}}
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
// expected-error@+1 {{expects argument 0 of type 'tensor<4xf32>', but got 'tensor<f32>'}}
func.func @forward(%w: tensor<f32> {ds.state = @w}) -> tensor<f32> {
  return %w : tensor<f32>
}

// -----

ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
// expected-error@+1 {{expects one argument for state @w, but got arguments 0 and 1}}
func.func @forward(%v: tensor<f32> {ds.state = @w}, %w: tensor<f32> {ds.state = @w}) -> tensor<f32> {
  return %w : tensor<f32>
}

// -----

func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> {
  // expected-error@+1 {{'ds.alloc' op belongs to phase scheduled to planned, but what stands before it to phase model to resident}}
  %b = ds.alloc activations : !ds.buffer<tensor<4xf32>, [1], device>
  return %x : tensor<f32>
}

// -----

func.func @forward(%i: tensor<2xi64> {ds.input = "i"}, %g: tensor<2x4xf32> {ds.input = "g"}, %x: tensor<f32> {ds.input = "x"}) -> tensor<f32> {
  // expected-error@+1 {{belongs to phase step, but stands in a model}}
  %d = ds.embedding_grad %i, %g : tensor<2xi64>, tensor<2x4xf32> -> tensor<8x4xf32>
  return %x : tensor<f32>
}

// -----

func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %t: tensor<4xi64> {ds.input = "t"}) -> tensor<f32> {
  // expected-error@+1 {{expects row statistics that only its gradient reads, but result 1 is used}}
  %loss, %lse, %count = ds.cross_entropy %x, %t ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %sum = ds.reduce sum %lse dims [0] : tensor<4xf32> -> tensor<f32>
  %total = ds.add %loss, %sum : tensor<f32>
  return %total : tensor<f32>
}

// -----

// expected-note@+1 {{the parameter is declared trainable here}}
ds.state @bias role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<1x2x4x4xf32>
func.func @forward(%q: tensor<1x4x2x8xf32> {ds.input = "q"}, %bias: tensor<1x2x4x4xf32> {ds.state = @bias}) -> tensor<f32> {
  %n = ds.neg %bias : tensor<1x2x4x4xf32>
  // expected-error@+1 {{expects a mask that is not trained, but got one that depends on @bias}}
  %o, %lse = ds.attention %q, %q, %q mask(%n) scale 1.0 : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x2x4xf32>)
  %l = ds.reduce sum %o dims [0, 1, 2, 3] : tensor<1x4x2x8xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// expected-note@+1 {{the parameter is declared trainable here}}
ds.state @s role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xf32>
func.func @forward(%q: tensor<1x4x2x8xf32> {ds.input = "q"}, %s: tensor<2xf32> {ds.state = @s}) -> tensor<f32> {
  %n = ds.neg %s : tensor<2xf32>
  // expected-error@+1 {{expects slopes that are not trained, but got some that depend on @s}}
  %o, %lse = ds.attention %q, %q, %q slopes(%n) scale 1.0 : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<2xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x2x4xf32>)
  %l = ds.reduce sum %o dims [0, 1, 2, 3] : tensor<1x4x2x8xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

func.func @forward(%y: tensor<4x8xbf16> {ds.input = "y"}, %w: tensor<8x6xbf16> {ds.input = "w"}, %h: tensor<4x6xbf16> {ds.input = "h"}, %x: tensor<f32> {ds.input = "x"}) -> tensor<f32> {
  // expected-error@+1 {{'ds.matmul' op with epilogue(gelu_gradient) belongs to phase step, but stands in a model}}
  %d = ds.matmul %y, %w input(%h) epilogue(gelu_gradient) : tensor<4x8xbf16>, tensor<8x6xbf16> input tensor<4x6xbf16> -> tensor<4x6xbf16>
  return %x : tensor<f32>
}

// -----

// A transposed convolution is one of a model's.
func.func @forward(%w: tensor<4x3x3xf32> {ds.input = "w"}, %g: tensor<2x4x6xf32> {ds.input = "g"}) -> tensor<f32> {
  %d = ds.conv_grad_input %w, %g stride [1] padding [0] dilation [1] groups 1 : tensor<4x3x3xf32>, tensor<2x4x6xf32> -> tensor<2x3x8xf32>
  %l = ds.reduce sum %d dims [0, 1, 2] : tensor<2x3x8xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

func.func @forward(%x: tensor<2x3x8xf32> {ds.input = "x"}, %g: tensor<2x4x6xf32> {ds.input = "g"}) -> tensor<f32> {
  // expected-error@+1 {{'ds.conv_grad_weight' op belongs to phase step, but stands in a model}}
  %d = ds.conv_grad_weight %x, %g stride [1] padding [0] dilation [1] groups 1 : tensor<2x3x8xf32>, tensor<2x4x6xf32> -> tensor<4x3x3xf32>
  %l = ds.reduce sum %d dims [0, 1, 2] : tensor<4x3x3xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %s: tensor<8xf32> {ds.input = "s"}) -> tensor<f32> {
  // expected-error@+1 {{'ds.batch_norm_grad' op belongs to phase step, but stands in a model}}
  %d:3 = ds.batch_norm_grad %x, %s, %s, %x : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  %l = ds.reduce sum %d#1 dims [0] : tensor<8xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// What is kept may be returned and kept further, and read by nothing else.
ds.state @mean role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
ds.state @variance role(buffer) init(#ds.init<constant, 1.0, 0.0>) home(device) : tensor<8xf32>
func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %m: tensor<8xf32> {ds.state = @mean}, %v: tensor<8xf32> {ds.state = @variance}) -> (tensor<f32>, tensor<8xf32> {ds.state = @mean}, tensor<8xf32> {ds.state = @variance}) {
  %y:5 = ds.batch_norm %x running(%m, %v) momentum 0.1 epsilon 1.0e-5 : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  %z:5 = ds.batch_norm %y#0 running(%y#3, %y#4) momentum 0.1 epsilon 1.0e-5 : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  %l = ds.reduce sum %z#0 dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %l, %z#3, %z#4 : tensor<f32>, tensor<8xf32>, tensor<8xf32>
}

// -----

func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}) -> tensor<f32> {
  // expected-error@+1 {{'ds.batch_norm' op expects statistics that only its gradient and the next micro-batch read, but result 1 is used}}
  %y:3 = ds.batch_norm %x momentum 0.1 epsilon 1.0e-5 : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  %l = ds.reduce sum %y#1 dims [0] : tensor<8xf32> -> tensor<f32>
  return %l : tensor<f32>
}
