// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @batch_norm_c1_one_element(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{'ds.batch_norm' op expects an input [N, C, L...] with more than one element a channel, but got 'tensor<1x8xf32>'}}
  %r:3 = ds.batch_norm %x momentum 0.1 epsilon 1.0e-5 : (tensor<1x8xf32>) -> (tensor<1x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @batch_norm_c2_weight(%x: tensor<4x8xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{'ds.batch_norm' op expects weight and bias to be 'tensor<8xf32>', but got 'tensor<4xf32>'}}
  %r:3 = ds.batch_norm %x weight(%w) momentum 0.1 epsilon 1.0e-5 : (tensor<4x8xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @batch_norm_c3_narrow_statistics(%x: tensor<4x8xbf16>) {
  // expected-error@+1 {{'ds.batch_norm' op expects statistics to be 'tensor<8xf32>', but got 'tensor<8xbf16>'}}
  %r:3 = ds.batch_norm %x momentum 0.1 epsilon 1.0e-5 : (tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<8xbf16>, tensor<8xbf16>)
  return
}

// -----

func.func @batch_norm_c3_result(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.batch_norm' op expects result to be 'tensor<4x8xf32>', but got 'tensor<4x8xbf16>'}}
  %r:3 = ds.batch_norm %x momentum 0.1 epsilon 1.0e-5 : (tensor<4x8xf32>) -> (tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @batch_norm_c4_one_kept(%x: tensor<4x8xf32>, %m: tensor<8xf32>) {
  // expected-error@+1 {{'ds.batch_norm' op expects a running mean and variance or neither, and as many next values, but got 1 and 1}}
  %r:4 = ds.batch_norm %x running(%m) momentum 0.1 epsilon 1.0e-5 : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @batch_norm_c4_running(%x: tensor<4x8xf32>, %m: tensor<4xf32>) {
  // expected-error@+1 {{'ds.batch_norm' op expects running statistics to be 'tensor<8xf32>', but got 'tensor<4xf32>'}}
  %r:5 = ds.batch_norm %x running(%m, %m) momentum 0.1 epsilon 1.0e-5 : (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @batch_norm_c5_momentum(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.batch_norm' op expects a momentum in [0, 1], but got 1.5}}
  %r:3 = ds.batch_norm %x momentum 1.5 epsilon 1.0e-5 : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @batch_norm_grad_c1_grad(%x: tensor<4x8xf32>, %s: tensor<8xf32>, %g: tensor<4x4xf32>) {
  // expected-error@+1 {{'ds.batch_norm_grad' op expects gradients to be 'tensor<4x8xf32>', but got 'tensor<4x4xf32>'}}
  %r:3 = ds.batch_norm_grad %x, %s, %s, %g : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x4xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @batch_norm_grad_c2_sums(%x: tensor<4x8xbf16>, %s: tensor<8xf32>) {
  // expected-error@+1 {{'ds.batch_norm_grad' op expects statistics to be 'tensor<8xf32>', but got 'tensor<8xbf16>'}}
  %r:3 = ds.batch_norm_grad %x, %s, %s, %x : (tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<8xbf16>, tensor<8xf32>)
  return
}
