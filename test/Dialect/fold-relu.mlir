// RUN: ds-opt %s --canonicalize | FileCheck %s

// A rectifier after a product becomes the product's activation, unless someone needs the value before it.

// CHECK-LABEL: @other_reader_keeps_the_product
func.func @other_reader_keeps_the_product(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  // CHECK: %[[PRODUCT:.*]] = ds.matmul
  // CHECK-NOT: relu
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

// CHECK-LABEL: @rectifier_joins_the_product
// CHECK-SAME: (%[[A:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<8x6xf32>, %[[BIAS:.*]]: tensor<6xf32>)
func.func @rectifier_joins_the_product(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %bias: tensor<6xf32>) -> tensor<4x6xf32> {
  // CHECK-NEXT: %[[R:.*]] = ds.matmul %[[A]], %[[B]] bias(%[[BIAS]]) relu
  // CHECK-NEXT: return %[[R]]
  %m = ds.matmul %a, %b bias(%bias) : tensor<4x8xf32>, tensor<8x6xf32>, tensor<6xf32> -> tensor<4x6xf32>
  %zero = ds.constant dense<0.0> : tensor<4x6xf32>
  %c = ds.compare le %m, %zero : tensor<4x6xf32>
  %r = ds.select %c, %zero, %m : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
