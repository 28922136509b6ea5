// RUN: ds-opt %s --ds-fuse-regions --ds-bufferize | FileCheck %s
// RUN: ds-opt %s --ds-fuse-regions --ds-bufferize | FileCheck %s --check-prefix=TENSORS

// E1 and E2 where libraries are called: outside kernels no tensor is left.
// TENSORS-NOT: func.func {{.*}}: tensor
// TENSORS-NOT: {{^}}    {{.*}} = {{.*}} -> tensor
// TENSORS: ds.kernel

ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
ds.state @s role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f64>
ds.state @t role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x4xf32>
ds.state @q role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x1x8xf32>
ds.state @p role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
ds.state @dx role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x4x8x6xf32>
ds.state @g16 role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x2x6xbf16>
ds.state @columns role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x12xbf16>
ds.state @dw role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6x2x3x2xf32>

// Every second row from row 1: offset 4, 2 rows of 4 = 8 apart; the others are zero.
// CHECK-LABEL: func.func @pads(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[T:arg[0-9]+]]:
func.func @pads(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<8x4xf32> {ds.state = @t}) {
  // CHECK-NEXT: ds.call fill(%[[T]]) writes [0] params [0.000000e+00] on compute
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[T]] offset 4 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [8, 1], device>
  // CHECK-NEXT: ds.call copy(%[[X]], %[[VIEW0]]) writes [1] params [] on compute
  // CHECK-NEXT: return
  %p = ds.pad %x offsets [1, 0] strides [2, 1] : tensor<4x4xf32> -> tensor<8x4xf32>
  return %p : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @accumulates_over_what_dies(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @accumulates_over_what_dies(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF0]]) writes [2] params [0, 0, 1, 0] on compute
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[BUF0]]) outs(%[[W]]) extent 16 on compute
  // CHECK-NEXT: return
  %a = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %b = ds.matmul %x, %x into(%a) : tensor<4x4xf32>, tensor<4x4xf32> into tensor<4x4xf32> -> tensor<4x4xf32>
  %c = ds.neg %b : tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @accumulates_on_a_copy_of_what_lives(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @accumulates_on_a_copy_of_what_lives(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: %[[BUF1:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call copy(%[[BUF0]], %[[BUF1]]) writes [1] params [] on compute
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF1]]) writes [2] params [0, 0, 1, 0] on compute
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[BUF1]], %[[BUF0]]) outs(%[[W]]) extent 16 on compute
  // CHECK-NEXT: return
  %a = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %b = ds.matmul %x, %x into(%a) : tensor<4x4xf32>, tensor<4x4xf32> into tensor<4x4xf32> -> tensor<4x4xf32>
  %c = ds.sub %b, %a : tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}

// a dies here, but is a factor as well.
// CHECK-LABEL: func.func @accumulates_on_a_copy_of_a_factor(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @accumulates_on_a_copy_of_a_factor(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: %[[BUF1:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call copy(%[[BUF0]], %[[BUF1]]) writes [1] params [] on compute
  // CHECK-NEXT: ds.call matmul(%[[BUF0]], %[[X]], %[[BUF1]]) writes [2] params [0, 0, 1, 0] on compute
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[BUF1]]) outs(%[[W]]) extent 16 on compute
  // CHECK-NEXT: return
  %a = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %b = ds.matmul %a, %x into(%a) : tensor<4x4xf32>, tensor<4x4xf32> into tensor<4x4xf32> -> tensor<4x4xf32>
  %c = ds.neg %b : tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}

// A sum of squares reads many buffers, as they lie in memory; one with gaps is packed.
// CHECK-LABEL: func.func @reads_packed_tensors(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[Y:arg[0-9]+]]:{{.*}} %[[S:arg[0-9]+]]:
func.func @reads_packed_tensors(%x: tensor<4x4xf32> {ds.input = "x"}, %y: tensor<8xf32> {ds.input = "y"}, %s: tensor<f64> {ds.state = @s}) -> (tensor<f64> {ds.state = @s}) {
  // CHECK-NEXT: %[[PART:.*]] = ds.view %[[Y]] offset 4
  // CHECK-NEXT: %[[COLUMNS:.*]] = ds.view %[[X]] offset 1
  // CHECK-NEXT: %[[PACKED:.*]] = ds.alloc activations : !ds.buffer<tensor<4x2xf32>, [2, 1], device>
  // CHECK-NEXT: ds.call copy(%[[COLUMNS]], %[[PACKED]])
  // CHECK-NEXT: ds.call sum_of_squares(%[[X]], %[[PART]], %[[PACKED]], %[[S]]) writes [3] params [] on compute
  // CHECK-NEXT: return
  %part = ds.slice %y offsets [4] strides [1] : tensor<8xf32> -> tensor<4xf32>
  %columns = ds.slice %x offsets [0, 1] strides [1, 1] : tensor<4x4xf32> -> tensor<4x2xf32>
  %r = ds.sum_of_squares %x, %part, %columns : tensor<4x4xf32>, tensor<4xf32>, tensor<4x2xf32> -> tensor<f64>
  return %r : tensor<f64>
}

