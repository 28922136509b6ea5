// RUN: ds-opt %s --canonicalize | FileCheck %s

// A rectifier after a product becomes the product's activation, unless someone needs the value before it.

// CHECK-LABEL: @other_reader_keeps_the_product
func.func @other_reader_keeps_the_product(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  // CHECK: %[[PRODUCT:.*]] = ds.matmul
  // CHECK-NOT: epilogue
  // CHECK: return %{{.*}}, %[[PRODUCT]]
  %m = ds.matmul %a, %b : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %zero = ds.constant dense<0.0> : tensor<4x6xf32>
  %c = ds.compare le %m, %zero : tensor<4x6xf32>
  %r = ds.select %c, %zero, %m : tensor<4x6xf32>
  return %r, %m : tensor<4x6xf32>, tensor<4x6xf32>
}

// CHECK-LABEL: @other_threshold_stays
func.func @other_threshold_stays(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>) -> tensor<4x6xf32> {
  // CHECK: ds.select
  %m = ds.matmul %a, %b : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %one = ds.constant dense<1.0> : tensor<4x6xf32>
  %zero = ds.constant dense<0.0> : tensor<4x6xf32>
  %c = ds.compare le %m, %one : tensor<4x6xf32>
  %r = ds.select %c, %zero, %m : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// What makes 0 of NaN is not the product's activation, which leaves it.
// CHECK-LABEL: @other_answer_to_nan_stays
func.func @other_answer_to_nan_stays(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>) -> tensor<4x6xf32> {
  // CHECK: ds.select
  %m = ds.matmul %a, %b : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %zero = ds.constant dense<0.0> : tensor<4x6xf32>
  %c = ds.compare gt %m, %zero : tensor<4x6xf32>
  %r = ds.select %c, %m, %zero : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// An accumulator would go on to hold what was cut off, GELU is one epilogue already, and convolutions take none.
// CHECK-LABEL: @other_sums_keep_it_apart
func.func @other_sums_keep_it_apart(%a: tensor<4x8xbf16>, %b: tensor<8x6xbf16>, %sum: tensor<4x6xbf16>, %x: tensor<2x3x8xbf16>, %w: tensor<4x3x3xbf16>) -> (tensor<4x6xbf16>, tensor<4x6xbf16>, tensor<2x4x6xbf16>) {
  // CHECK-NOT: epilogue(relu)
  // CHECK: return
  %zero = ds.constant dense<0.0> : tensor<4x6xbf16>
  %m0 = ds.matmul %a, %b into(%sum) : tensor<4x8xbf16>, tensor<8x6xbf16> into tensor<4x6xbf16> -> tensor<4x6xbf16>
  %c0 = ds.compare le %m0, %zero : tensor<4x6xbf16>
  %r0 = ds.select %c0, %zero, %m0 : tensor<4x6xbf16>
  %m1 = ds.matmul %a, %b epilogue(gelu) : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xbf16>
  %c1 = ds.compare le %m1, %zero : tensor<4x6xbf16>
  %r1 = ds.select %c1, %zero, %m1 : tensor<4x6xbf16>
  %none = ds.constant dense<0.0> : tensor<2x4x6xbf16>
  %m2 = ds.conv %x, %w stride [1] padding [0] dilation [1] groups 1 : tensor<2x3x8xbf16>, tensor<4x3x3xbf16> -> tensor<2x4x6xbf16>
  %c2 = ds.compare le %m2, %none : tensor<2x4x6xbf16>
  %r2 = ds.select %c2, %none, %m2 : tensor<2x4x6xbf16>
  return %r0, %r1, %r2 : tensor<4x6xbf16>, tensor<4x6xbf16>, tensor<2x4x6xbf16>
}

// CHECK-LABEL: @rectifier_joins_the_product
// CHECK-SAME: (%[[A:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<8x6xf32>, %[[BIAS:.*]]: tensor<6xf32>)
func.func @rectifier_joins_the_product(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %bias: tensor<6xf32>) -> tensor<4x6xf32> {
  // CHECK-NEXT: %[[R:.*]] = ds.matmul %[[A]], %[[B]] bias(%[[BIAS]]) epilogue(relu)
  // CHECK-NEXT: return %[[R]]
  %m = ds.matmul %a, %b bias(%bias) : tensor<4x8xf32>, tensor<8x6xf32>, tensor<6xf32> -> tensor<4x6xf32>
  %zero = ds.constant dense<0.0> : tensor<4x6xf32>
  %c = ds.compare le %m, %zero : tensor<4x6xf32>
  %r = ds.select %c, %zero, %m : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
