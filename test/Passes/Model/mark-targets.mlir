// RUN: ds-opt %s --split-input-file --ds-offer-loss | FileCheck %s

// Which elements of an input losses have for targets: all of [2, 4], whatever rows they are folded into.
// CHECK: module attributes {ds.indices = [#ds.indices<"y" below 3 ignore -100 targets[0, 4]>]}
func.func @all(%x: tensor<8x3xf32>, %y: tensor<2x4xi64> {ds.input = "y"}) -> tensor<f32> {
  %t = ds.reshape %y : tensor<2x4xi64> -> tensor<8xi64>
  %loss, %lse, %count = ds.cross_entropy %x, %t ignore_index -100 : (tensor<8x3xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
  return %loss : tensor<f32>
}

// -----

// Shifted by one.
// CHECK: module attributes {ds.indices = [#ds.indices<"y" below 3 ignore -100 targets[1, 3]>]}
func.func @shifted(%x: tensor<6x3xf32>, %y: tensor<2x4xi64> {ds.input = "y"}) -> tensor<f32> {
  %s = ds.slice %y offsets [0, 1] strides [1, 1] : tensor<2x4xi64> -> tensor<2x3xi64>
  %t = ds.reshape %s : tensor<2x3xi64> -> tensor<6xi64>
  %loss, %lse, %count = ds.cross_entropy %x, %t ignore_index -100 : (tensor<6x3xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<f32>)
  return %loss : tensor<f32>
}

// -----

// Shifted with an ignored one behind the last.
// CHECK: module attributes {ds.indices = [#ds.indices<"y" below 3 ignore -100 targets[1, 3]>]}
func.func @padded(%x: tensor<8x3xf32>, %y: tensor<2x4xi64> {ds.input = "y"}) -> tensor<f32> {
  %none = ds.constant dense<-100> : tensor<2x1xi64>
  %p = ds.concat %y, %none dim 1 : tensor<2x4xi64>, tensor<2x1xi64> -> tensor<2x5xi64>
  %s = ds.slice %p offsets [0, 1] strides [1, 1] : tensor<2x5xi64> -> tensor<2x4xi64>
  %t = ds.reshape %s : tensor<2x4xi64> -> tensor<8xi64>
  %loss, %lse, %count = ds.cross_entropy %x, %t ignore_index -100 : (tensor<8x3xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
  return %loss : tensor<f32>
}

// -----

// A constant that counts is nothing that the host knows.
// CHECK-NOT: ds.indices
// CHECK-LABEL: @padded_with_zero
func.func @padded_with_zero(%x: tensor<10x3xf32>, %y: tensor<2x4xi64> {ds.input = "y"}) -> tensor<f32> {
  %zero = ds.constant dense<0> : tensor<2x1xi64>
  %p = ds.concat %y, %zero dim 1 : tensor<2x4xi64>, tensor<2x1xi64> -> tensor<2x5xi64>
  %t = ds.reshape %p : tensor<2x5xi64> -> tensor<10xi64>
  %loss, %lse, %count = ds.cross_entropy %x, %t ignore_index -100 : (tensor<10x3xf32>, tensor<10xi64>) -> (tensor<f32>, tensor<10xf32>, tensor<f32>)
  return %loss : tensor<f32>
}

// -----

// Two losses, of a transposed piece and of a strided one: 1 and 3 of each of the two rows, and 6 and 7 of 8.
// CHECK: module attributes {ds.indices = [#ds.indices<"y" below 3 ignore 0 targets[1, 1, 3, 1, 5, 3]>]}
func.func @pieces(%x: tensor<8x3xf32>, %y: tensor<2x2x4xi64> {ds.input = "y"}) -> tensor<f32> {
  %odd = ds.slice %y offsets [0, 0, 1] strides [1, 1, 2] : tensor<2x2x4xi64> -> tensor<2x2x2xi64>
  %r = ds.reshape %odd : tensor<2x2x2xi64> -> tensor<8xi64>
  %a, %lse, %count = ds.cross_entropy %x, %r ignore_index 0 : (tensor<8x3xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
  %h:2 = ds.split %y dim 2 : tensor<2x2x4xi64> -> tensor<2x2x2xi64>, tensor<2x2x2xi64>
  %l:2 = ds.split %h#1 dim 1 : tensor<2x2x2xi64> -> tensor<2x1x2xi64>, tensor<2x1x2xi64>
  %m = ds.transpose %l#1 perm [2, 1, 0] : tensor<2x1x2xi64> -> tensor<2x1x2xi64>
  %s = ds.reshape %m : tensor<2x1x2xi64> -> tensor<4xi64>
  %four = ds.slice %x offsets [0, 0] strides [1, 1] : tensor<8x3xf32> -> tensor<4x3xf32>
  %b, %lse2, %count2 = ds.cross_entropy %four, %s ignore_index 0 : (tensor<4x3xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %loss = ds.add %a, %b : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Other elements of each sample: the last of the first, the first of the second.
// CHECK-NOT: ds.indices
// CHECK-LABEL: @of_some_samples
func.func @of_some_samples(%x: tensor<2x3xf32>, %y: tensor<2x4xi64> {ds.input = "y"}) -> tensor<f32> {
  %flat = ds.reshape %y : tensor<2x4xi64> -> tensor<8xi64>
  %t = ds.slice %flat offsets [3] strides [1] : tensor<8xi64> -> tensor<2xi64>
  %loss, %lse, %count = ds.cross_entropy %x, %t ignore_index -100 : (tensor<2x3xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<2xf32>, tensor<f32>)
  return %loss : tensor<f32>
}

// -----

// Computed, of two inputs, and ignoring two values.
// CHECK-NOT: ds.indices
// CHECK-LABEL: @computed
func.func @computed(%x: tensor<4x3xf32>, %y: tensor<4xi64> {ds.input = "y"}) -> tensor<f32> {
  %t = ds.add %y, %y : tensor<4xi64>
  %loss, %lse, %count = ds.cross_entropy %x, %t ignore_index -100 : (tensor<4x3xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  return %loss : tensor<f32>
}

// -----

// CHECK-NOT: ds.indices
// CHECK-LABEL: @two_inputs
func.func @two_inputs(%x: tensor<4x3xf32>, %y: tensor<4xi64> {ds.input = "y"}, %z: tensor<4xi64> {ds.input = "z"}) -> tensor<f32> {
  %a, %lse, %count = ds.cross_entropy %x, %y ignore_index -100 : (tensor<4x3xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %b, %lse2, %count2 = ds.cross_entropy %x, %z ignore_index -100 : (tensor<4x3xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %loss = ds.add %a, %b : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-NOT: ds.indices
// CHECK-LABEL: @two_ignored
func.func @two_ignored(%x: tensor<4x3xf32>, %y: tensor<4xi64> {ds.input = "y"}) -> tensor<f32> {
  %a, %lse, %count = ds.cross_entropy %x, %y ignore_index -100 : (tensor<4x3xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %b, %lse2, %count2 = ds.cross_entropy %x, %y ignore_index 0 : (tensor<4x3xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %loss = ds.add %a, %b : tensor<f32>
  return %loss : tensor<f32>
}