// CHECK-LABEL: func.func @accumulates_in_a_state(
// CHECK-SAME: %[[T:arg[0-9]+]]:{{.*}} %[[IDS:arg[0-9]+]]:{{.*}} %[[X:arg[0-9]+]]:
func.func @accumulates_in_a_state(%t: tensor<8x4xf32> {ds.state = @t}, %ids: tensor<4xi64> {ds.input = "ids"}, %x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<8x4xf32> {ds.state = @t}) {
  // CHECK-NEXT: ds.call embedding_backward(%[[IDS]], %[[X]], %[[T]]) writes [2] params [1] on compute
  // CHECK-NEXT: return
  %d = ds.embedding_grad %ids, %x into(%t : tensor<8x4xf32>) : tensor<4xi64>, tensor<4x4xf32> -> tensor<8x4xf32>
  return %d : tensor<8x4xf32>
}

// Strides of dimensions of one element say nothing: each product writes its part of the whole, and nothing is copied.
// CHECK-LABEL: func.func @a_row_of_one_lies_where_it_is_joined(
// CHECK-SAME: %{{.*}}: {{.*}}, %{{.*}}: {{.*}}, %[[Q:arg2]]:
func.func @a_row_of_one_lies_where_it_is_joined(%x: tensor<4x4xf32> {ds.input = "x"}, %y: tensor<4x4xf32> {ds.input = "y"}) -> (tensor<4x1x8xf32> {ds.state = @q}) {
  // CHECK-NOT: ds.call copy(
  // CHECK: %[[LEFT:.*]] = ds.view %[[Q]] offset 0
  // CHECK: ds.call matmul(%{{.*}}, %{{.*}}, %[[LEFT]])
  // CHECK: %[[RIGHT:.*]] = ds.view %[[Q]] offset 4
  // CHECK: ds.call matmul(%{{.*}}, %{{.*}}, %[[RIGHT]])
  // CHECK-NOT: ds.call copy(
  // CHECK: return
  %a = ds.matmul %x, %y : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %b = ds.matmul %y, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %c = ds.reshape %a : tensor<4x4xf32> -> tensor<4x1x4xf32>
  %d = ds.reshape %b : tensor<4x4xf32> -> tensor<4x1x4xf32>
  %e = ds.concat %c, %d dim 2 : tensor<4x1x4xf32>, tensor<4x1x4xf32> -> tensor<4x1x8xf32>
  return %e : tensor<4x1x8xf32>
}

