// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @cross_entropy_with_grad_c1_targets(%x: tensor<4x8xf32>, %t: tensor<8xi64>, %g: tensor<f32>) {
  // expected-error@+1 {{'ds.cross_entropy_with_grad' op expects logits [N, C] and targets [N], but got 'tensor<4x8xf32>' and 'tensor<8xi64>'}}
  %l, %c, %d = ds.cross_entropy_with_grad %x, %t, %g ignore_index -100 : (tensor<4x8xf32>, tensor<8xi64>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>)
  return
}

// -----

func.func @cross_entropy_with_grad_c2_denominator(%x: tensor<4x8xf32>, %t: tensor<4xi64>, %g: tensor<f32>, %n: tensor<4xf32>) {
  // expected-error@+1 {{'ds.cross_entropy_with_grad' op expects loss, count, denominator and grad to be 'tensor<f32>', but got 'tensor<4xf32>'}}
  %l, %c, %d = ds.cross_entropy_with_grad %x, %t, %g over(%n) ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>)
  return
}

// -----

func.func @cross_entropy_with_grad_c3_cap(%x: tensor<4x8xf32>, %t: tensor<4xi64>, %g: tensor<f32>) {
  // expected-error@+1 {{'ds.cross_entropy_with_grad' op expects a cap that is positive and finite, but got -1.000000e+00}}
  %l, %c, %d = ds.cross_entropy_with_grad %x, %t, %g ignore_index -100 cap -1.0 : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>)
  return
}

// -----

// expected-error@+1 {{expects pairs of a first target and a count, but got 3 numbers}}
module attributes {ds.indices = [#ds.indices<"y" below 100 targets [0, 2, 4]>]} {
}

// -----

// expected-error@+1 {{expects runs that ascend and do not touch, but got 2 targets from 2 on}}
module attributes {ds.indices = [#ds.indices<"y" below 100 targets [0, 2, 2, 2]>]} {
}

// -----

// expected-error@+1 {{expects runs that ascend and do not touch, but got 0 targets from 3 on}}
module attributes {ds.indices = [#ds.indices<"y" below 100 targets [0, 2, 3, 0]>]} {
}
