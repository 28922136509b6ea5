// RUN: ds-opt %s --ds-fuse-regions | FileCheck %s

// What regions compute themselves although another has it, and what they read from memory.

// Each region has its own constant and iota; the mask that is made of them alone too.
// CHECK-LABEL: @copies_free_ops_into_each_region
func.func @copies_free_ops_into_each_region(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK-NOT: ds.compare
  // CHECK: ds.fused(%arg0)
  // CHECK: ds.compare lt
  // CHECK: ds.yield
  // CHECK: ds.matmul
  // CHECK: ds.fused
  // CHECK: ds.compare lt
  // CHECK: ds.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: return
  %i = ds.iota dim 0 start 0 step 1 : tensor<4x8xi64>
  %j = ds.iota dim 1 start 0 step 1 : tensor<4x8xi64>
  %mask = ds.compare lt %i, %j : tensor<4x8xi64>
  %zero = ds.constant dense<0.0> : tensor<4x8xf32>
  %a = ds.select %mask, %x, %zero : tensor<4x8xf32>
  %m = ds.matmul %a, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %b = ds.select %mask, %m, %y : tensor<4x8xf32>
  return %a, %b : tensor<4x8xf32>, tensor<4x8xf32>
}

// What a product reads must be in memory, free or not; its reader in a region has its own copy, squares included.
// CHECK-LABEL: @makes_a_free_op_that_a_library_reads
func.func @makes_a_free_op_that_a_library_reads(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK: %[[TWO:.*]] = ds.fused() : () -> tensor<4x4xf32>
  // CHECK: ds.matmul %arg0, %[[TWO]]
  // CHECK: ds.fused(%arg0, %[[TWO]])
  // CHECK: %[[SQUARE:.*]] = ds.mul %[[T:.*]], %[[T]]
  // CHECK: ds.add %{{.*}}, %[[SQUARE]]
  %two = ds.constant dense<2.0> : tensor<4x4xf32>
  %square = ds.mul %two, %two : tensor<4x4xf32>
  %m = ds.matmul %x, %two : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %s = ds.add %x, %square : tensor<4x4xf32>
  return %m, %s : tensor<4x4xf32>, tensor<4x4xf32>
}

// The column kernel computes x * y itself; the other reader computes its own.
// CHECK-LABEL: @copies_cheap_producers_of_column_reductions
func.func @copies_cheap_producers_of_column_reductions(%x: tensor<64x8xf32>, %y: tensor<64x8xf32>) -> (tensor<64x8xf32>, tensor<8xf32>) {
  // CHECK: ds.fused(%arg0, %arg1) : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
  // CHECK: ds.mul
  // CHECK: ds.exp
  // CHECK: ds.fused(%arg0, %arg1) : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<8xf32>
  // CHECK: ds.mul
  // CHECK: ds.reduce sum
  %p = ds.mul %x, %y : tensor<64x8xf32>
  %e = ds.exp %p : tensor<64x8xf32>
  %b = ds.reduce sum %p dims [0] : tensor<64x8xf32> -> tensor<8xf32>
  return %e, %b : tensor<64x8xf32>, tensor<8xf32>
}

// A product reads p from memory anyway: the column kernel reads it there.
// CHECK-LABEL: @reads_back_what_memory_holds_anyway
func.func @reads_back_what_memory_holds_anyway(%x: tensor<64x8xf32>, %y: tensor<64x8xf32>, %w: tensor<8x8xf32>) -> (tensor<64x8xf32>, tensor<8xf32>) {
  // CHECK: %[[P:.*]] = ds.fused(%arg0, %arg1) : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
  // CHECK: ds.fused(%[[P]]) : (tensor<64x8xf32>) -> tensor<8xf32>
  %p = ds.mul %x, %y : tensor<64x8xf32>
  %m = ds.matmul %p, %w : tensor<64x8xf32>, tensor<8x8xf32> -> tensor<64x8xf32>
  %b = ds.reduce sum %p dims [0] : tensor<64x8xf32> -> tensor<8xf32>
  return %m, %b : tensor<64x8xf32>, tensor<8xf32>
}

// Whoever reads a widened value widens it for itself: no wide copy is stored for the product's neighbour.
// CHECK-LABEL: @repeats_widening
func.func @repeats_widening(%x: tensor<4x8xbf16>, %y: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: %[[E:.*]] = ds.fused(%arg0) : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  // CHECK: ds.convert
  // CHECK: ds.exp
  // CHECK: %[[M:.*]] = ds.matmul %[[E]], %arg2
  // CHECK: %[[S:.*]] = ds.fused(%arg0, %[[M]]) : (tensor<4x8xbf16>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: ds.convert
  // CHECK: ds.add
  // CHECK: return %[[E]], %[[S]]
  %wide = ds.convert %x : tensor<4x8xbf16> -> tensor<4x8xf32>
  %e = ds.exp %wide : tensor<4x8xf32>
  %m = ds.matmul %e, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %s = ds.add %wide, %m : tensor<4x8xf32>
  return %e, %s : tensor<4x8xf32>, tensor<4x8xf32>
}