// Operands in the order of Library.h; groups, then stride, padding and dilation of each dimension. A view is packed.
// Each costs 2 * (2 * 6 * 4 * 3) * (2 * 3 * 2) = 3456 operations.
// CHECK-LABEL: func.func @calls_convolutions(
// CHECK-SAME: %[[W:arg1]]: {{.*}} %[[B:arg2]]:
func.func @calls_convolutions(%x: tensor<2x8x4x6xf32> {ds.input = "x"}, %w: tensor<6x2x3x2xf32> {ds.input = "w"}, %b: tensor<6xf32> {ds.input = "b"}) -> (tensor<2x4x8x6xf32> {ds.state = @dx}, tensor<6x2x3x2xf32> {ds.state = @dw}) {
  // CHECK: ds.call copy(%{{.*}}, %[[P:.*]])
  // CHECK-NEXT: ds.call conv_forward(%[[P]], %[[W]], %[[Y:.*]], %[[B]]) writes [2] params [2, 2, 1, 1, 1, 0, 3] on compute {flops = 3456 : i64}
  // CHECK-NEXT: ds.call conv_backward_input(%[[W]], %[[Y]], %arg3) writes [2] params [2, 2, 1, 1, 1, 0, 3] on compute {flops = 3456 : i64}
  // CHECK: ds.call copy(%{{.*}}, %[[P2:.*]])
  // CHECK-NEXT: ds.call conv_backward_weight(%[[P2]], %[[Y]], %arg4) writes [2] params [2, 2, 1, 1, 1, 0, 3] on compute {flops = 3456 : i64}
  %t = ds.transpose %x perm [0, 2, 1, 3] : tensor<2x8x4x6xf32> -> tensor<2x4x8x6xf32>
  %y = ds.conv %t, %w bias(%b) stride [2, 1] padding [1, 0] dilation [1, 3] groups 2 : tensor<2x4x8x6xf32>, tensor<6x2x3x2xf32>, tensor<6xf32> -> tensor<2x6x4x3xf32>
  %dx = ds.conv_grad_input %w, %y stride [2, 1] padding [1, 0] dilation [1, 3] groups 2 : tensor<6x2x3x2xf32>, tensor<2x6x4x3xf32> -> tensor<2x4x8x6xf32>
  %dw = ds.conv_grad_weight %t, %y stride [2, 1] padding [1, 0] dilation [1, 3] groups 2 : tensor<2x4x8x6xf32>, tensor<2x6x4x3xf32> -> tensor<6x2x3x2xf32>
  return %dx, %dw : tensor<2x4x8x6xf32>, tensor<6x2x3x2xf32>
}

// CHECK-LABEL: func.func @writes_gradients_over_logits(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[IDS:arg[0-9]+]]:{{.*}} %[[LSE:arg[0-9]+]]:{{.*}} %[[ONE:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @writes_gradients_over_logits(%x: tensor<4x4xf32> {ds.input = "x"}, %ids: tensor<4xi64> {ds.input = "ids"}, %lse: tensor<4xf32> {ds.input = "lse"}, %one: tensor<f32> {ds.input = "one"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: ds.call cross_entropy_backward(%[[BUF0]], %[[IDS]], %[[LSE]], %[[ONE]], %[[ONE]], %[[BUF0]]) writes [5] params [-100] on compute
  // CHECK-NEXT: ds.call matmul(%[[BUF0]], %[[X]], %[[W]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: return
  %a = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %d = ds.cross_entropy_grad %a, %ids, %lse, %one, %one ignore_index -100 : (tensor<4x4xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x4xf32>
  %m = ds.matmul %d, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>
}

// With its gradient a loss writes over the logits as well, and what it is divided by comes last.
// CHECK-LABEL: func.func @writes_both_over_logits(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[IDS:arg[0-9]+]]:{{.*}} %[[ONE:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:{{.*}} %[[L:arg[0-9]+]]:
func.func @writes_both_over_logits(%x: tensor<4x4xf32> {ds.input = "x"}, %ids: tensor<4xi64> {ds.input = "ids"}, %one: tensor<f32> {ds.input = "one"}) -> (tensor<4x4xf32> {ds.state = @w}, tensor<f32> {ds.state = @l}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: %[[COUNT:.*]] = ds.alloc activations : !ds.buffer<tensor<f32>, [], device>
  // CHECK-NEXT: ds.call cross_entropy_with_gradient(%[[BUF0]], %[[IDS]], %[[ONE]], %[[L]], %[[COUNT]], %[[BUF0]], %[[ONE]]) writes [3, 4, 5] params [-100, 2.000000e+00] on compute
  // CHECK-NEXT: ds.call matmul(%[[BUF0]], %[[X]], %[[W]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: return
  %a = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %loss, %count, %d = ds.cross_entropy_with_grad %a, %ids, %one over(%one) ignore_index -100 cap 2.0 : (tensor<4x4xf32>, tensor<4xi64>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<4x4xf32>)
  %m = ds.matmul %d, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %m, %loss : tensor<4x4xf32>, tensor<f32>
}

