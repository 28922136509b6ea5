// RUN: ds-opt %s --split-input-file --verify-diagnostics

// The layers of networks; the other ops are in invalid.mlir and invalid-state.mlir.

func.func @matmul_c1_vector(%a: tensor<4xf32>, %b: tensor<4x4xf32>) {
  // expected-error@+1 {{'ds.matmul' op expects matrices, or equal leading dimensions, but got 'tensor<4xf32>' and 'tensor<4x4xf32>'}}
  %r = ds.matmul %a, %b : tensor<4xf32>, tensor<4x4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @matmul_c1_leading_dimensions(%a: tensor<2x4x4xf32>, %b: tensor<3x4x4xf32>) {
  // expected-error@+1 {{'ds.matmul' op expects matrices, or equal leading dimensions, but got 'tensor<2x4x4xf32>' and 'tensor<3x4x4xf32>'}}
  %r = ds.matmul %a, %b : tensor<2x4x4xf32>, tensor<3x4x4xf32> -> tensor<2x4x4xf32>
  return
}

// -----

func.func @matmul_c2_contracted(%a: tensor<4x8xf32>, %b: tensor<6x8xf32>) {
  // expected-error@+1 {{'ds.matmul' op expects equal contracted sizes, but got 8 and 6}}
  %r = ds.matmul %a, %b : tensor<4x8xf32>, tensor<6x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @matmul_c3_mixed_types(%a: tensor<4x8xbf16>, %b: tensor<8x6xf32>) {
  // expected-error@+1 {{'ds.matmul' op expects rhs to be 'tensor<8x6xbf16>', but got 'tensor<8x6xf32>'}}
  %r = ds.matmul %a, %b : tensor<4x8xbf16>, tensor<8x6xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @matmul_c4_wider_result(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>) {
  // expected-error@+1 {{'ds.matmul' op expects result to be 'tensor<4x6xf32>', but got 'tensor<4x6xf64>'}}
  %r = ds.matmul %a, %b : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf64>
  return
}

// -----

func.func @matmul_c4_other_16_bits(%a: tensor<4x8xbf16>, %b: tensor<8x6xbf16>) {
  // expected-error@+1 {{'ds.matmul' op expects result to be 'tensor<4x6xbf16>', but got 'tensor<4x6xf16>'}}
  %r = ds.matmul %a, %b : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xf16>
  return
}

// -----

func.func @matmul_c4_result(%a: tensor<4x8xf32>, %b: tensor<6x8xf32>) {
  // expected-error@+1 {{'ds.matmul' op expects result to be 'tensor<4x6xf32>', but got 'tensor<6x4xf32>'}}
  %r = ds.matmul %a, %b transpose_rhs : tensor<4x8xf32>, tensor<6x8xf32> -> tensor<6x4xf32>
  return
}

// -----

func.func @matmul_c5_bias(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4xf32>) {
  // expected-error@+1 {{'ds.matmul' op expects bias to be 'tensor<6xf32>', but got 'tensor<4xf32>'}}
  %r = ds.matmul %a, %b bias(%c) : tensor<4x8xf32>, tensor<8x6xf32>, tensor<4xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @matmul_c5_accumulator(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<6x4xf32>) {
  // expected-error@+1 {{'ds.matmul' op expects accumulator to be 'tensor<4x6xf32>', but got 'tensor<6x4xf32>'}}
  %r = ds.matmul %a, %b into(%c) : tensor<4x8xf32>, tensor<8x6xf32> into tensor<6x4xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @matmul_c6_transposed_stack(%a: tensor<2x8x4xf32>, %b: tensor<8x6xf32>) {
  // expected-error@+1 {{'ds.matmul' op expects a rank-2 lhs to transpose against a rank-2 rhs, but got 'tensor<2x8x4xf32>'}}
  %r = ds.matmul %a, %b transpose_lhs : tensor<2x8x4xf32>, tensor<8x6xf32> -> tensor<2x4x6xf32>
  return
}

// -----

func.func @softmax_c1_dimension(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.softmax' op expects a dimension below the rank 2, but got 2}}
  %r = ds.softmax %x dim 2 : tensor<4x8xf32>
  return
}

// -----

func.func @layer_norm_c1_dimensions(%x: tensor<8xf32>) {
  // expected-error@+1 {{'ds.layer_norm' op expects at most 1 normalised dimensions, but got 2}}
  %r, %m, %s = ds.layer_norm %x over 2 epsilon 1.0e-5 : tensor<8xf32> -> tensor<8xf32>, tensor<f32>, tensor<f32>
  return
}

// -----

func.func @layer_norm_c2_weight(%x: tensor<4x8xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{'ds.layer_norm' op expects weight and bias to be 'tensor<8xf32>', but got 'tensor<4xf32>'}}
  %r, %m, %s = ds.layer_norm %x weight(%w) over 1 epsilon 1.0e-5 : tensor<4x8xf32>, tensor<4xf32> -> tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @layer_norm_c3_statistics(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.layer_norm' op expects statistics to be 'tensor<4xf32>', but got 'tensor<8xf32>'}}
  %r, %m, %s = ds.layer_norm %x over 1 epsilon 1.0e-5 : tensor<4x8xf32> -> tensor<4x8xf32>, tensor<4xf32>, tensor<8xf32>
  return
}

// -----

func.func @layer_norm_c3_result(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.layer_norm' op expects result to be 'tensor<4x8xf32>', but got 'tensor<8x4xf32>'}}
  %r, %m, %s = ds.layer_norm %x over 1 epsilon 1.0e-5 : tensor<4x8xf32> -> tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @rms_norm_c1_dimensions(%x: tensor<8xf32>) {
  // expected-error@+1 {{'ds.rms_norm' op expects at most 1 normalised dimensions, but got 2}}
  %r, %s = ds.rms_norm %x over 2 epsilon 1.0e-5 : tensor<8xf32> -> tensor<8xf32>, tensor<f32>
  return
}

// -----

func.func @rms_norm_c2_weight(%x: tensor<4x8xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{'ds.rms_norm' op expects weight and bias to be 'tensor<8xf32>', but got 'tensor<4xf32>'}}
  %r, %s = ds.rms_norm %x weight(%w) over 1 epsilon 1.0e-5 : tensor<4x8xf32>, tensor<4xf32> -> tensor<4x8xf32>, tensor<4xf32>
  return
}

// -----

func.func @rms_norm_c3_statistics(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.rms_norm' op expects statistics to be 'tensor<4xf32>', but got 'tensor<8xf32>'}}
  %r, %s = ds.rms_norm %x over 1 epsilon 1.0e-5 : tensor<4x8xf32> -> tensor<4x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @cross_entropy_c3_cap(%x: tensor<4x8xf32>, %t: tensor<4xi64>) {
  // expected-error@+1 {{'ds.cross_entropy' op expects a cap that is positive and finite, but got 0.000000e+00}}
  %loss, %lse, %count = ds.cross_entropy %x, %t ignore_index -100 cap 0.0 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

func.func @cross_entropy_grad_c1_cap(%x: tensor<4x8xf32>, %t: tensor<4xi64>, %l: tensor<4xf32>, %n: tensor<f32>) {
  // expected-error@+1 {{'ds.cross_entropy_grad' op expects a cap that is positive and finite, but got -1.000000e+00}}
  %d = ds.cross_entropy_grad %x, %t, %l, %n, %n ignore_index -100 cap -1.0 : (tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @embedding_c1_table(%t: tensor<100xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{'ds.embedding' op expects a table of rank 2, but got 'tensor<100xf32>'}}
  %r = ds.embedding %t, %i : tensor<100xf32>, tensor<2xi64> -> tensor<2xf32>
  return
}

// -----

func.func @embedding_c2_result(%t: tensor<100x8xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{'ds.embedding' op expects result to be 'tensor<2x8xf32>', but got 'tensor<8x2xf32>'}}
  %r = ds.embedding %t, %i : tensor<100x8xf32>, tensor<2xi64> -> tensor<8x2xf32>
  return
}

// -----

func.func @embedding_c3_padding_index(%t: tensor<100x8xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{'ds.embedding' op expects padding_index to be in [0, 100), but got 100}}
  %r = ds.embedding %t, %i padding_index 100 : tensor<100x8xf32>, tensor<2xi64> -> tensor<2x8xf32>
  return
}

// -----

func.func @embedding_grad_c1_rank(%i: tensor<2xi64>, %g: tensor<2x8xf32>) {
  // expected-error@+1 {{'ds.embedding_grad' op expects a result of rank 2, but got 'tensor<100xf32>'}}
  %r = ds.embedding_grad %i, %g : tensor<2xi64>, tensor<2x8xf32> -> tensor<100xf32>
  return
}

// -----

func.func @embedding_grad_c1_grad(%i: tensor<2xi64>, %g: tensor<2x4xf32>) {
  // expected-error@+1 {{'ds.embedding_grad' op expects grad to be 'tensor<2x8xf32>', but got 'tensor<2x4xf32>'}}
  %r = ds.embedding_grad %i, %g : tensor<2xi64>, tensor<2x4xf32> -> tensor<100x8xf32>
  return
}

// -----

func.func @embedding_grad_c2_grad_is_wider(%i: tensor<2xi64>, %g: tensor<2x8xf32>) {
  // expected-error@+1 {{'ds.embedding_grad' op expects grad to be 'tensor<2x8xbf16>', but got 'tensor<2x8xf32>'}}
  %r = ds.embedding_grad %i, %g : tensor<2xi64>, tensor<2x8xf32> -> tensor<100x8xbf16>
  return
}

// -----

func.func @embedding_grad_c2_accumulator(%i: tensor<2xi64>, %g: tensor<2x8xf32>, %a: tensor<99x8xf32>) {
  // expected-error@+1 {{'ds.embedding_grad' op expects accumulator to be 'tensor<100x8xf32>', but got 'tensor<99x8xf32>'}}
  %r = ds.embedding_grad %i, %g into(%a : tensor<99x8xf32>) : tensor<2xi64>, tensor<2x8xf32> -> tensor<100x8xf32>
  return
}

// -----

func.func @cross_entropy_c1_targets(%x: tensor<4x8xf32>, %t: tensor<8xi64>) {
  // expected-error@+1 {{'ds.cross_entropy' op expects logits [N, C] and targets [N], but got 'tensor<4x8xf32>' and 'tensor<8xi64>'}}
  %l, %s, %c = ds.cross_entropy %x, %t ignore_index -100 : (tensor<4x8xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

func.func @cross_entropy_c2_count(%x: tensor<4x8xf32>, %t: tensor<4xi64>) {
  // expected-error@+1 {{'ds.cross_entropy' op expects loss, count, denominator and grad to be 'tensor<f32>', but got 'tensor<4xf32>'}}
  %l, %s, %c = ds.cross_entropy %x, %t ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @cross_entropy_c2_denominator(%x: tensor<4x8xf32>, %t: tensor<4xi64>, %n: tensor<4xf32>) {
  // expected-error@+1 {{'ds.cross_entropy' op expects loss, count, denominator and grad to be 'tensor<f32>', but got 'tensor<4xf32>'}}
  %l, %s, %c = ds.cross_entropy %x, %t over(%n) ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  return
}

// -----

func.func @cross_entropy_c2_lse(%x: tensor<4x8xf32>, %t: tensor<4xi64>) {
  // expected-error@+1 {{'ds.cross_entropy' op expects lse to be 'tensor<4xf32>', but got 'tensor<8xf32>'}}
  %l, %s, %c = ds.cross_entropy %x, %t ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
  return
}

// -----

func.func @cross_entropy_grad_c1_grad(%x: tensor<4x8xf32>, %t: tensor<4xi64>, %s: tensor<4xf32>, %c: tensor<f32>, %g: tensor<4xf32>) {
  // expected-error@+1 {{'ds.cross_entropy_grad' op expects loss, count, denominator and grad to be 'tensor<f32>', but got 'tensor<4xf32>'}}
  %d = ds.cross_entropy_grad %x, %t, %s, %c, %g ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @dropout_c1_one(%x: tensor<4xf32>, %r: tensor<2xi64>) {
  // expected-error@+1 {{'ds.dropout' op expects a probability in [0, 1), but got 1.000000e+00}}
  %d = ds.dropout %x, %r probability 1.0 id 0 : tensor<4xf32>, tensor<2xi64>
  return
}
