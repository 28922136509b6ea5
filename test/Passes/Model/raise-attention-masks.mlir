// RUN: ds-opt %s --split-input-file --canonicalize --cse --ds-raise-attention --canonicalize --cse | FileCheck %s

// Masks that are sums, that belong to attention that is one op, and of batch and heads in one dimension.

// Two samples of three heads in one dimension: one slope for each head, repeated for each sample.

// CHECK-LABEL: @folded
// CHECK-SAME: %[[SLOPES:[a-z0-9]+]]: tensor<3xf32>
// CHECK: ds.attention {{.*}} slopes(%[[SLOPES]]) causal scale 1.000000e+00 : (tensor<2x4x3x8xf32>
// CHECK-NOT: ds.softmax
func.func @folded(%q0: tensor<2x4x3x8xf32>, %slopes: tensor<3xf32>) -> tensor<2x4x3x8xf32> {
  %qt = ds.transpose %q0 perm [0, 2, 1, 3] : tensor<2x4x3x8xf32> -> tensor<2x3x4x8xf32>
  %q = ds.reshape %qt : tensor<2x3x4x8xf32> -> tensor<6x4x8xf32>
  %s = ds.matmul %q, %q transpose_rhs : tensor<6x4x8xf32>, tensor<6x4x8xf32> -> tensor<6x4x4xf32>
  %key = ds.iota dim 3 start 0 step 1 : tensor<2x3x1x4xf32>
  %each = ds.broadcast %slopes dims [1] : tensor<3xf32> -> tensor<2x3x1x4xf32>
  %bias = ds.mul %each, %key : tensor<2x3x1x4xf32>
  %flat = ds.reshape %bias : tensor<2x3x1x4xf32> -> tensor<6x1x4xf32>
  %biases = ds.broadcast %flat dims [0, 1, 2] : tensor<6x1x4xf32> -> tensor<6x4x4xf32>
  %sum = ds.add %s, %biases : tensor<6x4x4xf32>
  %row = ds.iota dim 0 start 0 step 1 : tensor<4x4xi64>
  %column = ds.iota dim 1 start 0 step 1 : tensor<4x4xi64>
  %past = ds.compare le %column, %row : tensor<4x4xi64>
  %seen = ds.broadcast %past dims [1, 2] : tensor<4x4xi1> -> tensor<6x4x4xi1>
  %fill = ds.constant dense<0xFF800000> : tensor<6x4x4xf32>
  %m = ds.select %seen, %sum, %fill : tensor<6x4x4xf32>
  %p = ds.softmax %m dim 2 : tensor<6x4x4xf32>
  %o = ds.matmul %p, %q : tensor<6x4x4xf32>, tensor<6x4x8xf32> -> tensor<6x4x8xf32>
  %u = ds.reshape %o : tensor<6x4x8xf32> -> tensor<2x3x4x8xf32>
  %t = ds.transpose %u perm [0, 2, 1, 3] : tensor<2x3x4x8xf32> -> tensor<2x4x3x8xf32>
  return %t : tensor<2x4x3x8xf32>
}

// -----

// A slope for each of samples and heads is none for each head: it stays an addend.

// CHECK-LABEL: @of_samples
// CHECK: ds.attention {{.*}} mask({{.*}}) scale 1.000000e+00 : (tensor<2x4x3x8xf32>
func.func @of_samples(%q0: tensor<2x4x3x8xf32>, %slopes: tensor<6xf32>) -> tensor<2x4x3x8xf32> {
  %qt = ds.transpose %q0 perm [0, 2, 1, 3] : tensor<2x4x3x8xf32> -> tensor<2x3x4x8xf32>
  %q = ds.reshape %qt : tensor<2x3x4x8xf32> -> tensor<6x4x8xf32>
  %s = ds.matmul %q, %q transpose_rhs : tensor<6x4x8xf32>, tensor<6x4x8xf32> -> tensor<6x4x4xf32>
  %key = ds.iota dim 2 start 0 step 1 : tensor<6x4x4xf32>
  %each = ds.broadcast %slopes dims [0] : tensor<6xf32> -> tensor<6x4x4xf32>
  %bias = ds.mul %each, %key : tensor<6x4x4xf32>
  %sum = ds.add %s, %bias : tensor<6x4x4xf32>
  %p = ds.softmax %sum dim 2 : tensor<6x4x4xf32>
  %o = ds.matmul %p, %q : tensor<6x4x4xf32>, tensor<6x4x8xf32> -> tensor<6x4x8xf32>
  %u = ds.reshape %o : tensor<6x4x8xf32> -> tensor<2x3x4x8xf32>
  %t = ds.transpose %u perm [0, 2, 1, 3] : tensor<2x3x4x8xf32> -> tensor<2x4x3x8xf32>
  return %t : tensor<2x4x3x8xf32>
}

// -----

// The mask of one op is a sum of slopes times -|t - s|, a window and what hides the future.

