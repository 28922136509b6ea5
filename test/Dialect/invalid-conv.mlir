// RUN: ds-opt %s --split-input-file --verify-diagnostics

// Convolutions; the other layers are in invalid-network.mlir.

func.func @conv_c1_no_last_dimension(%x: tensor<2x3xf32>, %w: tensor<4x3xf32>) {
  // expected-error@+1 {{'ds.conv' op expects an input [N, I, L...] and a weight [O, I / groups, K...] with one to three last dimensions and no size 0, but got 'tensor<2x3xf32>' and 'tensor<4x3xf32>'}}
  %r = ds.conv %x, %w stride [] padding [] dilation [] groups 1 : tensor<2x3xf32>, tensor<4x3xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @conv_c1_other_rank(%x: tensor<2x3x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'ds.conv' op expects an input [N, I, L...] and a weight [O, I / groups, K...] with one to three last dimensions and no size 0, but got 'tensor<2x3x8xf32>' and 'tensor<4x3x3x3xf32>'}}
  %r = ds.conv %x, %w stride [1] padding [0] dilation [1] groups 1 : tensor<2x3x8xf32>, tensor<4x3x3x3xf32> -> tensor<2x4x6xf32>
  return
}

// -----

func.func @conv_c1_empty(%x: tensor<0x3x8xf32>, %w: tensor<4x3x3xf32>) {
  // expected-error@+1 {{'ds.conv' op expects an input [N, I, L...] and a weight [O, I / groups, K...] with one to three last dimensions and no size 0, but got 'tensor<0x3x8xf32>' and 'tensor<4x3x3xf32>'}}
  %r = ds.conv %x, %w stride [1] padding [0] dilation [1] groups 1 : tensor<0x3x8xf32>, tensor<4x3x3xf32> -> tensor<0x4x6xf32>
  return
}

// -----

func.func @conv_c2_number_of_strides(%x: tensor<2x3x8xf32>, %w: tensor<4x3x3xf32>) {
  // expected-error@+1 {{'ds.conv' op expects 1 strides and dilations of 1 or more and paddings of 0 or more, but got [1, 1], [1] and [0]}}
  %r = ds.conv %x, %w stride [1, 1] padding [0] dilation [1] groups 1 : tensor<2x3x8xf32>, tensor<4x3x3xf32> -> tensor<2x4x6xf32>
  return
}

// -----

func.func @conv_c2_negative_padding(%x: tensor<2x3x8xf32>, %w: tensor<4x3x3xf32>) {
  // expected-error@+1 {{'ds.conv' op expects 1 strides and dilations of 1 or more and paddings of 0 or more, but got [1], [1] and [-1]}}
  %r = ds.conv %x, %w stride [1] padding [-1] dilation [1] groups 1 : tensor<2x3x8xf32>, tensor<4x3x3xf32> -> tensor<2x4x4xf32>
  return
}

// -----

func.func @conv_c2_huge_dilation(%x: tensor<2x3x8xf32>, %w: tensor<4x3x1xf32>) {
  // expected-error@+1 {{'ds.conv' op expects 1 strides and dilations of 1 or more and paddings of 0 or more, but got [1], [2147483648] and [0]}}
  %r = ds.conv %x, %w stride [1] padding [0] dilation [2147483648] groups 1 : tensor<2x3x8xf32>, tensor<4x3x1xf32> -> tensor<2x4x8xf32>
  return
}

// -----

func.func @conv_c3_groups(%x: tensor<2x4x8xf32>, %w: tensor<3x2x3xf32>) {
  // expected-error@+1 {{'ds.conv' op expects groups that divide input channels and filters, and a weight for the channels of one group, but got 2 groups for 'tensor<2x4x8xf32>' and 'tensor<3x2x3xf32>'}}
  %r = ds.conv %x, %w stride [1] padding [0] dilation [1] groups 2 : tensor<2x4x8xf32>, tensor<3x2x3xf32> -> tensor<2x3x6xf32>
  return
}

// -----

