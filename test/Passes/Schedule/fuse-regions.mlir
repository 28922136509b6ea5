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

// Totals are rounded where they are known; what is done to them otherwise is another kernel's.
// CHECK-LABEL: @rounds_totals
func.func @rounds_totals(%x: tensor<64x8xf32>, %y: tensor<64x8xf32>, %old: tensor<8xbf16>) -> (tensor<8xbf16>, tensor<8xbf16>, tensor<8xf32>) {
  // CHECK: %[[SUMS:.*]]:3 = ds.fused(%arg0, %arg1) : (tensor<64x8xf32>, tensor<64x8xf32>) -> (tensor<8xf32>, tensor<8xbf16>, tensor<8xbf16>)
  // CHECK-DAG: ds.convert %{{.*}} : tensor<8xf32> -> tensor<8xbf16>
  // CHECK: ds.fused(%[[SUMS]]#{{[12]}}, %arg2)
  // CHECK: ds.fused(%[[SUMS]]#0) : (tensor<8xf32>) -> tensor<8xf32>
  %p = ds.mul %x, %y : tensor<64x8xf32>
  %gain = ds.reduce sum %p dims [0] : tensor<64x8xf32> -> tensor<8xf32>
  %bias = ds.reduce sum %x dims [0] : tensor<64x8xf32> -> tensor<8xf32>
  %g = ds.convert %gain : tensor<8xf32> -> tensor<8xbf16>
  %b = ds.convert %bias : tensor<8xf32> -> tensor<8xbf16>
  %sum = ds.add %b, %old : tensor<8xbf16>
  %n = ds.neg %gain : tensor<8xf32>
  return %g, %sum, %n : tensor<8xbf16>, tensor<8xbf16>, tensor<8xf32>
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
