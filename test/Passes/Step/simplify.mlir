// RUN: ds-opt %s --ds-simplify | FileCheck %s

// What takes the place of an op is of its work and layer.
// CHECK-LABEL: @replaced
// CHECK: ds.transpose %arg0 perm [0, 2, 1] {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<backward>}
func.func @replaced(%x: tensor<2x3x4xf32>) -> tensor<2x4x3xf32> {
  %a = ds.transpose %x perm [1, 0, 2] {ds.layer = #ds.layer<"h", 0>, ds.work = #ds.work<forward>} : tensor<2x3x4xf32> -> tensor<3x2x4xf32>
  %b = ds.transpose %a perm [1, 2, 0] {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<backward>} : tensor<3x2x4xf32> -> tensor<2x4x3xf32>
  return %b : tensor<2x4x3xf32>
}

// Of two equal ops one is left, and it is forward's where forward reads it.
// CHECK-LABEL: @merged
// CHECK: %[[E:.*]] = ds.exp %arg0 {ds.layer = #ds.layer<"h", 0>, ds.work = #ds.work<forward>}
// CHECK-NOT: ds.exp
// CHECK: ds.mul %[[E]], %[[E]] {ds.work = #ds.work<backward>}
// CHECK: ds.neg %[[E]] {ds.work = #ds.work<forward>}
func.func @merged(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %late = ds.exp %x {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<backward>} : tensor<4xf32>
  %square = ds.mul %late, %late {ds.work = #ds.work<backward>} : tensor<4xf32>
  %early = ds.exp %x {ds.layer = #ds.layer<"h", 0>, ds.work = #ds.work<forward>} : tensor<4xf32>
  %minus = ds.neg %early {ds.work = #ds.work<forward>} : tensor<4xf32>
  return %square, %minus : tensor<4xf32>, tensor<4xf32>
}
