// RUN: ds-opt %s --split-input-file --ds-build-step | FileCheck %s

// Each parameter is updated by one op: what it reads of its own are states, what all elements share are scalars. The
// clipping coefficient and the rate of a schedule come from outside, a hyperparameter is a constant of the body.

module attributes {ds.training = #ds.training<gradient_clipping = 0.5, optimizer = {type = sgd, momentum = 0.9},
    scheduler = {type = WarmupLR, warmup_num_steps = 10}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xbf16>
  func.func @forward(%x: tensor<8xbf16> {ds.input = "x"}, %l: tensor<f32> {ds.input = "l"}, %w: tensor<8xbf16> {ds.state = @w})
      -> (tensor<f32>, tensor<8xbf16> {ds.state = #ds.gradient<@w>}) {
    return %l, %x : tensor<f32>, tensor<8xbf16>
  }
}
// CHECK-LABEL: func.func @last
// CHECK-SAME: (%[[X:.*]]: tensor<8xbf16> {ds.input = "x"}, %{{.*}}, %[[W:.*]]: tensor<8xbf16> {ds.state = @w}, %{{.*}}: tensor<i64> {ds.state = @step}, %[[M:.*]]: tensor<8xf32> {ds.state = @w.momentum_buffer})
// CHECK: ds.sum_of_squares %[[X]]{{.*}} : tensor<8xbf16> -> tensor<f64>
// CHECK: %[[COEFFICIENT:.*]] = ds.convert %{{.*}} : tensor<f64> -> tensor<f32>
// CHECK: %[[NEW:.*]]:2 = ds.update @w states(%[[W]], %[[M]]) gradient(%[[X]]) scalars(%{{.*}}, %{{.*}}){{.*}} : (tensor<8xbf16>, tensor<8xf32>, tensor<8xbf16>, tensor<f32>, tensor<f64>) -> (tensor<8xf32>, tensor<8xbf16>) {
// CHECK: ds.constant dense<{{0.89999.*|9.0000.*}}>{{.*}} : tensor<8xf32>
// CHECK: ds.yield
// CHECK: return %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[NEW]]#0, %[[NEW]]#1

// -----

// What clips all gradients waits for all of them: their squares are one sum.

module attributes {ds.training = #ds.training<gradient_clipping = 0.5, optimizer = {type = sgd}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  func.func @forward(%x: tensor<8xf32> {ds.input = "x"}, %y: tensor<4xf32> {ds.input = "y"}, %l: tensor<f32> {ds.input = "l"},
      %w: tensor<8xf32> {ds.state = @w}, %v: tensor<4xf32> {ds.state = @v})
      -> (tensor<f32>, tensor<8xf32> {ds.state = #ds.gradient<@w>}, tensor<4xf32> {ds.state = #ds.gradient<@v>}) {
    %g = ds.neg %x : tensor<8xf32>
    %h = ds.neg %y : tensor<4xf32>
    return %l, %g, %h : tensor<f32>, tensor<8xf32>, tensor<4xf32>
  }
}
// CHECK-LABEL: func.func @last
// CHECK: %[[G:.*]] = ds.neg %{{.*}} : tensor<8xf32>
// CHECK: %[[H:.*]] = ds.neg %{{.*}} : tensor<4xf32>
// CHECK-NOT: ds.update
// CHECK: ds.sum_of_squares %[[G]], %[[H]]{{.*}} : tensor<8xf32>, tensor<4xf32> -> tensor<f64>
// CHECK-NOT: ds.sum_of_squares
// CHECK-COUNT-2: ds.update

// -----

// An update that does not wait comes as soon as its gradient is there, and so do its squares: the gradient may die.

module attributes {ds.training = #ds.training<optimizer = {type = sgd}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  func.func @forward(%x: tensor<8xf32> {ds.input = "x"}, %y: tensor<4xf32> {ds.input = "y"}, %l: tensor<f32> {ds.input = "l"},
      %w: tensor<8xf32> {ds.state = @w}, %v: tensor<4xf32> {ds.state = @v})
      -> (tensor<f32>, tensor<8xf32> {ds.state = #ds.gradient<@w>}, tensor<4xf32> {ds.state = #ds.gradient<@v>}) {
    %g = ds.neg %x : tensor<8xf32>
    %h = ds.neg %y : tensor<4xf32>
    return %l, %g, %h : tensor<f32>, tensor<8xf32>, tensor<4xf32>
  }
}
// CHECK-LABEL: func.func @last
// CHECK: %[[G:.*]] = ds.neg %{{.*}} : tensor<8xf32>
// CHECK-NEXT: %[[ONE:.*]] = ds.sum_of_squares %[[G]]{{.*}} : tensor<8xf32> -> tensor<f64>
// CHECK: ds.update @w
// CHECK: %[[H:.*]] = ds.neg %{{.*}} : tensor<4xf32>
// CHECK-NEXT: %[[OTHER:.*]] = ds.sum_of_squares %[[H]]{{.*}} : tensor<4xf32> -> tensor<f64>
// CHECK: ds.update @v
// CHECK: ds.add %[[ONE]], %[[OTHER]]{{.*}} : tensor<f64>

// -----

// Lamb's step looks at the parameter as a whole.

module attributes {ds.training = #ds.training<optimizer = {type = lamb}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @forward(%x: tensor<8xf32> {ds.input = "x"}, %l: tensor<f32> {ds.input = "l"}, %w: tensor<8xf32> {ds.state = @w})
      -> (tensor<f32>, tensor<8xf32> {ds.state = #ds.gradient<@w>}) {
    %g = ds.neg %x : tensor<8xf32>
    return %l, %g : tensor<f32>, tensor<8xf32>
  }
}
// CHECK-LABEL: func.func @last
// CHECK-NOT: ds.update
// CHECK-COUNT-3: ds.sum_of_squares