// What is computed from widened values is computed once: a chain of sums would be read from its beginning otherwise.
// CHECK-LABEL: @keeps_sums_of_widened_values
func.func @keeps_sums_of_widened_values(%x: tensor<4x8xbf16>, %y: tensor<4x8xbf16>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[SUM:.*]] = ds.fused(%arg0, %arg1) : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xf32>
  // CHECK: %[[M:.*]] = ds.matmul %[[SUM]], %arg2
  // CHECK: ds.fused(%[[SUM]], %[[M]])
  %a = ds.convert %x : tensor<4x8xbf16> -> tensor<4x8xf32>
  %b = ds.convert %y : tensor<4x8xbf16> -> tensor<4x8xf32>
  %sum = ds.add %a, %b : tensor<4x8xf32>
  %m = ds.matmul %sum, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %s = ds.add %sum, %m : tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// Two readers of one widened value share a kernel, which reads it once.
// CHECK-LABEL: @joins_readers_of_one_widened_value
func.func @joins_readers_of_one_widened_value(%x: tensor<4x8xbf16>, %y: tensor<4x8xf32>, %z: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: ds.fused(%arg0, %arg1, %arg2)
  // CHECK-NOT: ds.fused
  // CHECK: return
  %wide = ds.convert %x : tensor<4x8xbf16> -> tensor<4x8xf32>
  %a = ds.mul %wide, %y : tensor<4x8xf32>
  %b = ds.mul %wide, %z : tensor<4x8xf32>
  return %a, %b : tensor<4x8xf32>, tensor<4x8xf32>
}

// What is computed again for a later product does not go back to the region that has its operands; what reads it may
// take it in.
// CHECK-LABEL: @keeps_what_is_computed_again_from_its_operands
func.func @keeps_what_is_computed_again_from_its_operands(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK: %[[FORWARD:.*]]:2 = ds.fused(%arg0)
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: ds.exp
  // CHECK-NEXT: ds.neg
  // CHECK-NEXT: ds.yield
  %e = ds.exp %x : tensor<4x4xf32>
  %n = ds.neg %e : tensor<4x4xf32>
  // CHECK: %[[P:.*]] = ds.matmul %[[FORWARD]]#1, %arg1
  %p = ds.matmul %n, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  // CHECK: %[[AGAIN:.*]] = ds.fused(%[[FORWARD]]#0)
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: ds.neg %{{.*}} : tensor<4x4xf32>
  // CHECK-NEXT: ds.abs
  // CHECK-NEXT: ds.yield
  %again = ds.neg %e {ds.work = #ds.work<recompute>} : tensor<4x4xf32>
  %more = ds.abs %again {ds.work = #ds.work<recompute>} : tensor<4x4xf32>
  // CHECK: %[[Q:.*]] = ds.matmul %[[P]], %[[AGAIN]]
  %q = ds.matmul %p, %more : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  // CHECK: %[[LAST:.*]] = ds.fused({{.*}}) {ds.work = #ds.work<recompute>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: ds.neg %{{.*}} : tensor<4x4xf32>
  // CHECK-NEXT: ds.mul
  // CHECK-NEXT: ds.yield
  %third = ds.neg %e {ds.work = #ds.work<recompute>} : tensor<4x4xf32>
  %last = ds.mul %q, %third : tensor<4x4xf32>
  return %e, %q, %last : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// A free op that a library reads is in memory, and all read it there: two regions of which one makes what is repeated and the other
// reads the repetition are not joined: there would be no order for them and what lies in memory.
// CHECK-LABEL: @waits_for_a_repetition_that_lies_in_memory
func.func @waits_for_a_repetition_that_lies_in_memory(%x: tensor<8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  // CHECK: %[[E:.*]]:2 = ds.fused(%arg0, %arg1)
  // CHECK: %[[R:.*]] = ds.fused(%[[E]]#0) : (tensor<8xf32>) -> tensor<8x8xf32>
  // CHECK: ds.matmul %[[R]], %arg1
  // CHECK: ds.fused(%[[E]]#1, %[[R]])
  %e = ds.exp %x : tensor<8xf32>
  %r = ds.broadcast %e dims [0] : tensor<8xf32> -> tensor<8x8xf32>
  %m = ds.matmul %r, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %sum = ds.reduce sum %w dims [1] : tensor<8x8xf32> -> tensor<8xf32>
  %both = ds.add %e, %sum : tensor<8xf32>
  %again = ds.broadcast %both dims [0] : tensor<8xf32> -> tensor<8x8xf32>
  %n = ds.mul %again, %r : tensor<8x8xf32>
  return %m, %n : tensor<8x8xf32>, tensor<8x8xf32>
}
