// RUN: ds-opt %s --split-input-file --verify-diagnostics

// Updates: one case per constraint.

ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>

func.func @update_c1_buffer(%w: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>, %v: tensor<4xf32>) {
  // expected-error@+1 {{'ds.update' op expects a parameter's state, but got @w}}
  %r = ds.update @w states(%w) gradient(%g) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
    ds.yield %b : tensor<8xf32>
  }
  return
}

// -----

ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>

func.func @update_c2_arguments(%w: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>, %v: tensor<4xf32>) {
  // expected-error@+1 {{'ds.update' op expects 2 block arguments of the operands' types}}
  %r = ds.update @w states(%w) gradient(%g) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%b: tensor<8xf32>):
    ds.yield %b : tensor<8xf32>
  }
  return
}

// -----

ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>

func.func @update_c2_results(%w: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>, %v: tensor<4xf32>) {
  // expected-error@+1 {{'ds.update' op expects to yield 1 values of the results' types}}
  %r = ds.update @w states(%w) gradient(%g) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
    %c = ds.convert %b : tensor<8xf32> -> tensor<8xbf16>
    ds.yield %c : tensor<8xbf16>
  }
  return
}

// -----

ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>

func.func @update_c3_state_of_another_shape(%w: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>, %v: tensor<4xf32>) {
  // expected-error@+1 {{'ds.update' op expects states and results of the shape of 'tensor<8xf32>', but got 'tensor<4xf32>'}}
  %r = ds.update @w states(%v) gradient(%g) : (tensor<4xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<8xf32>):
    ds.yield %b : tensor<8xf32>
  }
  return
}

// -----

ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>

func.func @update_c3_scalar_of_rank_1(%w: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>, %v: tensor<4xf32>) {
  // expected-error@+1 {{'ds.update' op expects scalars of rank 0, but got 'tensor<4xf32>'}}
  %r = ds.update @w states(%w) gradient(%g) scalars(%v) : (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<4xf32>):
    ds.yield %b : tensor<8xf32>
  }
  return
}

// -----

ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>

func.func @update_c4_reduction(%w: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>, %v: tensor<4xf32>) {
  // expected-error@+1 {{'ds.update' op expects elementwise ops, splat constants and broadcasts of rank 0 in its body, but got ds.reduce}}
  %r = ds.update @w states(%w) gradient(%g) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
    // expected-note@+1 {{this op}}
    %c = ds.reduce sum %b dims [0] : tensor<8xf32> -> tensor<f32>
    ds.yield %b : tensor<8xf32>
  }
  return
}

// -----

ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>

func.func @update_c4_table(%w: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>, %v: tensor<4xf32>) {
  // expected-error@+1 {{'ds.update' op expects elementwise ops, splat constants and broadcasts of rank 0 in its body, but got ds.constant}}
  %r = ds.update @w states(%w) gradient(%g) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
    // expected-note@+1 {{this op}}
    %c = ds.constant dense<[1.0, 2.0]> : tensor<2xf32>
    ds.yield %b : tensor<8xf32>
  }
  return
}

// -----

ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>

func.func @update_c4_repeated_row(%w: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>, %v: tensor<4xf32>) {
  // expected-error@+1 {{'ds.update' op expects elementwise ops, splat constants and broadcasts of rank 0 in its body, but got ds.broadcast}}
  %r = ds.update @w states(%w) gradient(%g) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
    // expected-note@+1 {{this op}}
    %c = ds.broadcast %b dims [1] : tensor<8xf32> -> tensor<4x8xf32>
    ds.yield %b : tensor<8xf32>
  }
  return
}

// -----

func.func @sum_of_squares_c1_of_nothing() {
  // expected-error@+1 {{'ds.sum_of_squares' op expects an operand, but got none}}
  %s = "ds.sum_of_squares"() : () -> tensor<f64>
  return
}

// -----

func.func @presume_c1(%c: tensor<4xf32>, %g: tensor<4xf32>, %w: tensor<i1>) {
  // expected-error@+1 {{'ds.presume' op expects scalars, but got 'tensor<4xf32>'}}
  %p = ds.presume %c as %g unless %w : tensor<4xf32>, tensor<i1>
  return
}
