// RUN: ds-opt %s --ds-raise-loss-cap --canonicalize | FileCheck %s

// Cases that stay: capped logits that are returned too; other functions; a loss that has a cap.

// CHECK-LABEL: @stays
// CHECK-NOT: cap
// CHECK: return
func.func @stays(%x: tensor<8x100xf32>, %t: tensor<8xi64>) -> (tensor<f32>, tensor<8x100xf32>, tensor<f32>) {
  %thirty = ds.constant dense<30.0> : tensor<8x100xf32>
  %d = ds.div %x, %thirty : tensor<8x100xf32>
  %b = ds.tanh %d : tensor<8x100xf32>
  %y = ds.mul %b, %thirty : tensor<8x100xf32>
  %l0, %s0, %n0 = ds.cross_entropy %y, %t ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
  %g = ds.sigmoid %d : tensor<8x100xf32>
  %z = ds.mul %g, %thirty : tensor<8x100xf32>
  %l1, %s1, %n1 = ds.cross_entropy %z, %t ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
  return %l0, %y, %l1 : tensor<f32>, tensor<8x100xf32>, tensor<f32>
}

// CHECK-LABEL: @has_a_cap
// CHECK: ds.tanh
// CHECK: cap 2.000000e+00
func.func @has_a_cap(%x: tensor<8x100xf32>, %t: tensor<8xi64>) -> tensor<f32> {
  %b = ds.tanh %x : tensor<8x100xf32>
  %l, %s, %n = ds.cross_entropy %b, %t ignore_index -100 cap 2.0 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
  return %l : tensor<f32>
}

// The usual spelling: the labels are shifted behind the cap. The slice moves to the logits.

// CHECK-LABEL: @shifted
// CHECK-SAME: %[[X:.*]]: tensor<2x5x100xf32>
// CHECK-NOT: ds.tanh
// CHECK: %[[S:.*]] = ds.slice %[[X]] offsets [0, 0, 0]
// CHECK: %[[R:.*]] = ds.reshape %[[S]] : tensor<2x4x100xf32> -> tensor<8x100xf32>
// CHECK: ds.cross_entropy %[[R]], %{{.*}} ignore_index -100 cap 3.000000e+01 :
func.func @shifted(%x: tensor<2x5x100xf32>, %t: tensor<8xi64>) -> tensor<f32> {
  %thirty = ds.constant dense<30.0> : tensor<2x5x100xf32>
  %d = ds.div %x, %thirty : tensor<2x5x100xf32>
  %b = ds.tanh %d : tensor<2x5x100xf32>
  %y = ds.mul %b, %thirty : tensor<2x5x100xf32>
  %s = ds.slice %y offsets [0, 0, 0] strides [1, 1, 1] : tensor<2x5x100xf32> -> tensor<2x4x100xf32>
  %r = ds.reshape %s : tensor<2x4x100xf32> -> tensor<8x100xf32>
  %l, %e, %n = ds.cross_entropy %r, %t ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
  return %l : tensor<f32>
}

// 4 * tanh(-x) is a cap of 4 on -4 x. A factor that is 1 but for the rounding of 1 / 3 in f32 is none.

// CHECK-LABEL: @factors
// CHECK-SAME: %[[X:.*]]: tensor<8x100xf32>, %[[Z:.*]]: tensor<8x100xf32>
// CHECK: %[[FACTOR:.*]] = ds.constant dense<-4.000000e+00>
// CHECK: %[[SCALED:.*]] = ds.mul %[[X]], %[[FACTOR]]
// CHECK: ds.cross_entropy %[[SCALED]], %{{.*}} ignore_index -100 cap 4.000000e+00 :
// CHECK: ds.cross_entropy %[[Z]], %{{.*}} ignore_index -100 cap 3.000000e+00 :
func.func @factors(%x: tensor<8x100xf32>, %z: tensor<8x100xf32>, %t: tensor<8xi64>) -> (tensor<f32>, tensor<f32>) {
  %minus = ds.constant dense<-1.0> : tensor<8x100xf32>
  %four = ds.constant dense<4.0> : tensor<8x100xf32>
  %m = ds.mul %x, %minus : tensor<8x100xf32>
  %b = ds.tanh %m : tensor<8x100xf32>
  %y = ds.mul %b, %four : tensor<8x100xf32>
  %l0, %s0, %n0 = ds.cross_entropy %y, %t ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
  %third = ds.constant dense<0.333333343> : tensor<8x100xf32>
  %three = ds.constant dense<3.0> : tensor<8x100xf32>
  %d = ds.mul %z, %third : tensor<8x100xf32>
  %c = ds.tanh %d : tensor<8x100xf32>
  %w = ds.mul %c, %three : tensor<8x100xf32>
  %l1, %s1, %n1 = ds.cross_entropy %w, %t ignore_index -100 : (tensor<8x100xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>, tensor<f32>)
  return %l0, %l1 : tensor<f32>, tensor<f32>
}