// CHECK-LABEL: func.func @keeps_logits_that_are_read_later(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[IDS:arg[0-9]+]]:{{.*}} %[[LSE:arg[0-9]+]]:{{.*}} %[[ONE:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @keeps_logits_that_are_read_later(%x: tensor<4x4xf32> {ds.input = "x"}, %ids: tensor<4xi64> {ds.input = "ids"}, %lse: tensor<4xf32> {ds.input = "lse"}, %one: tensor<f32> {ds.input = "one"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: %[[BUF1:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call cross_entropy_backward(%[[BUF0]], %[[IDS]], %[[LSE]], %[[ONE]], %[[ONE]], %[[BUF1]]) writes [5] params [-100] on compute
  // CHECK-NEXT: ds.call matmul(%[[BUF1]], %[[BUF0]], %[[W]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: return
  %a = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %d = ds.cross_entropy_grad %a, %ids, %lse, %one, %one ignore_index -100 : (tensor<4x4xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x4xf32>
  %m = ds.matmul %d, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>
}

// 2 * 4 = 8 rows on both sides.
// CHECK-LABEL: func.func @counts_leading_dimensions_as_rows(
// CHECK-SAME: %[[X3:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:{{.*}} %[[T:arg[0-9]+]]:
func.func @counts_leading_dimensions_as_rows(%x: tensor<2x4x4xf32> {ds.input = "x3"}, %w: tensor<4x4xf32> {ds.state = @w}) -> (tensor<8x4xf32> {ds.state = @t}) {
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[X3]] offset 0 : {{.*}} -> !ds.buffer<tensor<8x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[VIEW0]], %[[W]], %[[T]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: return
  %m = ds.matmul %x, %w : tensor<2x4x4xf32>, tensor<4x4xf32> -> tensor<2x4x4xf32>
  %r = ds.reshape %m : tensor<2x4x4xf32> -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// Rows 4 and 8 apart have no common stride.
// CHECK-LABEL: func.func @packs_rows_that_do_not_follow_each_other(
// CHECK-SAME: %[[X3T:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:{{.*}} %[[T:arg[0-9]+]]:
func.func @packs_rows_that_do_not_follow_each_other(%x: tensor<4x2x4xf32> {ds.input = "x3t"}, %w: tensor<4x4xf32> {ds.state = @w}) -> (tensor<8x4xf32> {ds.state = @t}) {
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[X3T]] offset 0 : {{.*}} -> !ds.buffer<tensor<2x4x4xf32>, [4, 8, 1], device>
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<2x4x4xf32>, [16, 4, 1], device>
  // CHECK-NEXT: ds.call copy(%[[VIEW0]], %[[BUF0]]) writes [1] params [] on compute
  // CHECK-NEXT: %[[VIEW1:.*]] = ds.view %[[BUF0]] offset 0 : {{.*}} -> !ds.buffer<tensor<8x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[VIEW1]], %[[W]], %[[T]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: return
  %p = ds.transpose %x perm [1, 0, 2] : tensor<4x2x4xf32> -> tensor<2x4x4xf32>
  %m = ds.matmul %p, %w : tensor<2x4x4xf32>, tensor<4x4xf32> -> tensor<2x4x4xf32>
  %r = ds.reshape %m : tensor<2x4x4xf32> -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @gives_a_transposed_matrix_as_it_is(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @gives_a_transposed_matrix_as_it_is(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[X]] offset 0 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [1, 4], device>
  // CHECK-NEXT: ds.call matmul(%[[VIEW0]], %[[VIEW0]], %[[W]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: return
  %p = ds.transpose %x perm [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %m = ds.matmul %p, %p : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>
}

// Neither stride of (8, 2) is 1.
// CHECK-LABEL: func.func @packs_a_matrix_with_gaps(
// CHECK-SAME: %[[Y:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @packs_a_matrix_with_gaps(%y: tensor<4x8xf32> {ds.input = "y"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[Y]] offset 0 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [8, 2], device>
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call copy(%[[VIEW0]], %[[BUF0]]) writes [1] params [] on compute
  // CHECK-NEXT: %[[BUF1:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call copy(%[[VIEW0]], %[[BUF1]]) writes [1] params [] on compute
  // CHECK-NEXT: ds.call matmul(%[[BUF0]], %[[BUF1]], %[[W]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: return
  %p = ds.slice %y offsets [0, 0] strides [1, 2] : tensor<4x8xf32> -> tensor<4x4xf32>
  %m = ds.matmul %p, %p : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>
}

// What the update of a parameter reads, beside the parameter, is its gradient.
// CHECK-LABEL: func.func @tells_gradients_from_activations(
// CHECK-SAME: %[[P:arg[0-9]+]]:{{.*}} %[[X:arg[0-9]+]]:
func.func @tells_gradients_from_activations(%p: tensor<4x4xf32> {ds.state = @p}, %x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @p}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: %[[BUF1:.*]] = ds.alloc gradients : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[BUF0]], %[[X]], %[[BUF1]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[P]], %[[BUF1]]) outs(%[[P]]) extent 16 on compute
  // CHECK-NEXT: return
  %a = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %g = ds.matmul %a, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %n = ds.sub %p, %g : tensor<4x4xf32>
  return %n : tensor<4x4xf32>
}

