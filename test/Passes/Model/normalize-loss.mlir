// RUN: ds-opt %s --split-input-file --ds-offer-loss --ds-split-loss --verify-diagnostics | FileCheck %s

// Without the key nothing is divided by anything.

// CHECK-NOT: mean_targets
// CHECK-LABEL: @micro_batches
// CHECK-NOT: over(
module attributes {ds.training = #ds.training<loss_normalization = micro_batches>} {
  func.func @micro_batches(%x: tensor<8x3xf32>, %y: tensor<8xi64> {ds.input = "y"}) -> tensor<f32> {
    %loss, %lse, %count = ds.cross_entropy %x, %y ignore_index -100 : (tensor<8x3xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}

// -----

// A mean over targets: the loss is divided by what the host counts, which starts as all 8 of the micro-batch. Its
// chunks are divided by the same.

// CHECK: ds.state @mean_targets{{.*}}8.0{{.*}} : tensor<f32>
// CHECK-LABEL: @tokens
// CHECK-SAME: %[[MEAN:[a-z0-9]+]]: tensor<f32> {ds.state = @mean_targets}
// CHECK: ds.cross_entropy {{.*}} over(%[[MEAN]])
// CHECK: ds.cross_entropy {{.*}} over(%[[MEAN]])
module attributes {ds.training = #ds.training<loss_chunks = 2, loss_normalization = tokens>} {
  func.func @tokens(%x: tensor<8x4xf32>, %y: tensor<2x4xi64> {ds.input = "y"}, %w: tensor<4x100xf32>) -> tensor<f32> {
    %t = ds.reshape %y : tensor<2x4xi64> -> tensor<8xi64>
    %l = ds.matmul %x, %w : tensor<8x4xf32>, tensor<4x100xf32> -> tensor<8x100xf32>
    %loss, %lse, %count = ds.cross_entropy %l, %t ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}

// -----

// expected-error @+2 {{"loss_normalization": "tokens" expects a cross_entropy as loss, but the model has none}}
// expected-note @+1 {{"micro_batches" takes the mean of the micro-batches' losses, whatever they are}}
module attributes {ds.training = #ds.training<loss_normalization = tokens>} {
  func.func @no_loss(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
}

// -----

module attributes {ds.training = #ds.training<loss_normalization = tokens>} {
  func.func @sum(%x: tensor<4x3xf32>, %y: tensor<4xi64> {ds.input = "y"}) -> tensor<f32> {
    %one = ds.constant dense<1.0> : tensor<f32>
    // expected-error @+2 {{"loss_normalization": "tokens" expects a mean over the loss's own targets, but it is divided by another number}}
    // expected-note @+1 {{"micro_batches" takes the mean}}
    %loss, %lse, %count = ds.cross_entropy %x, %y over(%one) ignore_index -100 : (tensor<4x3xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}

// -----

// Labels that forward shifts: of [2, 4, 3] the last 2 rows of each sample. One loss for two heads.

// CHECK-LABEL: @shifted
// CHECK-SAME: %[[MEAN:[a-z0-9]+]]: tensor<f32> {ds.state = @mean_targets}
// CHECK-COUNT-2: ds.cross_entropy {{.*}} over(%[[MEAN]])
module attributes {ds.training = #ds.training<loss_normalization = tokens>} {
  func.func @shifted(%x: tensor<12x3xf32>, %y: tensor<2x4x3xi64> {ds.input = "y"}) -> tensor<f32> {
    %s = ds.slice %y offsets [0, 2, 0] strides [1, 1, 1] : tensor<2x4x3xi64> -> tensor<2x2x3xi64>
    %t = ds.reshape %s : tensor<2x2x3xi64> -> tensor<12xi64>
    %a, %lse, %count = ds.cross_entropy %x, %t ignore_index 0 : (tensor<12x3xf32>, tensor<12xi64>) -> (tensor<f32>, tensor<12xf32>, tensor<f32>)
    %b, %lse2, %count2 = ds.cross_entropy %x, %t ignore_index 0 : (tensor<12x3xf32>, tensor<12xi64>) -> (tensor<f32>, tensor<12xf32>, tensor<f32>)
    %loss = ds.add %a, %b : tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module attributes {ds.training = #ds.training<loss_normalization = tokens>} {
  func.func @samples(%x: tensor<4x3xf32>, %y: tensor<2x4xi64> {ds.input = "y"}) -> tensor<f32> {
    %flat = ds.reshape %y : tensor<2x4xi64> -> tensor<8xi64>
    %t = ds.slice %flat offsets [4] strides [1] : tensor<8xi64> -> tensor<4xi64>
    // expected-error @+2 {{"loss_normalization": "tokens" expects targets that are the same elements of each sample of one input}}
    // expected-note @+1 {{"micro_batches" takes the mean}}
    %loss, %lse, %count = ds.cross_entropy %x, %t ignore_index -100 : (tensor<4x3xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}

// -----

module attributes {ds.training = #ds.training<loss_normalization = tokens>} {
  func.func @computed(%x: tensor<4x3xf32>, %y: tensor<4xi64> {ds.input = "y"}) -> tensor<f32> {
    %t = ds.add %y, %y : tensor<4xi64>
    // expected-error @+2 {{"loss_normalization": "tokens" expects targets that are the same elements of each sample of one input, but forward computes them, or other losses have others}}
    // expected-note @+1 {{"micro_batches" takes the mean}}
    %loss, %lse, %count = ds.cross_entropy %x, %t ignore_index -100 : (tensor<4x3xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}

// -----

// expected-error @+1 {{ds.training expects micro_batches or tokens for loss_normalization, but got words}}
module attributes {ds.training = #ds.training<loss_normalization = words>} {
}
