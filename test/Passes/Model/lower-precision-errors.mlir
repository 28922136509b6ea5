// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-lower-precision

// An op of which the table says nothing.
module attributes {ds.training = #ds.training<precision = {compute = bf16}>} {
  func.func @forward(%i: tensor<2xi64> {ds.input = "i"}, %x: tensor<2x8xf32> {ds.input = "x"}) -> tensor<4x8xf32> {
    // expected-error@+1 {{'ds.embedding_grad' op expects an entry in the table of precision, but has none}}
    %q = ds.embedding_grad %i, %x : tensor<2xi64>, tensor<2x8xf32> -> tensor<4x8xf32>
    return %q : tensor<4x8xf32>
  }
}

// -----

// expected-error@+1 {{expects a function @forward to lower, but the module has none}}
module attributes {ds.training = #ds.training<precision = {compute = bf16}>} {
}
