// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-build-step

// expected-error@+1 {{expects a function @forward to build a step from, but the module has none}}
module {
}

// -----

// expected-error@+2 {{expects at least one gradient among its results, but got none}}
// expected-note@+1 {{--ds-differentiate appends them, for trainable parameters that influence the loss}}
func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// expected-error@+1 {{expects a name that the step does not use itself, but got "lr"}}
ds.state @lr role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
func.func @forward(%w: tensor<f32> {ds.state = @lr}) -> (tensor<f32>, tensor<f32> {ds.state = #ds.gradient<@lr>}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

module attributes {ds.training = #ds.training<loss_scale = {skip = true}>} {
  // expected-error@+1 {{expects a name that the step does not use itself, but got "skipped"}}
  ds.state @skipped role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  func.func @forward(%w: tensor<f32> {ds.state = @skipped}) -> (tensor<f32>, tensor<f32> {ds.state = #ds.gradient<@skipped>}) {
    return %w, %w : tensor<f32>, tensor<f32>
  }
}

// -----

module attributes {ds.training = #ds.training<loss_scale = {skip = true, scale = true, dynamic = true}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  // expected-error@+2 {{expects a state @loss_scale, but the module has none}}
  // expected-note@+1 {{--ds-differentiate declares it, by the same ds.training}}
  func.func @forward(%w: tensor<f32> {ds.state = @w}) -> (tensor<f32>, tensor<f32> {ds.state = #ds.gradient<@w>}) {
    return %w, %w : tensor<f32>, tensor<f32>
  }
}
