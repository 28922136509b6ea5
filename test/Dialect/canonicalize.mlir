// RUN: ds-opt %s --canonicalize --split-input-file | FileCheck %s

//===----------------------------------------------------------------------===//
// What must stay: every fold holds bit for bit
//===----------------------------------------------------------------------===//

// -0.0 + 0.0 = 0.0: the sum is not x.
// CHECK-LABEL: @add_keeps_positive_zero
func.func @add_keeps_positive_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: ds.add
  %zero = ds.constant dense<0.0> : tensor<4xf32>
  %r = ds.add %x, %zero : tensor<4xf32>
  return %r : tensor<4xf32>
}

// -0.0 - -0.0 = 0.0: the difference is not x.
// CHECK-LABEL: @sub_keeps_negative_zero
func.func @sub_keeps_negative_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: ds.sub
  %zero = ds.constant dense<-0.0> : tensor<4xf32>
  %r = ds.sub %x, %zero : tensor<4xf32>
  return %r : tensor<4xf32>
}

// inf * 0.0 and nan * 0.0 are nan.
// CHECK-LABEL: @mul_keeps_zero
func.func @mul_keeps_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: ds.mul
  %zero = ds.constant dense<0.0> : tensor<4xf32>
  %r = ds.mul %x, %zero : tensor<4xf32>
  return %r : tensor<4xf32>
}

// 1 / x is no x.
// CHECK-LABEL: @div_keeps_a_numerator_of_one
func.func @div_keeps_a_numerator_of_one(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: ds.div
  %one = ds.constant dense<1.0> : tensor<4xf32>
  %r = ds.div %one, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}

// 0.0 - x turns 0.0 into 0.0, where -x is -0.0.
// CHECK-LABEL: @sub_keeps_a_minuend_of_zero
func.func @sub_keeps_a_minuend_of_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: ds.sub
  %zero = ds.constant dense<0.0> : tensor<4xf32>
  %r = ds.sub %zero, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}

// sqrt differs from pow at -0.0 and -inf.
// CHECK-LABEL: @pow_keeps_other_exponents
func.func @pow_keeps_other_exponents(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: ds.pow
  %half = ds.constant dense<0.5> : tensor<4xf32>
  %r = ds.pow %x, %half : tensor<4xf32>
  return %r : tensor<4xf32>
}

// f32 -> bf16 -> f32 loses 16 bits; bf16 -> f16 -> bf16 loses range.
// CHECK-LABEL: @convert_keeps_a_narrow_way
func.func @convert_keeps_a_narrow_way(%x: tensor<4xf32>, %y: tensor<4xbf16>) -> (tensor<4xf32>, tensor<4xbf16>) {
  // CHECK-COUNT-4: ds.convert
  %a = ds.convert %x : tensor<4xf32> -> tensor<4xbf16>
  %b = ds.convert %a : tensor<4xbf16> -> tensor<4xf32>
  %c = ds.convert %y : tensor<4xbf16> -> tensor<4xf16>
  %d = ds.convert %c : tensor<4xf16> -> tensor<4xbf16>
  return %b, %d : tensor<4xf32>, tensor<4xbf16>
}

// i64 -> f32 -> i64 rounds beyond 2^24.
// CHECK-LABEL: @convert_keeps_integers_through_floats
func.func @convert_keeps_integers_through_floats(%x: tensor<4xi64>) -> tensor<4xi64> {
  // CHECK-COUNT-2: ds.convert
  %a = ds.convert %x : tensor<4xi64> -> tensor<4xf32>
  %b = ds.convert %a : tensor<4xf32> -> tensor<4xi64>
  return %b : tensor<4xi64>
}

// One lane of the condition is false.
// CHECK-LABEL: @select_keeps_a_mixed_condition
func.func @select_keeps_a_mixed_condition(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK: ds.select
  %c = ds.constant dense<[true, false]> : tensor<2xi1>
  %r = ds.select %c, %a, %b : tensor<2xf32>
  return %r : tensor<2xf32>
}

