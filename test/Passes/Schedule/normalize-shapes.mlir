// RUN: ds-opt %s --ds-normalize-shapes | FileCheck %s

// A reduction that is leading or trailing already, or one that is small, stays as it is.
// CHECK-LABEL: @keeps_leading_and_trailing_reductions
func.func @keeps_leading_and_trailing_reductions(%x: tensor<2x3x4xf32>) -> (tensor<3x4xf32>, tensor<2xf32>) {
  // CHECK: ds.reduce sum %arg0 dims [0] : tensor<2x3x4xf32> -> tensor<3x4xf32>
  %columns = ds.reduce sum %x dims [0] : tensor<2x3x4xf32> -> tensor<3x4xf32>
  // CHECK: ds.reduce sum %arg0 dims [1, 2] : tensor<2x3x4xf32> -> tensor<2xf32>
  %rows = ds.reduce sum %x dims [1, 2] : tensor<2x3x4xf32> -> tensor<2xf32>
  return %columns, %rows : tensor<3x4xf32>, tensor<2xf32>
}

// 128 * 128 = 16384 elements: one kernel reads them in one go.
// CHECK-LABEL: @keeps_a_full_reduction_of_16384_elements
func.func @keeps_a_full_reduction_of_16384_elements(%x: tensor<128x128xf32>) -> tensor<f32> {
  // CHECK: ds.reduce sum %arg0 dims [0, 1] : tensor<128x128xf32> -> tensor<f32>
  %sum = ds.reduce sum %x dims [0, 1] : tensor<128x128xf32> -> tensor<f32>
  return %sum : tensor<f32>
}

// There are no rows to share out.
// CHECK-LABEL: @keeps_a_long_vector
func.func @keeps_a_long_vector(%x: tensor<20000xf32>) -> tensor<f32> {
  // CHECK: ds.reduce sum %arg0 dims [0] : tensor<20000xf32> -> tensor<f32>
  %sum = ds.reduce sum %x dims [0] : tensor<20000xf32> -> tensor<f32>
  return %sum : tensor<f32>
}

// One operand would have to be reshaped back.
// CHECK-LABEL: @keeps_a_reshape_beside_an_operand_of_its_shape
func.func @keeps_a_reshape_beside_an_operand_of_its_shape(%x: tensor<4x8xf32>, %y: tensor<32xf32>) -> tensor<32xf32> {
  // CHECK: %[[FLAT:.*]] = ds.reshape %arg0 : tensor<4x8xf32> -> tensor<32xf32>
  // CHECK: ds.add %[[FLAT]], %arg1 : tensor<32xf32>
  %flat = ds.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %sum = ds.add %flat, %y : tensor<32xf32>
  return %sum : tensor<32xf32>
}

// Two shapes of origin: neither is the other's.
// CHECK-LABEL: @keeps_reshapes_from_different_shapes
func.func @keeps_reshapes_from_different_shapes(%x: tensor<4x8xf32>, %y: tensor<2x16xf32>) -> tensor<32xf32> {
  // CHECK: ds.add %{{.*}}, %{{.*}} : tensor<32xf32>
  %a = ds.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %b = ds.reshape %y : tensor<2x16xf32> -> tensor<32xf32>
  %sum = ds.add %a, %b : tensor<32xf32>
  return %sum : tensor<32xf32>
}

