// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-differentiate=remarks

// expected-error@+1 {{expects a function @forward to differentiate, but the module has none}}
module {
}

// -----

// expected-error@+1 {{expects a rank-0 float loss as first result, but got 'tensor<8xf32>'}}
func.func @forward(%x: tensor<8xf32> {ds.input = "x"}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// expected-error@+1 {{expects a rank-0 float loss as first result, but got no result}}
func.func @forward() {
  return
}

// -----

ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
// expected-error@+1 {{expects a forward without gradients, but result 1 is one}}
func.func @forward(%w: tensor<f32> {ds.state = @w}) -> (tensor<f32>, tensor<f32> {ds.state = #ds.gradient<@w>}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

ds.state @u role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
// expected-remark@+1 {{parameter @u does not influence the loss: it has no gradient}}
func.func @forward(%u: tensor<8xf32> {ds.state = @u}, %w: tensor<f32> {ds.state = @w}) -> tensor<f32> {
  %loss = ds.exp %w : tensor<f32>
  return %loss : tensor<f32>
}

// -----

module attributes {ds.training = #ds.training<loss_scale = {skip = true, scale = true, dynamic = true}>} {
  // expected-error@+1 {{expects a name that the step does not use itself, but got "loss_scale"}}
  ds.state @loss_scale role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  func.func @forward(%w: tensor<f32> {ds.state = @loss_scale}) -> tensor<f32> {
    return %w : tensor<f32>
  }
}