func.func @conv_c3_channels(%x: tensor<2x4x8xf32>, %w: tensor<3x2x3xf32>) {
  // expected-error@+1 {{'ds.conv' op expects groups that divide input channels and filters, and a weight for the channels of one group, but got 1 groups for 'tensor<2x4x8xf32>' and 'tensor<3x2x3xf32>'}}
  %r = ds.conv %x, %w stride [1] padding [0] dilation [1] groups 1 : tensor<2x4x8xf32>, tensor<3x2x3xf32> -> tensor<2x3x6xf32>
  return
}

// -----

func.func @conv_c4_window(%x: tensor<2x3x8xf32>, %w: tensor<4x3x5xf32>) {
  // 3 * (5 - 1) + 1 = 13, 8 + 2 * 2 = 12
  // expected-error@+1 {{'ds.conv' op expects windows that fit the padded input, but got one of 13 over 12 elements}}
  %r = ds.conv %x, %w stride [1] padding [2] dilation [3] groups 1 : tensor<2x3x8xf32>, tensor<4x3x5xf32> -> tensor<2x4x1xf32>
  return
}

// -----

func.func @conv_c4_result(%x: tensor<2x3x8xf32>, %w: tensor<4x3x3xf32>) {
  // (8 - 3) / 2 + 1 = 3
  // expected-error@+1 {{'ds.conv' op expects the convolution's result to be 'tensor<2x4x3xf32>', but got 'tensor<2x4x4xf32>'}}
  %r = ds.conv %x, %w stride [2] padding [0] dilation [1] groups 1 : tensor<2x3x8xf32>, tensor<4x3x3xf32> -> tensor<2x4x4xf32>
  return
}

// -----

func.func @conv_c5_mixed_types(%x: tensor<2x3x8xbf16>, %w: tensor<4x3x3xf32>) {
  // expected-error@+1 {{'ds.conv' op expects weight to be 'tensor<4x3x3xbf16>', but got 'tensor<4x3x3xf32>'}}
  %r = ds.conv %x, %w stride [1] padding [0] dilation [1] groups 1 : tensor<2x3x8xbf16>, tensor<4x3x3xf32> -> tensor<2x4x6xbf16>
  return
}

// -----

func.func @conv_c5_bias(%x: tensor<2x3x8xf32>, %w: tensor<4x3x3xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{'ds.conv' op expects bias to be 'tensor<4xf32>', but got 'tensor<3xf32>'}}
  %r = ds.conv %x, %w bias(%b) stride [1] padding [0] dilation [1] groups 1 : tensor<2x3x8xf32>, tensor<4x3x3xf32>, tensor<3xf32> -> tensor<2x4x6xf32>
  return
}

// -----

func.func @conv_f64(%x: tensor<2x3x8xf64>, %w: tensor<4x3x3xf64>) {
  // expected-error@+1 {{'ds.conv' op operand #0 must be ranked tensor of 32-bit float or bfloat16 type or 16-bit float values, but got 'tensor<2x3x8xf64>'}}
  %r = ds.conv %x, %w stride [1] padding [0] dilation [1] groups 1 : tensor<2x3x8xf64>, tensor<4x3x3xf64> -> tensor<2x4x6xf64>
  return
}

// -----

func.func @conv_grad_input_c1(%w: tensor<4x3x3xf32>, %g: tensor<2x4x6xf32>) {
  // expected-error@+1 {{'ds.conv_grad_input' op expects the convolution's result to be 'tensor<2x4x7xf32>', but got 'tensor<2x4x6xf32>'}}
  %d = ds.conv_grad_input %w, %g stride [1] padding [0] dilation [1] groups 1 : tensor<4x3x3xf32>, tensor<2x4x6xf32> -> tensor<2x3x9xf32>
  return
}

// -----

func.func @conv_grad_weight_c1(%x: tensor<2x3x8xf32>, %g: tensor<2x4x6xf32>) {
  // expected-error@+1 {{'ds.conv_grad_weight' op expects the convolution's result to be 'tensor<2x4x5xf32>', but got 'tensor<2x4x6xf32>'}}
  %d = ds.conv_grad_weight %x, %g stride [1] padding [0] dilation [1] groups 1 : tensor<2x3x8xf32>, tensor<2x4x6xf32> -> tensor<4x3x4xf32>
  return
}