// A vector along rows has a value for each: nothing to drop.
// CHECK-LABEL: @keeps_a_broadcast_without_unit_dimensions
func.func @keeps_a_broadcast_without_unit_dimensions(%x: tensor<4xf32>) -> tensor<4x8xf32> {
  // CHECK-NOT: ds.reshape
  // CHECK: ds.broadcast %arg0 dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %b = ds.broadcast %x dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// The rows that are summed up are no rows of the tensor: the squares stay where they are one kernel with their sum.
// CHECK-LABEL: @keeps_a_reshape_before_a_sum_over_other_rows
func.func @keeps_a_reshape_before_a_sum_over_other_rows(%x: tensor<64x768xf32>) -> tensor<3xf32> {
  // CHECK: %[[ROWS:.*]] = ds.reshape %arg0 : tensor<64x768xf32> -> tensor<3x16384xf32>
  // CHECK: %[[SQUARES:.*]] = ds.mul %[[ROWS]], %[[ROWS]] : tensor<3x16384xf32>
  // CHECK: %[[ABS:.*]] = ds.abs %[[SQUARES]] : tensor<3x16384xf32>
  // CHECK: ds.reduce sum %[[ABS]] dims [1] : tensor<3x16384xf32> -> tensor<3xf32>
  %rows = ds.reshape %x : tensor<64x768xf32> -> tensor<3x16384xf32>
  %squares = ds.mul %rows, %rows : tensor<3x16384xf32>
  %abs = ds.abs %squares : tensor<3x16384xf32>
  %sums = ds.reduce sum %abs dims [1] : tensor<3x16384xf32> -> tensor<3xf32>
  return %sums : tensor<3xf32>
}

// Whole rows are summed up, or another op reads the squares: they have more to join before the reshape.
// CHECK-LABEL: @sinks_reshapes_before_other_sums
func.func @sinks_reshapes_before_other_sums(%x: tensor<64x768xf32>) -> (tensor<8x8xf32>, tensor<3xf32>, tensor<3x16384xf32>) {
  // CHECK-COUNT-2: ds.mul %arg0, %arg0 : tensor<64x768xf32>
  %same = ds.reshape %x : tensor<64x768xf32> -> tensor<8x8x768xf32>
  %a = ds.mul %same, %same : tensor<8x8x768xf32>
  %inner = ds.reduce sum %a dims [2] : tensor<8x8x768xf32> -> tensor<8x8xf32>
  %rows = ds.reshape %x : tensor<64x768xf32> -> tensor<3x16384xf32>
  %b = ds.mul %rows, %rows : tensor<3x16384xf32>
  %sums = ds.reduce sum %b dims [1] : tensor<3x16384xf32> -> tensor<3xf32>
  return %inner, %sums, %b : tensor<8x8xf32>, tensor<3xf32>, tensor<3x16384xf32>
}

// A vector is widened where it is repeated; to a narrower type it is converted before.
// CHECK-LABEL: @widens_behind_a_broadcast
func.func @widens_behind_a_broadcast(%x: tensor<8xbf16>, %y: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xbf16>) {
  // CHECK: %[[REPEATED:.*]] = ds.broadcast %arg0 dims [1] : tensor<8xbf16> -> tensor<4x8xbf16>
  // CHECK: %[[WIDE:.*]] = ds.convert %[[REPEATED]] : tensor<4x8xbf16> -> tensor<4x8xf32>
  // CHECK: %[[NARROW:.*]] = ds.convert %arg1 : tensor<8xf32> -> tensor<8xbf16>
  // CHECK: %[[SECOND:.*]] = ds.broadcast %[[NARROW]] dims [1] : tensor<8xbf16> -> tensor<4x8xbf16>
  // CHECK: return %[[WIDE]], %[[SECOND]]
  %wide = ds.convert %x : tensor<8xbf16> -> tensor<8xf32>
  %a = ds.broadcast %wide dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %narrow = ds.convert %y : tensor<8xf32> -> tensor<8xbf16>
  %b = ds.broadcast %narrow dims [1] : tensor<8xbf16> -> tensor<4x8xbf16>
  return %a, %b : tensor<4x8xf32>, tensor<4x8xbf16>
}

// E1, over a chain; the reshape sinks below both ops.
// CHECK-LABEL: @sinks_reshapes_below_elementwise_ops
func.func @sinks_reshapes_below_elementwise_ops(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<32xf32> {
  // CHECK: %[[SUM:.*]] = ds.add %arg0, %arg1 : tensor<4x8xf32>
  // CHECK: %[[EXP:.*]] = ds.exp %[[SUM]] : tensor<4x8xf32>
  // CHECK: %[[FLAT:.*]] = ds.reshape %[[EXP]] : tensor<4x8xf32> -> tensor<32xf32>
  // CHECK: return %[[FLAT]]
  %a = ds.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %b = ds.reshape %y : tensor<4x8xf32> -> tensor<32xf32>
  %sum = ds.add %a, %b : tensor<32xf32>
  %exp = ds.exp %sum : tensor<32xf32>
  return %exp : tensor<32xf32>
}

// E1: an op with attributes and a result of another element type keeps both.
// CHECK-LABEL: @sinks_a_reshape_below_a_comparison
func.func @sinks_a_reshape_below_a_comparison(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<32xi1> {
  // CHECK: %[[LESS:.*]] = ds.compare lt %arg0, %arg1 : tensor<4x8xf32>
  // CHECK: ds.reshape %[[LESS]] : tensor<4x8xi1> -> tensor<32xi1>
  %a = ds.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %b = ds.reshape %y : tensor<4x8xf32> -> tensor<32xf32>
  %less = ds.compare lt %a, %b : tensor<32xf32>
  return %less : tensor<32xi1>
}

// E1: a scalar repeated is available in every shape, be it a splat or a broadcast.
// CHECK-LABEL: @sinks_a_reshape_beside_scalars
func.func @sinks_a_reshape_beside_scalars(%x: tensor<4x8xf32>, %s: tensor<f32>) -> tensor<32xf32> {
  // CHECK: %[[TWO:.*]] = ds.constant dense<2.000000e+00> : tensor<4x8xf32>
  // CHECK: %[[PRODUCT:.*]] = ds.mul %arg0, %[[TWO]] : tensor<4x8xf32>
  // CHECK: %[[S:.*]] = ds.broadcast %arg1 dims [] : tensor<f32> -> tensor<4x8xf32>
  // CHECK: %[[SUM:.*]] = ds.add %[[PRODUCT]], %[[S]] : tensor<4x8xf32>
  // CHECK: ds.reshape %[[SUM]] : tensor<4x8xf32> -> tensor<32xf32>
  %flat = ds.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %two = ds.constant dense<2.0> : tensor<32xf32>
  %repeated = ds.broadcast %s dims [] : tensor<f32> -> tensor<32xf32>
  %product = ds.mul %flat, %two : tensor<32xf32>
  %sum = ds.add %product, %repeated : tensor<32xf32>
  return %sum : tensor<32xf32>
}

// E2: [4] -> [4, 1] -> [4, 8] is [4] -> [4, 8].
// CHECK-LABEL: @drops_a_unit_dimension_that_a_reshape_adds
func.func @drops_a_unit_dimension_that_a_reshape_adds(%x: tensor<4xf32>) -> tensor<4x8xf32> {
  // CHECK-NOT: ds.reshape
  // CHECK: ds.broadcast %arg0 dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %column = ds.reshape %x : tensor<4xf32> -> tensor<4x1xf32>
  %b = ds.broadcast %column dims [0, 1] : tensor<4x1xf32> -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// E2: dimension 0 goes, and 8 stays dimension 1 of the result.
// CHECK-LABEL: @drops_a_leading_unit_dimension
func.func @drops_a_leading_unit_dimension(%x: tensor<1x8xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[ROW:.*]] = ds.reshape %arg0 : tensor<1x8xf32> -> tensor<8xf32>
  // CHECK: ds.broadcast %[[ROW]] dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %b = ds.broadcast %x dims [0, 1] : tensor<1x8xf32> -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// E3: dimension 1 of 3 goes last.
// CHECK-LABEL: @makes_an_inner_reduction_trailing
func.func @makes_an_inner_reduction_trailing(%x: tensor<2x3x4xf32>) -> tensor<2x4xf32> {
  // CHECK: %[[T:.*]] = ds.transpose %arg0 perm [0, 2, 1] : tensor<2x3x4xf32> -> tensor<2x4x3xf32>
  // CHECK: ds.reduce max %[[T]] dims [2] : tensor<2x4x3xf32> -> tensor<2x4xf32>
  %r = ds.reduce max %x dims [1] : tensor<2x3x4xf32> -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// E3: outer and inner dimensions at once.
// CHECK-LABEL: @makes_a_split_reduction_trailing
func.func @makes_a_split_reduction_trailing(%x: tensor<2x3x4xf32>) -> tensor<3xf32> {
  // CHECK: %[[T:.*]] = ds.transpose %arg0 perm [1, 0, 2] : tensor<2x3x4xf32> -> tensor<3x2x4xf32>
  // CHECK: ds.reduce sum %[[T]] dims [1, 2] : tensor<3x2x4xf32> -> tensor<3xf32>
  %r = ds.reduce sum %x dims [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// E4: 129 * 128 = 16512 elements: 129 rows first.
// CHECK-LABEL: @reduces_a_big_tensor_row_by_row_first
func.func @reduces_a_big_tensor_row_by_row_first(%x: tensor<129x128xf32>) -> tensor<f32> {
  // CHECK: %[[ROWS:.*]] = ds.reduce sum %arg0 dims [1] : tensor<129x128xf32> -> tensor<129xf32>
  // CHECK: ds.reduce sum %[[ROWS]] dims [0] : tensor<129xf32> -> tensor<f32>
  %sum = ds.reduce sum %x dims [0, 1] : tensor<129x128xf32> -> tensor<f32>
  return %sum : tensor<f32>
}

// The reader cannot follow the conversion: it is made behind the reshape, where the reader's kernel takes it in.
// CHECK-LABEL: @widens_behind_a_reshape
func.func @widens_behind_a_reshape(%x: tensor<32xbf16>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[NARROW:.*]] = ds.reshape %arg0 : tensor<32xbf16> -> tensor<4x8xbf16>
  // CHECK: %[[WIDE:.*]] = ds.convert %[[NARROW]] : tensor<4x8xbf16> -> tensor<4x8xf32>
  // CHECK: ds.add %[[WIDE]], %arg1 : tensor<4x8xf32>
  %wide = ds.convert %x : tensor<32xbf16> -> tensor<32xf32>
  %matrix = ds.reshape %wide : tensor<32xf32> -> tensor<4x8xf32>
  %sum = ds.add %matrix, %y : tensor<4x8xf32>
  return %sum : tensor<4x8xf32>
}

// What others read of it stays; a conversion to a narrower type is worth a trip through memory.
// CHECK-LABEL: @keeps_conversions_that_others_read
func.func @keeps_conversions_that_others_read(%x: tensor<32xbf16>, %z: tensor<32xf32>) -> (tensor<4x8xf32>, tensor<32xf32>, tensor<4x8xbf16>) {
  // CHECK: %[[WIDE:.*]] = ds.convert %arg0 : tensor<32xbf16> -> tensor<32xf32>
  // CHECK: %[[NARROW:.*]] = ds.reshape %arg0
  // CHECK: %[[OWN:.*]] = ds.convert %[[NARROW]] : tensor<4x8xbf16> -> tensor<4x8xf32>
  // CHECK: %[[ROUND:.*]] = ds.convert %arg1
  // CHECK: %[[LAST:.*]] = ds.reshape %[[ROUND]] : tensor<32xbf16> -> tensor<4x8xbf16>
  // CHECK: return %[[OWN]], %[[WIDE]], %[[LAST]]
  %wide = ds.convert %x : tensor<32xbf16> -> tensor<32xf32>
  %matrix = ds.reshape %wide : tensor<32xf32> -> tensor<4x8xf32>
  %round = ds.convert %z : tensor<32xf32> -> tensor<32xbf16>
  %last = ds.reshape %round : tensor<32xbf16> -> tensor<4x8xbf16>
  return %matrix, %wide, %last : tensor<4x8xf32>, tensor<32xf32>, tensor<4x8xbf16>
}
