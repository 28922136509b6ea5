// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-lower-precision

// An op of which the table says nothing.
module attributes {ds.training = {precision = {compute = "bf16"}}} {
  func.func @forward(%x: tensor<8xf32> {ds.input = "x"}) -> tensor<f64> {
    // expected-error@+1 {{'ds.sum_of_squares' op expects an entry in the table of precision, but has none}}
    %q = ds.sum_of_squares %x : tensor<8xf32> -> tensor<f64>
    return %q : tensor<f64>
  }
}

// -----

// expected-error@+1 {{expects a function @forward to lower, but the module has none}}
module attributes {ds.training = {precision = {compute = "bf16"}}} {
}
