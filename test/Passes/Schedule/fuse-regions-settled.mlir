// RUN: ds-opt %s --ds-fuse-regions | FileCheck %s
// What was fused before what is kept was chosen stays so: only what is recomputed still looks for its region.
// A second time changes nothing.
// RUN: ds-opt %s --ds-fuse-regions -o %t.once && ds-opt %t.once --ds-fuse-regions | diff %t.once -

module attributes {ds.phase = #ds.phase<resident>} {
// E5: regions that could be one, and an op that could join either, were told apart for a reason.
// CHECK-LABEL: @leaves_two_regions_apart
// CHECK-NEXT: %[[E:.*]] = ds.fused(%arg0) {ds.work = #ds.work<backward>}
// CHECK-NEXT: ^bb0
// CHECK-NEXT: ds.exp
// CHECK-NEXT: ds.yield
// CHECK-NEXT: }
// CHECK-NEXT: %[[N:.*]] = ds.fused(%[[E]]) {ds.work = #ds.work<backward>}
// CHECK-NEXT: ^bb0
// CHECK-NEXT: ds.neg
// CHECK-NEXT: ds.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[N]]
func.func @leaves_two_regions_apart(%x: tensor<64xf32> {ds.input = "x"}) -> tensor<64xf32> attributes {ds.segment = #ds.segment<forward, backward>} {
  %e = ds.fused(%x) {ds.work = #ds.work<backward>} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<64xf32>):
    %q = ds.exp %a : tensor<64xf32>
    ds.yield %q : tensor<64xf32>
  }
  %n = ds.fused(%e) {ds.work = #ds.work<backward>} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<64xf32>):
    %q = ds.neg %a : tensor<64xf32>
    ds.yield %q : tensor<64xf32>
  }
  return %n : tensor<64xf32>
}

// E2: a chain that is recomputed for one region is part of it, with what it reads as the region's operands, and lets it run as early
// as what is recomputed may.
// CHECK-LABEL: @gives_what_is_recomputed_to_its_reader
// CHECK-NEXT: %[[H:.*]] = ds.fused(%arg0) {ds.work = #ds.work<forward>}
// CHECK: ds.neg
// CHECK-NEXT: ds.yield
// CHECK-NEXT: }
// CHECK-NEXT: %[[G:.*]] = ds.fused(%[[H]], %arg1) {ds.work = #ds.work<recompute>}
// CHECK-NEXT: ^bb0
// CHECK-NEXT: ds.exp
// CHECK-NEXT: ds.tanh
// CHECK-NEXT: ds.mul
// CHECK-NEXT: ds.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[G]], %[[H]]
func.func @gives_what_is_recomputed_to_its_reader(%x: tensor<64xf32> {ds.input = "x"}, %d: tensor<64xf32> {ds.input = "d"}) -> (tensor<64xf32>, tensor<64xf32>) attributes {ds.segment = #ds.segment<forward, backward>} {
  %h = ds.fused(%x) {ds.work = #ds.work<forward>} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<64xf32>):
    %q = ds.neg %a : tensor<64xf32>
    ds.yield %q : tensor<64xf32>
  }
  %e = ds.exp %h {ds.work = #ds.work<recompute>} : tensor<64xf32>
  %t = ds.tanh %e {ds.work = #ds.work<recompute>} : tensor<64xf32>
  %g = ds.fused(%d, %t) {ds.work = #ds.work<backward>} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: tensor<64xf32>, %b: tensor<64xf32>):
    %q = ds.mul %a, %b : tensor<64xf32>
    ds.yield %q : tensor<64xf32>
  }
  return %g, %h : tensor<64xf32>, tensor<64xf32>
}

// A call reads what is recomputed: it is a kernel of its own, and not part of that which made its operand.
// CHECK-LABEL: @recomputes_for_a_call
// CHECK-NEXT: %[[H:.*]] = ds.fused(%arg0) {ds.work = #ds.work<forward>}
// CHECK-NEXT: ^bb0
// CHECK-NEXT: ds.neg
// CHECK-NEXT: ds.yield
// CHECK-NEXT: }
// CHECK-NEXT: %[[E:.*]] = ds.fused(%[[H]]) {ds.work = #ds.work<recompute>}
// CHECK-NEXT: ^bb0
// CHECK-NEXT: ds.exp
// CHECK-NEXT: ds.yield
// CHECK-NEXT: }
// CHECK-NEXT: ds.matmul %[[E]]
func.func @recomputes_for_a_call(%x: tensor<8x8xf32> {ds.input = "x"}) -> tensor<8x8xf32> attributes {ds.segment = #ds.segment<forward, backward>} {
  %h = ds.fused(%x) {ds.work = #ds.work<forward>} : (tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a: tensor<8x8xf32>):
    %q = ds.neg %a : tensor<8x8xf32>
    ds.yield %q : tensor<8x8xf32>
  }
  %e = ds.exp %h {ds.work = #ds.work<recompute>} : tensor<8x8xf32>
  %m = ds.matmul %e, %x {ds.work = #ds.work<backward>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %m : tensor<8x8xf32>
}

// What is recomputed for a sum of columns alone is part of that.
// CHECK-LABEL: @gives_what_is_recomputed_to_sums_of_columns
// CHECK-NEXT: ds.fused(%arg0) {ds.work = #ds.work<recompute>} : (tensor<16x8xf32>) -> tensor<8xf32>
// CHECK-NEXT: ^bb0
// CHECK-NEXT: ds.exp
// CHECK-NEXT: ds.tanh
// CHECK-NEXT: ds.neg
// CHECK-NEXT: ds.reduce sum
// CHECK-NEXT: ds.yield
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @gives_what_is_recomputed_to_sums_of_columns(%x: tensor<16x8xf32> {ds.input = "x"}) -> tensor<8xf32> attributes {ds.segment = #ds.segment<forward, backward>} {
  %e = ds.exp %x {ds.work = #ds.work<recompute>} : tensor<16x8xf32>
  %t = ds.tanh %e {ds.work = #ds.work<recompute>} : tensor<16x8xf32>
  %s = ds.fused(%t) {ds.work = #ds.work<backward>} : (tensor<16x8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<16x8xf32>):
    %n = ds.neg %a : tensor<16x8xf32>
    %q = ds.reduce sum %n dims [0] : tensor<16x8xf32> -> tensor<8xf32>
    ds.yield %q : tensor<8xf32>
  }
  return %s : tensor<8xf32>
}

// But what another reads as well would leave it, and a kernel that sums columns gives sums only.
// CHECK-LABEL: @keeps_sums_of_columns_apart
// CHECK-NEXT: %[[E:.*]] = ds.fused(%arg0) {ds.work = #ds.work<recompute>} : (tensor<16x8xf32>) -> tensor<16x8xf32>
// CHECK: %[[S:.*]] = ds.fused(%[[E]]) {ds.work = #ds.work<backward>} : (tensor<16x8xf32>) -> tensor<8xf32>
// CHECK: ds.matmul %[[E]]
func.func @keeps_sums_of_columns_apart(%x: tensor<16x8xf32> {ds.input = "x"}) -> (tensor<8xf32>, tensor<16x8xf32>) attributes {ds.segment = #ds.segment<forward, backward>} {
  %e = ds.exp %x {ds.work = #ds.work<recompute>} : tensor<16x8xf32>
  %s = ds.fused(%e) {ds.work = #ds.work<backward>} : (tensor<16x8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<16x8xf32>):
    %n = ds.neg %a : tensor<16x8xf32>
    %q = ds.reduce sum %n dims [0] : tensor<16x8xf32> -> tensor<8xf32>
    ds.yield %q : tensor<8xf32>
  }
  %m = ds.matmul %e, %x transpose_rhs {ds.work = #ds.work<backward>} : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x16xf32>
  %r = ds.matmul %m, %x {ds.work = #ds.work<backward>} : tensor<16x16xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  return %s, %r : tensor<8xf32>, tensor<16x8xf32>
}

// What is computed again for a command of backward is not made with what was computed again for one before: it would be kept in
// between.
// CHECK-LABEL: @computes_again_for_each_reader
// CHECK: %[[A:.*]]:2 = ds.fused({{.*}}) {ds.work = #ds.work<recompute>}
// CHECK: %[[B:.*]] = ds.matmul %[[A]]#{{.}}, %{{.*}} {ds.work = #ds.work<backward>}
// CHECK: %[[C:.*]] = ds.fused({{.*}}%[[A]]#{{.}}{{.*}}) {ds.work = #ds.work<recompute>} : {{.*}} -> tensor<64x64xf32>
// CHECK: ds.matmul %[[C]], %[[B]]
func.func @computes_again_for_each_reader(%x: tensor<64x64xf32> {ds.input = "x"}, %w: tensor<64x64xf32> {ds.input = "w"}) -> tensor<64x64xf32> attributes {ds.segment = #ds.segment<forward, backward>} {
  %s = ds.reduce sum %x dims [1] {ds.work = #ds.work<recompute>} : tensor<64x64xf32> -> tensor<64xf32>
  %r = ds.broadcast %s dims [0] {ds.work = #ds.work<recompute>} : tensor<64xf32> -> tensor<64x64xf32>
  %n = ds.mul %x, %r {ds.work = #ds.work<recompute>} : tensor<64x64xf32>
  %b = ds.matmul %n, %w {ds.work = #ds.work<backward>} : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %t = ds.broadcast %s dims [0] {ds.work = #ds.work<recompute>} : tensor<64xf32> -> tensor<64x64xf32>
  %m = ds.mul %x, %t {ds.work = #ds.work<recompute>} : tensor<64x64xf32>
  %c = ds.matmul %m, %b {ds.work = #ds.work<backward>} : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return %c : tensor<64x64xf32>
}
}
