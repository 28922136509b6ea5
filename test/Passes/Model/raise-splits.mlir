// RUN: ds-opt %s --split-input-file --canonicalize --cse --ds-raise-splits --canonicalize | FileCheck %s

// Pieces in any order, which are all of the columns.

// CHECK-LABEL: @pieces
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
// CHECK-NEXT: %[[P:.*]]:3 = ds.split %[[X]] dim 1 : tensor<4x8xf32> -> tensor<4x4xf32>, tensor<4x1xf32>, tensor<4x3xf32>
// CHECK-NEXT: return %[[P]]#1, %[[P]]#0, %[[P]]#2
func.func @pieces(%x: tensor<4x8xf32>) -> (tensor<4x1xf32>, tensor<4x4xf32>, tensor<4x3xf32>) {
  %b = ds.slice %x offsets [0, 4] strides [1, 1] : tensor<4x8xf32> -> tensor<4x1xf32>
  %a = ds.slice %x offsets [0, 0] strides [1, 1] : tensor<4x8xf32> -> tensor<4x4xf32>
  %c = ds.slice %x offsets [0, 5] strides [1, 1] : tensor<4x8xf32> -> tensor<4x3xf32>
  return %b, %a, %c : tensor<4x1xf32>, tensor<4x4xf32>, tensor<4x3xf32>
}

// -----

// Neighbours: every second element, from each of the first two.

