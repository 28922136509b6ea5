// RUN: ds-opt %s --split-input-file --verify-diagnostics

// Products that apply GELU.

func.func @matmul_gelu_c1_contracted_sizes(%x: tensor<4x8xbf16>, %w: tensor<7x6xbf16>) {
  // expected-error@+1 {{'ds.matmul_gelu' op expects equal contracted sizes, but got 8 and 7}}
  %g = ds.matmul_gelu %x, %w : tensor<4x8xbf16>, tensor<7x6xbf16> -> tensor<4x6xbf16>
  return
}

// -----

func.func @matmul_gelu_c1_result(%x: tensor<4x8xbf16>, %w: tensor<8x6xbf16>) {
  // expected-error@+1 {{'ds.matmul_gelu' op expects result to be 'tensor<4x6xbf16>', but got 'tensor<6x4xbf16>'}}
  %g = ds.matmul_gelu %x, %w : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<6x4xbf16>
  return
}

// -----

func.func @matmul_gelu_c2_input(%x: tensor<4x8xbf16>, %w: tensor<8x6xbf16>) {
  // expected-error@+1 {{'ds.matmul_gelu' op expects GELU's input to be 'tensor<4x6xbf16>', but got 'tensor<24xbf16>'}}
  %g, %h = ds.matmul_gelu %x, %w : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xbf16>, tensor<24xbf16>
  return
}

// -----

func.func @matmul_gelu_grad_c1_rhs(%y: tensor<4x8xbf16>, %w: tensor<8x6xf16>, %h: tensor<4x6xbf16>) {
  // expected-error@+1 {{'ds.matmul_gelu_grad' op expects rhs to be 'tensor<8x6xbf16>', but got 'tensor<8x6xf16>'}}
  %d = ds.matmul_gelu_grad %y, %w input(%h) : tensor<4x8xbf16>, tensor<8x6xf16>, tensor<4x6xbf16> -> tensor<4x6xbf16>
  return
}

// -----

func.func @matmul_gelu_grad_c2_input(%y: tensor<4x8xbf16>, %w: tensor<8x6xbf16>, %h: tensor<6x4xbf16>) {
  // expected-error@+1 {{'ds.matmul_gelu_grad' op expects GELU's input to be 'tensor<4x6xbf16>', but got 'tensor<6x4xbf16>'}}
  %d = ds.matmul_gelu_grad %y, %w input(%h) : tensor<4x8xbf16>, tensor<8x6xbf16>, tensor<6x4xbf16> -> tensor<4x6xbf16>
  return
}