// The same shape, other elements.
// CHECK-LABEL: @transpose_keeps_a_square
func.func @transpose_keeps_a_square(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK: ds.transpose
  %t = ds.transpose %x perm [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  return %t : tensor<4x4xf32>
}

// The pieces come in another order, along another dimension, or not all.
// CHECK-LABEL: @concat_keeps_other_pieces
func.func @concat_keeps_other_pieces(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<8x2xf32>, tensor<4x4xf32>) {
  // CHECK-COUNT-3: ds.concat
  %p:2 = ds.split %x dim 1 : tensor<4x4xf32> -> tensor<4x2xf32>, tensor<4x2xf32>
  %a = ds.concat %p#1, %p#0 dim 1 : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x4xf32>
  %b = ds.concat %p#0, %p#1 dim 0 : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
  %c = ds.concat %p#0, %p#0 dim 1 : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x4xf32>
  return %a, %b, %c : tensor<4x4xf32>, tensor<8x2xf32>, tensor<4x4xf32>
}

// The product is read elsewhere, has a bias, or the addend is no row.
// CHECK-LABEL: @matmul_keeps_other_sums
func.func @matmul_keeps_other_sums(%a: tensor<4x4xf32>, %c: tensor<4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK-COUNT-3: ds.add
  %row = ds.broadcast %c dims [1] : tensor<4xf32> -> tensor<4x4xf32>
  %column = ds.broadcast %c dims [0] : tensor<4xf32> -> tensor<4x4xf32>
  %m = ds.matmul %a, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %r = ds.add %m, %row : tensor<4x4xf32>
  %n = ds.matmul %a, %a bias(%c) : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32> -> tensor<4x4xf32>
  %s = ds.add %n, %row : tensor<4x4xf32>
  %o = ds.matmul %a, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %t = ds.add %o, %column : tensor<4x4xf32>
  return %m, %r, %s, %t : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// The bias would be added before the activation, not after; a sum along 1 is no [4] vector.
// CHECK-LABEL: @matmul_keeps_sums_after_an_activation
func.func @matmul_keeps_sums_after_an_activation(%a: tensor<4x4xf32>, %c: tensor<4xf32>, %d: tensor<1xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK-COUNT-2: ds.add
  %row = ds.broadcast %c dims [1] : tensor<4xf32> -> tensor<4x4xf32>
  %one = ds.broadcast %d dims [1] : tensor<1xf32> -> tensor<4x4xf32>
  %m = ds.matmul %a, %a epilogue(relu) : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %r = ds.add %m, %row : tensor<4x4xf32>
  %n = ds.matmul %a, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %s = ds.add %n, %one : tensor<4x4xf32>
  return %r, %s : tensor<4x4xf32>, tensor<4x4xf32>
}

// A batch dimension moves, or the lhs is a stack of matrices whose rows the rhs sees as one.
// CHECK-LABEL: @matmul_keeps_other_transposes
func.func @matmul_keeps_other_transposes(%a: tensor<2x4x4xf32>, %b: tensor<4x2x4xf32>, %w: tensor<4x4xf32>) -> (tensor<2x4x4xf32>, tensor<2x4x4xf32>) {
  // CHECK-COUNT-2: ds.transpose
  %s = ds.transpose %b perm [1, 0, 2] : tensor<4x2x4xf32> -> tensor<2x4x4xf32>
  %m = ds.matmul %a, %s : tensor<2x4x4xf32>, tensor<2x4x4xf32> -> tensor<2x4x4xf32>
  %t = ds.transpose %a perm [0, 2, 1] : tensor<2x4x4xf32> -> tensor<2x4x4xf32>
  %n = ds.matmul %t, %w : tensor<2x4x4xf32>, tensor<4x4xf32> -> tensor<2x4x4xf32>
  return %m, %n : tensor<2x4x4xf32>, tensor<2x4x4xf32>
}

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

// CHECK-LABEL: @identities_of_floats
func.func @identities_of_floats(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: return %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0
  %negative = ds.constant dense<-0.0> : tensor<4xf32>
  %zero = ds.constant dense<0.0> : tensor<4xf32>
  %one = ds.constant dense<1.0> : tensor<4xf32>
  %scalar = ds.constant dense<1.0> : tensor<f32>
  %repeated = ds.broadcast %scalar dims [] : tensor<f32> -> tensor<4xf32>
  %a = ds.add %x, %negative : tensor<4xf32>
  %b = ds.sub %x, %zero : tensor<4xf32>
  %c = ds.mul %x, %one : tensor<4xf32>
  %d = ds.div %x, %repeated : tensor<4xf32>
  %e = ds.pow %x, %one : tensor<4xf32>
  %m = ds.neg %x : tensor<4xf32>
  %f = ds.neg %m : tensor<4xf32>
  %g = ds.mul %one, %x : tensor<4xf32>
  return %a, %b, %c, %d, %e, %f, %g : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Integers have one zero.
// CHECK-LABEL: @identities_of_integers
func.func @identities_of_integers(%x: tensor<4xi64>) -> (tensor<4xi64>, tensor<4xi64>, tensor<4xi64>) {
  // CHECK-NEXT: return %arg0, %arg0, %arg0
  %zero = ds.constant dense<0> : tensor<4xi64>
  %one = ds.constant dense<1> : tensor<4xi64>
  %a = ds.add %zero, %x : tensor<4xi64>
  %b = ds.sub %x, %zero : tensor<4xi64>
  %c = ds.mul %x, %one : tensor<4xi64>
  return %a, %b, %c : tensor<4xi64>, tensor<4xi64>, tensor<4xi64>
}

// CHECK-LABEL: @square
func.func @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %[[SQUARE:.*]] = ds.mul %arg0, %arg0
  // CHECK-NEXT: return %[[SQUARE]]
  %two = ds.constant dense<2.0> : tensor<4xf32>
  %r = ds.pow %x, %two : tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: @known_selections
func.func @known_selections(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: return %arg0, %arg1, %arg0
  %true = ds.constant dense<true> : tensor<4xi1>
  %false = ds.constant dense<false> : tensor<4xi1>
  %x = ds.select %true, %a, %b : tensor<4xf32>
  %y = ds.select %false, %a, %b : tensor<4xf32>
  %z = ds.select %c, %a, %a : tensor<4xf32>
  return %x, %y, %z : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// bf16 -> f32 -> bf16 and i32 -> i64 -> i32 lose nothing; f32 -> f32 does nothing.
// CHECK-LABEL: @conversions_that_lose_nothing
func.func @conversions_that_lose_nothing(%x: tensor<4xbf16>, %y: tensor<4xi32>, %z: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xi32>, tensor<4xf32>) {
  // CHECK-NEXT: return %arg0, %arg1, %arg2
  %a = ds.convert %x : tensor<4xbf16> -> tensor<4xf32>
  %b = ds.convert %a : tensor<4xf32> -> tensor<4xbf16>
  %c = ds.convert %y : tensor<4xi32> -> tensor<4xi64>
  %d = ds.convert %c : tensor<4xi64> -> tensor<4xi32>
  %e = ds.convert %z : tensor<4xf32> -> tensor<4xf32>
  return %b, %d, %e : tensor<4xbf16>, tensor<4xi32>, tensor<4xf32>
}

// CHECK-LABEL: @shapes_that_change_nothing
func.func @shapes_that_change_nothing(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: return %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0
  %a = ds.broadcast %x dims [0, 1] : tensor<4x8xf32> -> tensor<4x8xf32>
  %b = ds.reshape %x : tensor<4x8xf32> -> tensor<4x8xf32>
  %c = ds.transpose %x perm [0, 1] : tensor<4x8xf32> -> tensor<4x8xf32>
  %d = ds.slice %x offsets [0, 0] strides [1, 1] : tensor<4x8xf32> -> tensor<4x8xf32>
  %e = ds.concat %x dim 0 : tensor<4x8xf32> -> tensor<4x8xf32>
  %f = ds.reduce sum %x dims [] : tensor<4x8xf32> -> tensor<4x8xf32>
  %p:2 = ds.split %x dim 1 : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x6xf32>
  %g = ds.concat %p#0, %p#1 dim 1 : tensor<4x2xf32>, tensor<4x6xf32> -> tensor<4x8xf32>
  return %a, %b, %c, %d, %e, %f, %g : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// Dimension 0 of x goes to 1 of the middle, and that to 2 of the result.
// CHECK-LABEL: @broadcast_of_a_broadcast
func.func @broadcast_of_a_broadcast(%x: tensor<8xf32>) -> tensor<2x4x8xf32> {
  // CHECK-NEXT: ds.broadcast %arg0 dims [2] : tensor<8xf32> -> tensor<2x4x8xf32>
  %a = ds.broadcast %x dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %b = ds.broadcast %a dims [1, 2] : tensor<4x8xf32> -> tensor<2x4x8xf32>
  return %b : tensor<2x4x8xf32>
}

// CHECK-LABEL: @broadcast_and_reshape_of_constants
func.func @broadcast_and_reshape_of_constants() -> (tensor<4x8xf32>, tensor<2x2xi64>) {
  // CHECK-DAG: ds.constant dense<2.000000e+00> : tensor<4x8xf32>
  // CHECK-DAG: ds.constant dense<{{\[}}[1, 2], [3, 4]]> : tensor<2x2xi64>
  // CHECK-NOT: ds.broadcast
  // CHECK-NOT: ds.reshape
  // CHECK: return
  %s = ds.constant dense<2.0> : tensor<f32>
  %a = ds.broadcast %s dims [] : tensor<f32> -> tensor<4x8xf32>
  %v = ds.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %b = ds.reshape %v : tensor<4xi64> -> tensor<2x2xi64>
  return %a, %b : tensor<4x8xf32>, tensor<2x2xi64>
}

// CHECK-LABEL: @reshape_of_a_reshape
func.func @reshape_of_a_reshape(%x: tensor<4x8xf32>) -> tensor<2x16xf32> {
  // CHECK-NEXT: ds.reshape %arg0 : tensor<4x8xf32> -> tensor<2x16xf32>
  %a = ds.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %b = ds.reshape %a : tensor<32xf32> -> tensor<2x16xf32>
  return %b : tensor<2x16xf32>
}

// Result dimension 0 is dimension 2 of %a, which is dimension 0 of x; 1 is 0, which is 1; 2 is 1, which is 2.
// CHECK-LABEL: @transpose_of_a_transpose
func.func @transpose_of_a_transpose(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4x3x2xf32>) {
  // CHECK-NEXT: %[[T:.*]] = ds.transpose %arg0 perm [2, 1, 0] : tensor<2x3x4xf32> -> tensor<4x3x2xf32>
  // CHECK-NEXT: return %arg0, %[[T]]
  %a = ds.transpose %x perm [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %b = ds.transpose %a perm [2, 0, 1] : tensor<3x4x2xf32> -> tensor<2x3x4xf32>
  %c = ds.transpose %a perm [1, 0, 2] : tensor<3x4x2xf32> -> tensor<4x3x2xf32>
  return %b, %c : tensor<2x3x4xf32>, tensor<4x3x2xf32>
}

// CHECK-LABEL: @matmul_takes_transposes_and_bias
func.func @matmul_takes_transposes_and_bias(%a: tensor<8x4xf32>, %b: tensor<6x8xf32>, %c: tensor<6xf32>) -> tensor<4x6xf32> {
  // CHECK-NEXT: ds.matmul %arg0, %arg1 bias(%arg2) transpose_lhs transpose_rhs : tensor<8x4xf32>, tensor<6x8xf32>, tensor<6xf32> -> tensor<4x6xf32>
  %s = ds.transpose %a perm [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
  %t = ds.transpose %b perm [1, 0] : tensor<6x8xf32> -> tensor<8x6xf32>
  %m = ds.matmul %s, %t : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %row = ds.broadcast %c dims [1] : tensor<6xf32> -> tensor<4x6xf32>
  %r = ds.add %row, %m : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// A flag that is set already goes; leading dimensions stay.
// CHECK-LABEL: @matmul_takes_a_second_transpose
func.func @matmul_takes_a_second_transpose(%a: tensor<2x4x8xf32>, %b: tensor<2x8x6xf32>) -> tensor<2x4x6xf32> {
  // CHECK-NEXT: ds.matmul %arg0, %arg1 : tensor<2x4x8xf32>, tensor<2x8x6xf32> -> tensor<2x4x6xf32>
  %t = ds.transpose %b perm [0, 2, 1] : tensor<2x8x6xf32> -> tensor<2x6x8xf32>
  %m = ds.matmul %a, %t transpose_rhs : tensor<2x4x8xf32>, tensor<2x6x8xf32> -> tensor<2x4x6xf32>
  return %m : tensor<2x4x6xf32>
}
