// RUN: ds-opt %s --split-input-file --verify-diagnostics

// What an epilogue asks of its product.

func.func @matmul_c7_gelu_of_f32(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>) {
  // expected-error@+1 {{'ds.matmul' op expects factors and a result of one type of 16 bits with epilogue(gelu), but got 'tensor<4x8xf32>' and 'tensor<4x6xf32>'}}
  %g = ds.matmul %x, %w epilogue(gelu) : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @matmul_c7_gelu_unrounded(%x: tensor<4x8xbf16>, %w: tensor<8x6xbf16>) {
  // expected-error@+1 {{'ds.matmul' op expects factors and a result of one type of 16 bits with epilogue(gelu), but got 'tensor<4x8xbf16>' and 'tensor<4x6xf32>'}}
  %g = ds.matmul %x, %w epilogue(gelu) : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xf32>
  return
}

// -----

func.func @matmul_c7_gelu_gradient_of_f32(%y: tensor<4x8xf32>, %w: tensor<8x6xf32>, %h: tensor<4x6xf32>) {
  // expected-error@+1 {{'ds.matmul' op expects factors and a result of one type of 16 bits with epilogue(gelu_gradient), but got 'tensor<4x8xf32>' and 'tensor<4x6xf32>'}}
  %d = ds.matmul %y, %w input(%h) epilogue(gelu_gradient) : tensor<4x8xf32>, tensor<8x6xf32> input tensor<4x6xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @matmul_c7_gelu_accumulates(%x: tensor<4x8xbf16>, %w: tensor<8x6xbf16>, %sum: tensor<4x6xbf16>) {
  // expected-error@+1 {{'ds.matmul' op expects no accumulator with epilogue(gelu), but got one}}
  %g = ds.matmul %x, %w into(%sum) epilogue(gelu) : tensor<4x8xbf16>, tensor<8x6xbf16> into tensor<4x6xbf16> -> tensor<4x6xbf16>
  return
}

// -----

func.func @matmul_c7_gelu_gradient_accumulates(%y: tensor<4x8xbf16>, %w: tensor<8x6xbf16>, %h: tensor<4x6xbf16>, %sum: tensor<4x6xbf16>) {
  // expected-error@+1 {{'ds.matmul' op expects no accumulator with epilogue(gelu_gradient), but got one}}
  %d = ds.matmul %y, %w into(%sum) input(%h) epilogue(gelu_gradient) : tensor<4x8xbf16>, tensor<8x6xbf16> into tensor<4x6xbf16> input tensor<4x6xbf16> -> tensor<4x6xbf16>
  return
}

// -----

func.func @matmul_c7_gelu_gradient_bias(%y: tensor<4x8xbf16>, %w: tensor<8x6xbf16>, %h: tensor<4x6xbf16>, %b: tensor<6xbf16>) {
  // expected-error@+1 {{'ds.matmul' op expects no bias with epilogue(gelu_gradient), but got one}}
  %d = ds.matmul %y, %w bias(%b) input(%h) epilogue(gelu_gradient) : tensor<4x8xbf16>, tensor<8x6xbf16>, tensor<6xbf16> input tensor<4x6xbf16> -> tensor<4x6xbf16>
  return
}

// -----

func.func @matmul_c8_no_input(%y: tensor<4x8xbf16>, %w: tensor<8x6xbf16>) {
  // expected-error@+1 {{'ds.matmul' op expects an input with epilogue(gelu_gradient), but got none}}
  %d = ds.matmul %y, %w epilogue(gelu_gradient) : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xbf16>
  return
}

// -----

func.func @matmul_c8_input_of_none(%y: tensor<4x8xbf16>, %w: tensor<8x6xbf16>, %h: tensor<4x6xbf16>) {
  // expected-error@+1 {{'ds.matmul' op expects no input with epilogue(none), but got one}}
  %d = ds.matmul %y, %w input(%h) : tensor<4x8xbf16>, tensor<8x6xbf16> input tensor<4x6xbf16> -> tensor<4x6xbf16>
  return
}

// -----

func.func @matmul_c8_input_of_gelu(%y: tensor<4x8xbf16>, %w: tensor<8x6xbf16>, %h: tensor<4x6xbf16>) {
  // expected-error@+1 {{'ds.matmul' op expects no input with epilogue(gelu), but got one}}
  %d = ds.matmul %y, %w input(%h) epilogue(gelu) : tensor<4x8xbf16>, tensor<8x6xbf16> input tensor<4x6xbf16> -> tensor<4x6xbf16>
  return
}

// -----

func.func @matmul_c8_input_type(%y: tensor<4x8xbf16>, %w: tensor<8x6xbf16>, %h: tensor<6x4xbf16>) {
  // expected-error@+1 {{'ds.matmul' op expects input to be 'tensor<4x6xbf16>', but got 'tensor<6x4xbf16>'}}
  %d = ds.matmul %y, %w input(%h) epilogue(gelu_gradient) : tensor<4x8xbf16>, tensor<8x6xbf16> input tensor<6x4xbf16> -> tensor<4x6xbf16>
  return
}

// -----

func.func @matmul_c8_second_result_of_relu(%x: tensor<4x8xbf16>, %w: tensor<8x6xbf16>) {
  // expected-error@+1 {{'ds.matmul' op expects one result with epilogue(relu), but got two}}
  %r, %h = ds.matmul %x, %w epilogue(relu) : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xbf16>, tensor<4x6xbf16>
  return
}

// -----

func.func @matmul_c8_second_result_of_gelu_gradient(%y: tensor<4x8xbf16>, %w: tensor<8x6xbf16>, %h: tensor<4x6xbf16>) {
  // expected-error@+1 {{'ds.matmul' op expects one result with epilogue(gelu_gradient), but got two}}
  %d, %k = ds.matmul %y, %w input(%h) epilogue(gelu_gradient) : tensor<4x8xbf16>, tensor<8x6xbf16> input tensor<4x6xbf16> -> tensor<4x6xbf16>, tensor<4x6xbf16>
  return
}

// -----

func.func @matmul_c8_second_result_type(%x: tensor<4x8xbf16>, %w: tensor<8x6xbf16>) {
  // expected-error@+1 {{'ds.matmul' op expects second result to be 'tensor<4x6xbf16>', but got 'tensor<24xbf16>'}}
  %g, %h = ds.matmul %x, %w epilogue(gelu) : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xbf16>, tensor<24xbf16>
  return
}

// -----

func.func @matmul_unknown_epilogue(%x: tensor<4x8xbf16>, %w: tensor<8x6xbf16>) {
  // expected-error@+1 {{expects one of none, relu, gelu, gelu_gradient, but got silu}}
  %g = ds.matmul %x, %w epilogue(silu) : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xbf16>
  return
}
