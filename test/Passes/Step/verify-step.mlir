// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-verify-step

// A step that is fine says nothing.

ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
ds.state @eval_loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
func.func @last(%w: tensor<f32> {ds.state = @w}) -> (tensor<f32> {ds.state = @w}) attributes {ds.segment = #ds.segment<last>} {
  return %w : tensor<f32>
}
func.func @evaluate(%w: tensor<f32> {ds.state = @w}) -> (tensor<f32> {ds.state = @eval_loss}) attributes {ds.segment = #ds.segment<evaluation>} {
  return %w : tensor<f32>
}

// -----

// expected-error@+1 {{expects a segment of kind last, but the module has none}}
module {
}

// -----

// expected-error@+2 {{expects a segment in phase step, but got a function without ds.segment}}
// expected-note@+1 {{--ds-build-step makes the segments}}
func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// expected-note@+1 {{the first is here}}
func.func @last() attributes {ds.segment = #ds.segment<last>} {
  return
}
// expected-error@+1 {{expects one segment of kind last, but got a second}}
func.func @other() attributes {ds.segment = #ds.segment<last>} {
  return
}

// -----

func.func @last() attributes {ds.segment = #ds.segment<last>} {
  return
}
// expected-error@+1 {{expects a segment of kind first before it, but the module has none}}
func.func @middle() attributes {ds.segment = #ds.segment<middle>} {
  return
}

// -----

// expected-error@+1 {{expects result 0 to be a state, but got none}}
func.func @last(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> attributes {ds.segment = #ds.segment<last>} {
  return %x : tensor<f32>
}

// -----

// expected-error@+1 {{expects result 0 to hold a declared state, but got @w}}
func.func @last(%x: tensor<f32> {ds.input = "x"}) -> (tensor<f32> {ds.state = @w}) attributes {ds.segment = #ds.segment<last>} {
  return %x : tensor<f32>
}

// -----

// expected-note@+1 {{state @w is declared here}}
ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
// expected-error@+1 {{expects result 0 of type 'tensor<4xf32>', but got 'tensor<f32>'}}
func.func @last(%x: tensor<f32> {ds.input = "x"}) -> (tensor<f32> {ds.state = @w}) attributes {ds.segment = #ds.segment<last>} {
  return %x : tensor<f32>
}

// -----

ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
// expected-error@+1 {{expects one result for state @w, but got results 0 and 1}}
func.func @last(%x: tensor<f32> {ds.input = "x"}) -> (tensor<f32> {ds.state = @w}, tensor<f32> {ds.state = @w}) attributes {ds.segment = #ds.segment<last>} {
  return %x, %x : tensor<f32>, tensor<f32>
}

// -----

// expected-note@+1 {{the state is declared here}}
ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
// expected-error@+1 {{expects no parameter as result of a first segment, but got @w}}
func.func @first(%x: tensor<f32> {ds.input = "x"}) -> (tensor<f32> {ds.state = @w}) attributes {ds.segment = #ds.segment<first>} {
  return %x : tensor<f32>
}
