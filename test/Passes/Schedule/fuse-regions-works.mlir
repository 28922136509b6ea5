// RUN: ds-opt %s --ds-fuse-regions | FileCheck %s

module attributes {ds.phase = #ds.phase<fused>} {
// E4: one kernel could have it all; but then what forward makes could neither be kept nor recomputed for backward on its own.
// CHECK-LABEL: @keeps_forward_by_itself
// CHECK-NEXT: %[[F:.*]] = ds.fused(%arg0) {ds.work = #ds.work<forward>}
// CHECK-NEXT: ^bb0
// CHECK-NEXT: ds.exp
// CHECK-NEXT: ds.yield
// CHECK-NEXT: }
// CHECK-NEXT: %[[B:.*]] = ds.fused(%[[F]]) {ds.work = #ds.work<backward>}
// CHECK-NEXT: ^bb0
// CHECK-NEXT: ds.mul
// CHECK-NEXT: ds.neg
// CHECK-NEXT: ds.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[B]]
func.func @keeps_forward_by_itself(%x: tensor<64xf32> {ds.input = "x"}) -> tensor<64xf32> attributes {ds.segment = #ds.segment<forward, backward, update>} {
  %e = ds.exp %x {ds.work = #ds.work<forward>} : tensor<64xf32>
  %m = ds.mul %e, %e {ds.work = #ds.work<backward>} : tensor<64xf32>
  %n = ds.neg %m {ds.work = #ds.work<backward>} : tensor<64xf32>
  return %n : tensor<64xf32>
}

// Backward sums columns of what forward makes of x: it reads that, where of what backward makes it has a copy.
// CHECK-LABEL: @sums_columns_of_forward
// CHECK-NEXT: %[[F:.*]] = ds.fused(%arg0) {ds.work = #ds.work<forward>} : (tensor<16x8xf32>) -> tensor<16x8xf32>
// CHECK: ds.exp
// CHECK: %[[B:.*]] = ds.fused(%{{.*}}) {ds.work = #ds.work<backward>} : ({{.*}}) -> tensor<8xf32>
// CHECK-NEXT: ^bb0
// CHECK-NOT: ds.exp
// CHECK: ds.reduce sum
// CHECK: return
func.func @sums_columns_of_forward(%x: tensor<16x8xf32> {ds.input = "x"}) -> (tensor<8xf32>, tensor<16x8xf32>) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  %e = ds.exp %x {ds.work = #ds.work<forward>} : tensor<16x8xf32>
  %m = ds.mul %e, %x {ds.work = #ds.work<backward>} : tensor<16x8xf32>
  %s = ds.reduce sum %m dims [0] {ds.work = #ds.work<backward>} : tensor<16x8xf32> -> tensor<8xf32>
  %n = ds.neg %m {ds.work = #ds.work<backward>} : tensor<16x8xf32>
  return %s, %n : tensor<8xf32>, tensor<16x8xf32>
}

// E6: of one region with results of two layers and of none each says its own. One of a single layer says that.
// CHECK-LABEL: @says_layers
// CHECK-NEXT: ds.fused(%arg0) {ds.layers = [#ds.layer<"h", 1>, #ds.layer<"h", 2>, unit], ds.work = #ds.work<forward>}
// CHECK: ds.fused(%arg1) {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<forward>}
func.func @says_layers(%x: tensor<64xf32> {ds.input = "x"}, %y: tensor<8x4xf32> {ds.input = "y"}) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<8x4xf32>) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  %a = ds.exp %x {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<forward>} : tensor<64xf32>
  %b = ds.neg %a {ds.layer = #ds.layer<"h", 2>, ds.work = #ds.work<forward>} : tensor<64xf32>
  %c = ds.tanh %b {ds.work = #ds.work<forward>} : tensor<64xf32>
  %d = ds.exp %y {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<forward>} : tensor<8x4xf32>
  %e = ds.neg %d {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<forward>} : tensor<8x4xf32>
  return %a, %b, %c, %e : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<8x4xf32>
}
}
