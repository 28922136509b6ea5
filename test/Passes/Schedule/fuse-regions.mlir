// Size: a few lines above the limit, with the cases of one pass; to be divided.
// RUN: ds-opt %s --ds-fuse-regions | FileCheck %s

// What a library computes, and what is a view, belongs to no region.
// CHECK-LABEL: @keeps_library_ops_and_views
func.func @keeps_library_ops_and_views(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> tensor<2x8xf32> {
  // CHECK-NOT: ds.fused
  // CHECK: ds.matmul
  %m = ds.matmul %a, %b : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
  // CHECK: ds.transpose
  %t = ds.transpose %m perm [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  // CHECK: ds.reshape
  %r = ds.reshape %t : tensor<4x4xf32> -> tensor<2x8xf32>
  // CHECK: return
  return %r : tensor<2x8xf32>
}

// 4x8 and 8x4 elements: no common iteration space.
// CHECK-LABEL: @keeps_domains_apart
func.func @keeps_domains_apart(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> (tensor<4x8xf32>, tensor<8x4xf32>) {
  // CHECK: ds.fused(%arg0)
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: ds.exp
  // CHECK-NEXT: ds.yield
  // CHECK: ds.fused(%arg1)
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: ds.neg
  // CHECK-NEXT: ds.yield
  %x = ds.exp %a : tensor<4x8xf32>
  %y = ds.neg %b : tensor<8x4xf32>
  return %x, %y : tensor<4x8xf32>, tensor<8x4xf32>
}

// A row reduction is complete at the end of its row, a column reduction at the end of all rows: nothing of one may be
// read in the other's kernel.
// CHECK-LABEL: @keeps_row_and_column_reductions_apart
func.func @keeps_row_and_column_reductions_apart(%x: tensor<64x8xf32>) -> (tensor<64xf32>, tensor<8xf32>) {
  // CHECK: ds.fused(%arg0) : (tensor<64x8xf32>) -> tensor<64xf32>
  // CHECK: ds.reduce sum %{{.*}} dims [1]
  // CHECK-NEXT: ds.yield
  // CHECK: ds.fused(%arg0) : (tensor<64x8xf32>) -> tensor<8xf32>
  // CHECK: ds.reduce sum %{{.*}} dims [0]
  // CHECK-NEXT: ds.yield
  %rows = ds.reduce sum %x dims [1] : tensor<64x8xf32> -> tensor<64xf32>
  %columns = ds.reduce sum %x dims [0] : tensor<64x8xf32> -> tensor<8xf32>
  return %rows, %columns : tensor<64xf32>, tensor<8xf32>
}

// The total is known after the last row, so that dividing by it is another kernel's work.
// CHECK-LABEL: @keeps_readers_of_a_column_reduction_apart
func.func @keeps_readers_of_a_column_reduction_apart(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[SUM:.*]] = ds.fused(%arg0) : (tensor<4x8xf32>) -> tensor<8xf32>
  // CHECK: ds.fused(%arg0, %[[SUM]]) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %sum = ds.reduce sum %x dims [0] : tensor<4x8xf32> -> tensor<8xf32>
  %all = ds.broadcast %sum dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %r = ds.div %x, %all : tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// E3: exp and add have one domain, but the product between them reads the one and feeds the other.
// CHECK-LABEL: @keeps_regions_convex_around_a_library_op
func.func @keeps_regions_convex_around_a_library_op(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK: %[[EXP:.*]] = ds.fused(%arg0)
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: ds.exp
  // CHECK-NEXT: ds.yield
  // CHECK: %[[PRODUCT:.*]] = ds.matmul %[[EXP]], %arg0
  // CHECK: ds.fused(%[[EXP]], %[[PRODUCT]])
  // CHECK: ds.add
  %e = ds.exp %x : tensor<4x4xf32>
  %m = ds.matmul %e, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %s = ds.add %e, %m : tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}

// E3: the way from exp to add goes through a view and a reduction of another domain.
// CHECK-LABEL: @keeps_regions_convex_around_another_region
func.func @keeps_regions_convex_around_another_region(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[EXP:.*]] = ds.fused(%arg0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: ds.reshape %[[EXP]]
  // CHECK: %[[SUM:.*]] = ds.fused
  // CHECK: ds.fused(%[[EXP]], %[[SUM]]) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %e = ds.exp %x : tensor<4x8xf32>
  %flat = ds.reshape %e : tensor<4x8xf32> -> tensor<32xf32>
  %sum = ds.reduce sum %flat dims [0] : tensor<32xf32> -> tensor<f32>
  %all = ds.broadcast %sum dims [] : tensor<f32> -> tensor<4x8xf32>
  %s = ds.add %e, %all : tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// E3: what leads from one region to another may stand before both: the region of %x has %y, which waits for %f.
// CHECK-LABEL: @keeps_regions_convex_around_one_that_begins_before
func.func @keeps_regions_convex_around_one_that_begins_before(%a: tensor<4x4xf32>, %b: tensor<4x8xf32>, %v: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4x8xf32>) {
  // CHECK: %[[F:.*]] = ds.fused(%arg1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: %[[M:.*]] = ds.matmul %[[F]], %arg2
  // CHECK: %[[XY:.*]]:2 = ds.fused(%arg0, %[[M]])
  // CHECK: %[[U:.*]] = ds.matmul %[[XY]]#0, %arg1
  // CHECK: ds.fused(%[[F]], %[[U]])
  %x = ds.exp %a : tensor<4x4xf32>
  %u = ds.matmul %x, %b : tensor<4x4xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %f = ds.exp %b : tensor<4x8xf32>
  %m = ds.matmul %f, %v : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
  %y = ds.add %x, %m : tensor<4x4xf32>
  %t = ds.add %f, %u : tensor<4x8xf32>
  return %y, %t : tensor<4x4xf32>, tensor<4x8xf32>
}

// E3: and before that another one: %t waits for %x2, whose region for that of %x1, which waits for %f.
// CHECK-LABEL: @keeps_regions_convex_around_two_that_begin_before
func.func @keeps_regions_convex_around_two_that_begin_before(%a: tensor<4x4xf32>, %b: tensor<4x8xf32>, %c: tensor<8x8xf32>, %v: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<8x8xf32>, tensor<4x8xf32>) {
  // CHECK: %[[F:.*]] = ds.fused(%arg1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: %[[M:.*]] = ds.matmul %[[F]], %arg3
  // CHECK: %[[ONE:.*]]:2 = ds.fused(%arg0, %[[M]])
  // CHECK: ds.matmul %arg3, %[[ONE]]#0
  // CHECK: %[[N:.*]] = ds.matmul
  // CHECK: %[[TWO:.*]]:2 = ds.fused(%arg2, %[[N]])
  // CHECK: %[[U:.*]] = ds.matmul %arg1, %[[TWO]]#0
  // CHECK: ds.fused(%[[F]], %[[U]])
  %x2 = ds.exp %c : tensor<8x8xf32>
  %u = ds.matmul %b, %x2 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %x1 = ds.exp %a : tensor<4x4xf32>
  %k = ds.matmul %v, %x1 : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
  %n = ds.matmul %k, %b : tensor<8x4xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
  %y2 = ds.add %x2, %n : tensor<8x8xf32>
  %f = ds.exp %b : tensor<4x8xf32>
  %m = ds.matmul %f, %v : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
  %y1 = ds.add %x1, %m : tensor<4x4xf32>
  %t = ds.add %f, %u : tensor<4x8xf32>
  return %y1, %y2, %t : tensor<4x4xf32>, tensor<8x8xf32>, tensor<4x8xf32>
}

// 31 rows are too few to occupy cores with one row each where 31 * 1058 = 32798 > 2^15 elements wait.
// CHECK-LABEL: @keeps_long_rows_out_of_few_row_kernels
func.func @keeps_long_rows_out_of_few_row_kernels(%x: tensor<31x1058xf32>) -> tensor<31xf32> {
  // CHECK: %[[EXP:.*]] = ds.fused(%arg0) : (tensor<31x1058xf32>) -> tensor<31x1058xf32>
  // CHECK: ds.fused(%[[EXP]]) : (tensor<31x1058xf32>) -> tensor<31xf32>
  %e = ds.exp %x : tensor<31x1058xf32>
  %sum = ds.reduce sum %e dims [1] : tensor<31x1058xf32> -> tensor<31xf32>
  return %sum : tensor<31xf32>
}

// E1 and E2: a chain is one region, and only what is read outside leaves it.
// CHECK-LABEL: @fuses_a_chain
func.func @fuses_a_chain(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %[[R:.*]] = ds.fused(%arg0, %arg1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>):
  // CHECK-NEXT: %[[E:.*]] = ds.exp %[[X]]
  // CHECK-NEXT: %[[S:.*]] = ds.add %[[E]], %[[Y]]
  // CHECK-NEXT: %[[N:.*]] = ds.neg %[[S]]
  // CHECK-NEXT: ds.yield %[[N]] : tensor<4xf32>
  // CHECK-NEXT: }
  // CHECK-NEXT: return %[[R]]
  %e = ds.exp %x : tensor<4xf32>
  %s = ds.add %e, %y : tensor<4xf32>
  %n = ds.neg %s : tensor<4xf32>
  return %n : tensor<4xf32>
}

// E2: the exponential is read by the product as well, its sum with y only here.
// CHECK-LABEL: @gives_a_region_several_results
func.func @gives_a_region_several_results(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK: %[[F:.*]]:2 = ds.fused(%arg0, %arg1) : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
  // CHECK: %[[E:.*]] = ds.exp
  // CHECK: %[[N:.*]] = ds.neg
  // CHECK: ds.yield %[[E]], %[[N]]
  // CHECK: ds.matmul %[[F]]#0, %arg1
  %e = ds.exp %x : tensor<4x4xf32>
  %s = ds.add %e, %y : tensor<4x4xf32>
  %n = ds.neg %s : tensor<4x4xf32>
  %m = ds.matmul %e, %y : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %n, %m : tensor<4x4xf32>, tensor<4x4xf32>
}

// Softmax: two row reductions, their broadcasts along the row, and all between.
// CHECK-LABEL: @fuses_rows_with_their_reductions
func.func @fuses_rows_with_their_reductions(%x: tensor<64x8xf32>) -> tensor<64x8xf32> {
  // CHECK: ds.fused(%arg0) : (tensor<64x8xf32>) -> tensor<64x8xf32>
  // CHECK-NOT: ds.fused
  // CHECK: return
  %max = ds.reduce max %x dims [1] : tensor<64x8xf32> -> tensor<64xf32>
  %m = ds.broadcast %max dims [0] : tensor<64xf32> -> tensor<64x8xf32>
  %d = ds.sub %x, %m : tensor<64x8xf32>
  %e = ds.exp %d : tensor<64x8xf32>
  %sum = ds.reduce sum %e dims [1] : tensor<64x8xf32> -> tensor<64xf32>
  %s = ds.broadcast %sum dims [0] : tensor<64xf32> -> tensor<64x8xf32>
  %r = ds.div %e, %s : tensor<64x8xf32>
  return %r : tensor<64x8xf32>
}

// 8 = 8: the same sums along columns of a square would fit as shapes, but are read across rows.
// CHECK-LABEL: @keeps_a_row_value_that_is_read_across_rows
func.func @keeps_a_row_value_that_is_read_across_rows(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: %[[SUM:.*]] = ds.fused(%arg0) : (tensor<8x8xf32>) -> tensor<8xf32>
  // CHECK: ds.fused(%arg0, %[[SUM]]) : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %sum = ds.reduce sum %x dims [1] : tensor<8x8xf32> -> tensor<8xf32>
  %b = ds.broadcast %sum dims [1] : tensor<8xf32> -> tensor<8x8xf32>
  %r = ds.div %x, %b : tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}

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

// The gradient of a bias and of a scale: sums over rows of one shape share one pass.
// CHECK-LABEL: @fuses_sibling_column_reductions
func.func @fuses_sibling_column_reductions(%x: tensor<64x8xf32>, %y: tensor<64x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: ds.fused(%arg0, %arg1) : (tensor<64x8xf32>, tensor<64x8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  // CHECK-NOT: ds.fused
  // CHECK: return
  %p = ds.mul %x, %y : tensor<64x8xf32>
  %a = ds.reduce sum %x dims [0] : tensor<64x8xf32> -> tensor<8xf32>
  %b = ds.reduce sum %p dims [0] : tensor<64x8xf32> -> tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
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

// E3: the region stands at its last member, so what it no longer precedes moves behind it.
// CHECK-LABEL: @restores_topological_order
func.func @restores_topological_order(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK: %[[F:.*]]:2 = ds.fused(%arg0, %arg1)
  // CHECK: ds.matmul %[[F]]#0, %arg1
  %e = ds.exp %x : tensor<4x4xf32>
  %m = ds.matmul %e, %y : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %s = ds.add %e, %y : tensor<4x4xf32>
  return %m, %s : tensor<4x4xf32>, tensor<4x4xf32>
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

// A number that follows from numbers which are there when the function begins is made apart from those that wait for tensors:
// the first product's update needs it before the second product's gradient is there.
// CHECK-LABEL: @keeps_what_is_known_early_apart
func.func @keeps_what_is_known_early_apart(%step: tensor<i64>, %x: tensor<8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> (tensor<8x8xf32>, tensor<8xf32>, tensor<f32>) {
  // CHECK: %[[RATE:.*]] = ds.fused(%arg0) : (tensor<i64>) -> tensor<f32>
  // CHECK: ds.fused({{.*}}%[[RATE]]{{.*}}) : {{.*}} -> tensor<8x8xf32>
  // CHECK: %[[G:.*]] = ds.matmul
  // CHECK: ds.fused({{.*}}%[[RATE]]{{.*}}) : {{.*}} -> ({{.*}}tensor<8xf32>{{.*}})
  %count = ds.convert %step : tensor<i64> -> tensor<f32>
  %root = ds.sqrt %count : tensor<f32>
  %rates = ds.broadcast %root dims [] : tensor<f32> -> tensor<8x8xf32>
  %v = ds.mul %w, %rates : tensor<8x8xf32>
  %rows = ds.reshape %x : tensor<8xf32> -> tensor<1x8xf32>
  %p = ds.matmul %rows, %w : tensor<1x8xf32>, tensor<8x8xf32> -> tensor<1x8xf32>
  %g = ds.reshape %p : tensor<1x8xf32> -> tensor<8xf32>
  %rate = ds.broadcast %root dims [] : tensor<f32> -> tensor<8xf32>
  %scaled = ds.mul %g, %rate : tensor<8xf32>
  %c = ds.sub %b, %scaled : tensor<8xf32>
  %sum = ds.reduce sum %scaled dims [0] : tensor<8xf32> -> tensor<f32>
  %total = ds.add %sum, %root : tensor<f32>
  return %v, %c, %total : tensor<8x8xf32>, tensor<8xf32>, tensor<f32>
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