// CHECK-LABEL: @sum
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x3x8xf32>, %[[SLOPES:.*]]: tensor<3xf32>
// CHECK-NEXT: ds.attention %[[Q]], %[[Q]], %[[Q]] slopes(%[[SLOPES]]) causal window 2 scale 5.000000e-01 :
// CHECK-NEXT: return
func.func @sum(%q: tensor<2x4x3x8xf32>, %slopes: tensor<3xf32>) -> tensor<2x4x3x8xf32> {
  %row = ds.iota dim 0 start 0 step 1 : tensor<4x4xi64>
  %column = ds.iota dim 1 start 0 step 1 : tensor<4x4xi64>
  %past = ds.compare le %column, %row : tensor<4x4xi64>
  %behind = ds.sub %row, %column : tensor<4x4xi64>
  %two = ds.constant dense<2> : tensor<4x4xi64>
  %distance = ds.abs %behind : tensor<4x4xi64>
  %near = ds.compare lt %distance, %two : tensor<4x4xi64>
  %zero = ds.constant dense<0.0> : tensor<4x4xf32>
  %low = ds.constant dense<0xFF800000> : tensor<4x4xf32>
  %causal = ds.select %past, %zero, %low : tensor<4x4xf32>
  %window = ds.select %near, %zero, %low : tensor<4x4xf32>
  %hides = ds.add %causal, %window : tensor<4x4xf32>
  %minus = ds.neg %distance : tensor<4x4xi64>
  %float = ds.convert %minus : tensor<4x4xi64> -> tensor<4x4xf32>
  %distances = ds.broadcast %float dims [1, 2] : tensor<4x4xf32> -> tensor<3x4x4xf32>
  %each = ds.broadcast %slopes dims [0] : tensor<3xf32> -> tensor<3x4x4xf32>
  %bias = ds.mul %distances, %each : tensor<3x4x4xf32>
  %hidden = ds.broadcast %hides dims [1, 2] : tensor<4x4xf32> -> tensor<3x4x4xf32>
  %all = ds.add %bias, %hidden : tensor<3x4x4xf32>
  %mask = ds.reshape %all : tensor<3x4x4xf32> -> tensor<1x3x4x4xf32>
  %o, %lse = ds.attention %q, %q, %q mask(%mask) scale 0.5 : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<1x3x4x4xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x3x4xf32>)
  return %o : tensor<2x4x3x8xf32>
}

// -----

// An addend that the caller gives stays, and all of the mask with it.

// CHECK-LABEL: @given
// CHECK: ds.attention {{.*}} mask({{.*}}) scale 5.000000e-01 :
func.func @given(%q: tensor<2x4x3x8xf32>, %given: tensor<2x1x1x4xf32>) -> tensor<2x4x3x8xf32> {
  %row = ds.iota dim 0 start 0 step 1 : tensor<4x4xi64>
  %column = ds.iota dim 1 start 0 step 1 : tensor<4x4xi64>
  %past = ds.compare le %column, %row : tensor<4x4xi64>
  %zero = ds.constant dense<0.0> : tensor<4x4xf32>
  %low = ds.constant dense<0xFF800000> : tensor<4x4xf32>
  %causal = ds.select %past, %zero, %low : tensor<4x4xf32>
  %causals = ds.broadcast %causal dims [2, 3] : tensor<4x4xf32> -> tensor<2x1x4x4xf32>
  %givens = ds.broadcast %given dims [0, 1, 2, 3] : tensor<2x1x1x4xf32> -> tensor<2x1x4x4xf32>
  %mask = ds.add %causals, %givens : tensor<2x1x4x4xf32>
  %o, %lse = ds.attention %q, %q, %q mask(%mask) scale 0.5 : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x1x4x4xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x3x4xf32>)
  return %o : tensor<2x4x3x8xf32>
}

// -----

// Scores that come with slopes and a mask in one addend.

// CHECK-LABEL: @spelled
// CHECK: ds.attention {{.*}} slopes(%arg1) causal scale 1.000000e+00 :
// CHECK-NOT: ds.softmax
func.func @spelled(%q0: tensor<2x4x3x8xf32>, %slopes: tensor<3xf32>) -> tensor<2x4x3x8xf32> {
  %q = ds.transpose %q0 perm [0, 2, 1, 3] : tensor<2x4x3x8xf32> -> tensor<2x3x4x8xf32>
  %s = ds.matmul %q, %q transpose_rhs : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x4xf32>
  %key = ds.iota dim 2 start 0 step 1 : tensor<3x4x4xf32>
  %each = ds.broadcast %slopes dims [0] : tensor<3xf32> -> tensor<3x4x4xf32>
  %bias = ds.mul %each, %key : tensor<3x4x4xf32>
  %row = ds.iota dim 0 start 0 step 1 : tensor<4x4xi64>
  %column = ds.iota dim 1 start 0 step 1 : tensor<4x4xi64>
  %past = ds.compare le %column, %row : tensor<4x4xi64>
  %zero = ds.constant dense<0.0> : tensor<4x4xf32>
  %low = ds.constant dense<-3.4e38> : tensor<4x4xf32>
  %causal = ds.select %past, %zero, %low : tensor<4x4xf32>
  %causals = ds.broadcast %causal dims [1, 2] : tensor<4x4xf32> -> tensor<3x4x4xf32>
  %both = ds.add %bias, %causals : tensor<3x4x4xf32>
  %boths = ds.broadcast %both dims [1, 2, 3] : tensor<3x4x4xf32> -> tensor<2x3x4x4xf32>
  %m = ds.add %s, %boths : tensor<2x3x4x4xf32>
  %p = ds.softmax %m dim 3 : tensor<2x3x4x4xf32>
  %o = ds.matmul %p, %q : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32> -> tensor<2x3x4x8xf32>
  %t = ds.transpose %o perm [0, 2, 1, 3] : tensor<2x3x4x8xf32> -> tensor<2x4x3x8xf32>
  return %t : tensor<2x4x3x8xf32>
}