// Products that apply GELU: the calls' operands, with GELU's input behind the bias. Leading dimensions are rows, of the
// input too.
// CHECK-LABEL: func.func @products_with_gelu(
// CHECK: ds.alloc
// CHECK: %[[INPUT:.*]] = ds.alloc
// CHECK: ds.call matmul(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) writes [2, 4] params [0, 0, 0, 2] on compute {flops = 192 : i64} : !ds.buffer<tensor<4x4xbf16>, {{.*}}, !ds.buffer<tensor<4x6xbf16>, {{.*}}, !ds.buffer<tensor<6xbf16>, {{.*}}, !ds.buffer<tensor<4x6xbf16>
// CHECK: %[[H:.*]] = ds.view %[[INPUT]] offset 0 : {{.*}} -> !ds.buffer<tensor<4x6xbf16>, [6, 1], device>
// CHECK-NEXT: ds.call matmul(%{{.*}}, %{{.*}}, %{{.*}}, %[[H]]) writes [2] params [0, 0, 0, 3] on compute
func.func @products_with_gelu(%x: tensor<2x2x4xbf16> {ds.input = "x"}, %w: tensor<4x6xbf16> {ds.input = "w"}, %b: tensor<6xbf16> {ds.input = "b"}) -> (tensor<2x2x6xbf16> {ds.state = @g16}) {
  %g, %h = ds.matmul %x, %w bias(%b) epilogue(gelu) : tensor<2x2x4xbf16>, tensor<4x6xbf16>, tensor<6xbf16> -> tensor<2x2x6xbf16>, tensor<2x2x6xbf16>
  %y = ds.matmul %g, %w transpose_rhs : tensor<2x2x6xbf16>, tensor<4x6xbf16> -> tensor<2x2x4xbf16>
  %d = ds.matmul %y, %w input(%h) epilogue(gelu_gradient) : tensor<2x2x4xbf16>, tensor<4x6xbf16> input tensor<2x2x6xbf16> -> tensor<2x2x6xbf16>
  return %d : tensor<2x2x6xbf16>
}

// ReLU's product writes its columns of the whole, rows of 12 apart; what has taken GELU is packed, and copied there.
// CHECK-LABEL: func.func @columns_of_epilogues(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:{{.*}} %[[R:arg[0-9]+]]:
func.func @columns_of_epilogues(%x: tensor<4x4xbf16> {ds.input = "x"}, %w: tensor<4x6xbf16> {ds.input = "w"}) -> (tensor<4x12xbf16> {ds.state = @columns}) {
  // CHECK: %[[LEFT:.*]] = ds.view %[[R]] offset 0 : {{.*}} -> !ds.buffer<tensor<4x6xbf16>, [12, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[W]], %[[LEFT]]) writes [2] params [0, 0, 0, 1] on compute
  // CHECK: %[[PACKED:.*]] = ds.alloc activations : !ds.buffer<tensor<4x6xbf16>, [6, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[W]], %[[PACKED]]) writes [2] params [0, 0, 0, 2] on compute
  // CHECK: %[[RIGHT:.*]] = ds.view %[[R]] offset 6 : {{.*}} -> !ds.buffer<tensor<4x6xbf16>, [12, 1], device>
  // CHECK-NEXT: ds.call copy(%[[PACKED]], %[[RIGHT]]) writes [1] params [] on compute
  %relu = ds.matmul %x, %w epilogue(relu) : tensor<4x4xbf16>, tensor<4x6xbf16> -> tensor<4x6xbf16>
  %gelu = ds.matmul %x, %w epilogue(gelu) : tensor<4x4xbf16>, tensor<4x6xbf16> -> tensor<4x6xbf16>
  %both = ds.concat %relu, %gelu dim 1 : tensor<4x6xbf16>, tensor<4x6xbf16> -> tensor<4x12xbf16>
  return %both : tensor<4x12xbf16>
}
