// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-build-step | FileCheck %s

// The entry looks up one row of each of two samples of three tokens, and makes the last product of these two alone. The pieces
// of the loss, what picks rows and the conversion are looked through; the scale and the cap are done again.

module attributes {ds.training = #ds.training<logits = true, optimizer = {type = sgd}>} {
  ds.state @table role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<5x8xf32>
  ds.state @head role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<7x8xf32>
  func.func @forward(%ids: tensor<2x3xi64> {ds.input = "ids"}, %targets: tensor<4xi64> {ds.input = "targets"}, %g: tensor<7x8xf32> {ds.input = "g"},
                     %table: tensor<5x8xf32> {ds.state = @table}, %head: tensor<7x8xf32> {ds.state = @head})
      -> (tensor<f32>, tensor<7x8xf32> {ds.state = #ds.gradient<@head>}) {
    %x = ds.embedding %table, %ids : tensor<5x8xf32>, tensor<2x3xi64> -> tensor<2x3x8xf32>
    %hidden = ds.tanh %x : tensor<2x3x8xf32>
    %shifted = ds.slice %hidden offsets [0, 0, 0] strides [1, 1, 1] : tensor<2x3x8xf32> -> tensor<2x2x8xf32>
    %rows = ds.reshape %shifted : tensor<2x2x8xf32> -> tensor<4x8xf32>
    %a, %b = ds.split %rows dim 0 : tensor<4x8xf32> -> tensor<2x8xf32>, tensor<2x8xf32>
    %ta, %tb = ds.split %targets dim 0 : tensor<4xi64> -> tensor<2xi64>, tensor<2xi64>
    %half = ds.constant dense<0.5> : tensor<2x7xf32>
    %la = ds.matmul %a, %head transpose_rhs : tensor<2x8xf32>, tensor<7x8xf32> -> tensor<2x7xf32>
    %sa = ds.mul %la, %half : tensor<2x7xf32>
    %lossa, %lsea, %counta = ds.cross_entropy %sa, %ta ignore_index -100 cap 3.0 : (tensor<2x7xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<2xf32>, tensor<f32>)
    %lb = ds.matmul %b, %head transpose_rhs : tensor<2x8xf32>, tensor<7x8xf32> -> tensor<2x7xf32>
    %sb = ds.mul %lb, %half : tensor<2x7xf32>
    %lossb, %lseb, %countb = ds.cross_entropy %sb, %tb ignore_index -100 cap 3.0 : (tensor<2x7xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<2xf32>, tensor<f32>)
    %loss = ds.add %lossa, %lossb : tensor<f32>
    return %loss, %g : tensor<f32>, tensor<7x8xf32>
  }
}
// CHECK-DAG: ds.state @logits_rows role{{ ?}}(scalar) {{.*}} : tensor<2xi64>
// CHECK-DAG: ds.state @logits_of_rows role{{ ?}}(scalar) {{.*}} : tensor<2x7xf32>
// CHECK-LABEL: func.func @logits(
// CHECK-SAME: %[[HEAD:[a-z0-9]+]]: tensor<7x8xf32> {ds.state = @head}
// CHECK-SAME: %[[ASKED:[a-z0-9]+]]: tensor<2xi64> {ds.state = @logits_rows}) -> (tensor<2x7xf32> {ds.state = @logits_of_rows})
// CHECK-SAME: #ds.segment<evaluation>
// CHECK: %[[HIDDEN:.*]] = ds.tanh
// CHECK: %[[ROWS:.*]] = ds.reshape %[[HIDDEN]] {{.*}}: tensor<2x3x8xf32> -> tensor<6x8xf32>
// CHECK: %[[PICKED:.*]] = ds.embedding %[[ROWS]], %[[ASKED]] {{.*}}-> tensor<2x8xf32>
// CHECK: %[[LOGITS:.*]] = ds.matmul %[[PICKED]], %[[HEAD]] transpose_rhs {{.*}}-> tensor<2x7xf32>
// CHECK: %[[SCALED:.*]] = ds.mul %[[LOGITS]]
// CHECK: %[[OVER:.*]] = ds.div %[[SCALED]]
// CHECK: %[[BENT:.*]] = ds.tanh %[[OVER]]
// CHECK: %[[CAPPED:.*]] = ds.mul %[[BENT]]
// CHECK-NOT: cross_entropy
// CHECK: return %[[CAPPED]]

// -----

// Attention that sees both ways.

module attributes {ds.training = #ds.training<logits = true, optimizer = {type = sgd}>} {
  ds.state @head role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<7x8xf32>
  // expected-note @+1 {{without --entry logits the model is trained and evaluated all the same}}
  func.func @forward(%q: tensor<2x3x1x8xf32> {ds.input = "q"}, %targets: tensor<6xi64> {ds.input = "targets"}, %g: tensor<7x8xf32> {ds.input = "g"},
                     %head: tensor<7x8xf32> {ds.state = @head}) -> (tensor<f32>, tensor<7x8xf32> {ds.state = #ds.gradient<@head>}) {
    // expected-error @+1 {{expects a causal model of tokens for the entry "logits", but its attention sees later tokens}}
    %o, %lse = ds.attention %q, %q, %q scale 1.0 : (tensor<2x3x1x8xf32>, tensor<2x3x1x8xf32>, tensor<2x3x1x8xf32>) -> (tensor<2x3x1x8xf32>, tensor<2x1x3xf32>)
    %rows = ds.reshape %o : tensor<2x3x1x8xf32> -> tensor<6x8xf32>
    %l = ds.matmul %rows, %head transpose_rhs : tensor<6x8xf32>, tensor<7x8xf32> -> tensor<6x7xf32>
    %loss, %lse2, %count = ds.cross_entropy %l, %targets ignore_index -100 : (tensor<6x7xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<f32>)
    return %loss, %g : tensor<f32>, tensor<7x8xf32>
  }
}

// -----

// A loss without logits.

module attributes {ds.training = #ds.training<logits = true, optimizer = {type = sgd}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  // expected-error @+2 {{expects a causal model of tokens for the entry "logits", but it has no cross-entropy}}
  // expected-note @+1 {{without --entry logits}}
  func.func @forward(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}) -> (tensor<f32>, tensor<8xf32> {ds.state = #ds.gradient<@w>}) {
    %p = ds.mul %x, %w : tensor<8xf32>
    %loss = ds.reduce sum %p dims [0] : tensor<8xf32> -> tensor<f32>
    return %loss, %x : tensor<f32>, tensor<8xf32>
  }
}

// -----

// Logits of classes of whole samples: no input has a token for each row.

module attributes {ds.training = #ds.training<logits = true, optimizer = {type = sgd}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<7x8xf32>
  // expected-note @+1 {{without --entry logits}}
  func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %t: tensor<4xi64> {ds.input = "t"}, %w: tensor<7x8xf32> {ds.state = @w}) -> (tensor<f32>, tensor<7x8xf32> {ds.state = #ds.gradient<@w>}) {
    // expected-error @+1 {{but no input of the forward has a token for each of the 4 rows of its logits}}
    %l = ds.matmul %x, %w transpose_rhs : tensor<4x8xf32>, tensor<7x8xf32> -> tensor<4x7xf32>
    %loss, %lse, %count = ds.cross_entropy %l, %t ignore_index -100 : (tensor<4x7xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
    return %loss, %w : tensor<f32>, tensor<7x8xf32>
  }
}

// -----

// The model has a state of the entry's name.

module attributes {ds.training = #ds.training<logits = true, optimizer = {type = sgd}>} {
  // expected-error @+1 {{expects a name that the step does not use itself, but got "logits_rows"}}
  ds.state @logits_rows role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @forward(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @logits_rows}) -> (tensor<f32>, tensor<8xf32> {ds.state = #ds.gradient<@logits_rows>}) {
    %p = ds.mul %x, %w : tensor<8xf32>
    %loss = ds.reduce sum %p dims [0] : tensor<8xf32> -> tensor<f32>
    return %loss, %x : tensor<f32>, tensor<8xf32>
  }
}
