// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-verify-step

// A step that is fine says nothing.

ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
ds.state @eval_loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
func.func @last(%w: tensor<f32> {ds.state = @w}) -> (tensor<f32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  return %w : tensor<f32>
}
func.func @evaluate(%w: tensor<f32> {ds.state = @w}) -> (tensor<f32> {ds.state = @eval_loss}) attributes {ds.segment = #ds.segment<evaluation>} {
  return %w : tensor<f32>
}
ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set>]

// -----

// expected-error@+1 {{expects a schedule of its segments, but the module has none}}
module {
}

// -----

// expected-error@+2 {{expects a segment in phase step, but got a function without ds.segment}}
// expected-note@+1 {{--ds-build-step makes the segments}}
func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set>]
func.func @last() attributes {ds.segment = #ds.segment<forward, backward, update>} {
  return
}
// expected-error@+1 {{expects a schedule that runs it, but got none}}
func.func @other() attributes {ds.segment = #ds.segment<forward, backward>} {
  return
}

// -----

// expected-note@+1 {{the first is here}}
func.func @evaluate() attributes {ds.segment = #ds.segment<evaluation>} {
  return
}
// A stage may have one of its own.
func.func @evaluate_1() attributes {ds.segment = #ds.segment<stage 1, evaluation>} {
  return
}
// expected-error@+1 {{expects one evaluation of a stage, but got a second}}
func.func @again() attributes {ds.segment = #ds.segment<evaluation>} {
  return
}

// -----

func.func @last() attributes {ds.segment = #ds.segment<update>} {
  return
}
ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients none>]
// expected-error@+1 {{expects one schedule of stage 0, but got a second}}
ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients none>]

// -----

ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
// expected-note@+1 {{the first is here}}
ds.state @w.sum role(moment) slot("sum") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
// expected-error@+1 {{expects @w to have one "sum", but got a second}}
ds.state @w.other role(moment) slot("sum") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
func.func @last() attributes {ds.segment = #ds.segment<update>} {
  return
}

// -----

ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
func.func @last(%w: tensor<f32> {ds.state = @w}) -> (tensor<f32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  // expected-error@+2 {{'ds.neg' op expects ds.work of #ds.segment<forward, backward, update>, but got none}}
  // expected-note@+1 {{--ds-differentiate says it first; --ds-simplify keeps it, --canonicalize does not}}
  %n = ds.neg %w : tensor<f32>
  return %n : tensor<f32>
}

// -----

ds.state @loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
func.func @first(%w: tensor<f32> {ds.input = "w"}) -> (tensor<f32> {ds.state = @loss}) attributes {ds.segment = #ds.segment<forward, backward>} {
  // expected-error@+1 {{'ds.neg' op expects ds.work of #ds.segment<forward, backward>, but got update}}
  %n = ds.neg %w {ds.work = #ds.work<update>} : tensor<f32>
  return %n : tensor<f32>
}

// -----

ds.state @loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
func.func @first(%w: tensor<f32> {ds.input = "w"}) -> (tensor<f32> {ds.state = @loss}) attributes {ds.segment = #ds.segment<forward, backward>} {
  // expected-note@+1 {{made here}}
  %n = ds.neg %w {ds.work = #ds.work<backward>} : tensor<f32>
  // expected-error@+1 {{'ds.exp' op is forward, but reads what is backward}}
  %e = ds.exp %n {ds.work = #ds.work<forward>} : tensor<f32>
  return %e : tensor<f32>
}

// -----

// expected-error@+1 {{expects result 0 to be a state, but got none}}
func.func @last(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> attributes {ds.segment = #ds.segment<forward, backward, update>} {
  return %x : tensor<f32>
}

// -----

// expected-error@+1 {{expects result 0 to hold a declared state, but got @w}}
func.func @last(%x: tensor<f32> {ds.input = "x"}) -> (tensor<f32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  return %x : tensor<f32>
}

// -----

// expected-note@+1 {{state @w is declared here}}
ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
// expected-error@+1 {{expects result 0 of type 'tensor<4xf32>', but got 'tensor<f32>'}}
func.func @last(%x: tensor<f32> {ds.input = "x"}) -> (tensor<f32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  return %x : tensor<f32>
}

// -----

ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
// expected-error@+1 {{expects one result for state @w, but got results 0 and 1}}
func.func @last(%x: tensor<f32> {ds.input = "x"}) -> (tensor<f32> {ds.state = @w}, tensor<f32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  return %x, %x : tensor<f32>, tensor<f32>
}

// -----

// expected-note@+1 {{the state is declared here}}
ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
// expected-error@+1 {{expects no parameter as result of #ds.segment<forward, backward>, but got @w}}
func.func @first(%x: tensor<f32> {ds.input = "x"}) -> (tensor<f32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward>} {
  return %x : tensor<f32>
}
