// RUN: ds-opt %s --split-input-file --ds-build-step | FileCheck %s

// Where updates may go early the step says what their scalars are if nothing is clipped: the factor 1, unless the true one has other
// bits.

// CHECK-LABEL: module @clipped
module @clipped attributes {ds.training = #ds.training<gradient_clipping = 0.5, optimizer = {type = sgd}, offload = {optimizer = 1.0, speculate = true}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @forward(%x: tensor<8xf32> {ds.input = "x"}, %l: tensor<f32> {ds.input = "l"}, %w: tensor<8xf32> {ds.state = @w})
      -> (tensor<f32>, tensor<8xf32> {ds.state = #ds.gradient<@w>}) {
    return %l, %x : tensor<f32>, tensor<8xf32>
  }
}
// CHECK: func.func @last
// CHECK: %[[ONE:.*]] = ds.constant dense<1.0{{.*}} : tensor<f32>
// CHECK: ds.min
// CHECK: %[[FACTOR:.*]] = ds.convert %{{.*}} : tensor<f64> -> tensor<f32>
// CHECK: %[[WRONG:.*]] = ds.compare ne %[[FACTOR]], %[[ONE]]
// CHECK: %[[PRESUMED:.*]] = ds.presume %[[FACTOR]] as %[[ONE]] unless %[[WRONG]]
// CHECK: ds.update @w {{.*}} scalars(%[[PRESUMED]])

// -----

// With a loss scale the factor is its inverse, of which it is known before the step; the guess is wrong as well where the step is skipped.
// What counts steps reads no guess.

// CHECK-LABEL: module @scaled
module @scaled attributes {ds.training = #ds.training<gradient_clipping = 0.5, optimizer = {type = sgd}, precision = {compute = f16, gradient = f16},
    loss_scale = {skip = true, scale = true, dynamic = true}, offload = {optimizer = 1.0, speculate = true}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @loss_scale role(scalar) init(#ds.init<constant, 256.0, 0.0>) home(device) : tensor<f32>
  func.func @forward(%x: tensor<8xf32> {ds.input = "x"}, %l: tensor<f32> {ds.input = "l"}, %w: tensor<8xf32> {ds.state = @w},
      %s: tensor<f32> {ds.state = @loss_scale}) -> (tensor<f32>, tensor<8xf32> {ds.state = #ds.gradient<@w>}) {
    return %l, %x : tensor<f32>, tensor<8xf32>
  }
}
// CHECK: func.func @last
// CHECK-SAME: %[[SCALE:[a-z0-9]*]]: tensor<f32> {ds.state = @loss_scale}
// CHECK: %[[GOOD:.*]] = ds.compare lt %{{.*}} : tensor<f64>
// CHECK: ds.select %[[GOOD]], %{{.*}} : tensor<i64>
// CHECK: %[[WIDE:.*]] = ds.convert %[[SCALE]]{{.*}} : tensor<f32> -> tensor<f64>
// CHECK: %[[INVERSE:.*]] = ds.div %{{.*}}, %[[WIDE]]
// CHECK: %[[GUESS:.*]] = ds.convert %[[INVERSE]]
// CHECK: %[[OTHER:.*]] = ds.compare ne %{{.*}}, %[[GUESS]]
// CHECK: %[[WRONG:.*]] = ds.select %[[GOOD]], %[[OTHER]], %{{.*}}
// CHECK-DAG: %[[FACTOR:.*]] = ds.presume %{{.*}} as %[[GUESS]] unless %[[WRONG]] {{.*}} : tensor<f32>,
// CHECK-DAG: %[[MADE:.*]] = ds.presume %[[GOOD]] as %{{.*}} unless %[[WRONG]] {{.*}} : tensor<i1>,
// CHECK: ds.update @w {{.*}} scalars({{.*}}%[[FACTOR]]

// -----

// Without either all is known from the start: there is nothing to presume.

// CHECK-LABEL: module @known
module @known attributes {ds.training = #ds.training<optimizer = {type = sgd}, offload = {optimizer = 1.0, speculate = true}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @forward(%x: tensor<8xf32> {ds.input = "x"}, %l: tensor<f32> {ds.input = "l"}, %w: tensor<8xf32> {ds.state = @w})
      -> (tensor<f32>, tensor<8xf32> {ds.state = #ds.gradient<@w>}) {
    return %l, %x : tensor<f32>, tensor<8xf32>
  }
}
// CHECK-NOT: ds.presume