// CHECK-LABEL: @neighbours
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
// CHECK-NEXT: %[[R:.*]] = ds.reshape %[[X]] : tensor<4x8xf32> -> tensor<4x4x2xf32>
// CHECK-NEXT: %[[P:.*]]:2 = ds.split %[[R]] dim 2 : tensor<4x4x2xf32> -> tensor<4x4x1xf32>, tensor<4x4x1xf32>
// CHECK-NEXT: %[[A:.*]] = ds.reshape %[[P]]#0
// CHECK-NEXT: %[[B:.*]] = ds.reshape %[[P]]#1
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @neighbours(%x: tensor<4x8xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %a = ds.slice %x offsets [0, 0] strides [1, 2] : tensor<4x8xf32> -> tensor<4x4xf32>
  %b = ds.slice %x offsets [0, 1] strides [1, 2] : tensor<4x8xf32> -> tensor<4x4xf32>
  return %a, %b : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Two elements are pieces and neighbours alike.

// CHECK-LABEL: @two
// CHECK: ds.split %{{.*}} dim 1 : tensor<4x2xf32> -> tensor<4x1xf32>, tensor<4x1xf32>
// CHECK-NOT: ds.slice
func.func @two(%x: tensor<4x2xf32>) -> (tensor<4x1xf32>, tensor<4x1xf32>) {
  %a = ds.slice %x offsets [0, 0] strides [1, 2] : tensor<4x2xf32> -> tensor<4x1xf32>
  %b = ds.slice %x offsets [0, 1] strides [1, 2] : tensor<4x2xf32> -> tensor<4x1xf32>
  return %a, %b : tensor<4x1xf32>, tensor<4x1xf32>
}

// -----

// As a fused projection of groups of heads is indexed: queries, one key and one value of each, of which the heads were
// unfolded first. The columns are cut, and a piece of a piece as well.

// CHECK-LABEL: @heads
// CHECK-SAME: %[[X:.*]]: tensor<2x5x32xf32>
// CHECK-NEXT: %[[R:.*]] = ds.reshape %[[X]] : tensor<2x5x32xf32> -> tensor<2x5x2x16xf32>
// CHECK-NEXT: %[[P:.*]]:3 = ds.split %[[R]] dim 3 : tensor<2x5x2x16xf32> -> tensor<2x5x2x8xf32>, tensor<2x5x2x4xf32>, tensor<2x5x2x4xf32>
// CHECK-NEXT: %[[Q:.*]] = ds.reshape %[[P]]#0 : tensor<2x5x2x8xf32> -> tensor<2x5x2x2x4xf32>
// CHECK-NEXT: %[[H:.*]]:2 = ds.split %[[Q]] dim 4
// CHECK-NEXT: return %[[P]]#1, %[[P]]#2, %[[H]]#0, %[[H]]#1
func.func @heads(%x: tensor<2x5x32xf32>) -> (tensor<2x5x2x4xf32>, tensor<2x5x2x4xf32>, tensor<2x5x2x2x2xf32>, tensor<2x5x2x2x2xf32>) {
  %r = ds.reshape %x : tensor<2x5x32xf32> -> tensor<2x5x2x4x4xf32>
  %q = ds.slice %r offsets [0, 0, 0, 0, 0] strides [1, 1, 1, 1, 1] : tensor<2x5x2x4x4xf32> -> tensor<2x5x2x2x4xf32>
  %k1 = ds.slice %r offsets [0, 0, 0, 2, 0] strides [1, 1, 1, 1, 1] : tensor<2x5x2x4x4xf32> -> tensor<2x5x2x1x4xf32>
  %k = ds.reshape %k1 : tensor<2x5x2x1x4xf32> -> tensor<2x5x2x4xf32>
  %v1 = ds.slice %r offsets [0, 0, 0, 3, 0] strides [1, 1, 1, 1, 1] : tensor<2x5x2x4x4xf32> -> tensor<2x5x2x1x4xf32>
  %v = ds.reshape %v1 : tensor<2x5x2x1x4xf32> -> tensor<2x5x2x4xf32>
  %a = ds.slice %q offsets [0, 0, 0, 0, 0] strides [1, 1, 1, 1, 1] : tensor<2x5x2x2x4xf32> -> tensor<2x5x2x2x2xf32>
  %b = ds.slice %q offsets [0, 0, 0, 0, 2] strides [1, 1, 1, 1, 1] : tensor<2x5x2x2x4xf32> -> tensor<2x5x2x2x2xf32>
  return %k, %v, %a, %b : tensor<2x5x2x4xf32>, tensor<2x5x2x4xf32>, tensor<2x5x2x2x2xf32>, tensor<2x5x2x2x2xf32>
}

// -----

// A gap, an overlap, another stride than there are slices, and a cut of two dimensions: they stay.

// CHECK-LABEL: @stays
// CHECK-NOT: ds.split
func.func @stays(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %z: tensor<4x8xf32>, %w: tensor<4x8xf32>) -> (tensor<4x3xf32>, tensor<4x4xf32>, tensor<4x5xf32>, tensor<4x4xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %a = ds.slice %x offsets [0, 0] strides [1, 1] : tensor<4x8xf32> -> tensor<4x3xf32>
  %b = ds.slice %x offsets [0, 4] strides [1, 1] : tensor<4x8xf32> -> tensor<4x4xf32>
  %c = ds.slice %y offsets [0, 0] strides [1, 1] : tensor<4x8xf32> -> tensor<4x5xf32>
  %d = ds.slice %y offsets [0, 4] strides [1, 1] : tensor<4x8xf32> -> tensor<4x4xf32>
  %e = ds.slice %z offsets [0, 0] strides [1, 4] : tensor<4x8xf32> -> tensor<4x2xf32>
  %f = ds.slice %z offsets [0, 1] strides [1, 4] : tensor<4x8xf32> -> tensor<4x2xf32>
  %g = ds.slice %w offsets [0, 0] strides [1, 1] : tensor<4x8xf32> -> tensor<2x4xf32>
  %h = ds.slice %w offsets [2, 4] strides [1, 1] : tensor<4x8xf32> -> tensor<2x4xf32>
  return %a, %b, %c, %d, %e, %f, %g, %h : tensor<4x3xf32>, tensor<4x4xf32>, tensor<4x5xf32>, tensor<4x4xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}
