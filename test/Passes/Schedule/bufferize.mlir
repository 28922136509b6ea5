// RUN: ds-opt %s --ds-fuse-regions --ds-bufferize | FileCheck %s
// RUN: ds-opt %s --ds-fuse-regions --ds-bufferize --ds-verify-scheduled | FileCheck %s --check-prefix=KERNELS --implicit-check-not=ds.kernel
// RUN: ds-opt %s --ds-fuse-regions --ds-bufferize | FileCheck %s --check-prefix=TENSORS

// E1 and E2: outside kernels no tensor is left.
// TENSORS-NOT: func.func {{.*}}: tensor
// TENSORS-NOT: {{^}}    {{.*}} = {{.*}} -> tensor
// TENSORS: ds.kernel

ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
ds.state @u role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
ds.state @t role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x4xf32>
ds.state @v role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<16xf32>

// The host's values stay for the next segment; the second state is a copy of the first.
// CHECK-LABEL: func.func @never_writes_over_an_input(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:{{.*}} %[[U:arg[0-9]+]]:
func.func @never_writes_over_an_input(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}, tensor<4x4xf32> {ds.state = @u}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[X]]) outs(%[[BUF0]]) extent 16 on compute
  // CHECK-NEXT: ds.call matmul(%[[BUF0]], %[[BUF0]], %[[U]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: ds.call copy(%[[U]], %[[W]]) writes [1] params [] on compute
  // CHECK-NEXT: return
  %n = ds.neg %x : tensor<4x4xf32>
  %m = ds.matmul %n, %n : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %m, %m : tensor<4x4xf32>, tensor<4x4xf32>
}

// The product reads e again after the negation.
// CHECK-LABEL: func.func @never_writes_over_what_is_read_later(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @never_writes_over_what_is_read_later(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: %[[BUF1:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[BUF0]]) outs(%[[BUF1]]) extent 16 on compute
  // CHECK-NEXT: ds.call matmul(%[[BUF1]], %[[BUF0]], %[[W]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: return
  %e = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %n = ds.neg %e : tensor<4x4xf32>
  %m = ds.matmul %n, %e : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>
}

// A transposed view of e is read later: the same memory.
// CHECK-LABEL: func.func @never_writes_over_what_a_view_shows_later(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @never_writes_over_what_a_view_shows_later(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[BUF0]] offset 0 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [1, 4], device>
  // CHECK-NEXT: %[[BUF1:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[BUF0]]) outs(%[[BUF1]]) extent 16 on compute
  // CHECK-NEXT: ds.call matmul(%[[BUF1]], %[[VIEW0]], %[[W]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: return
  %e = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %t = ds.transpose %e perm [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %n = ds.neg %e : tensor<4x4xf32>
  %m = ds.matmul %n, %t : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>
}

// Element (i, j) of the sum reads (i, j) and (j, i): both lie in e.
// CHECK-LABEL: func.func @never_writes_over_what_it_reads_through_a_view(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @never_writes_over_what_it_reads_through_a_view(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[BUF0]] offset 0 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [1, 4], device>
  // CHECK-NEXT: %[[BUF1:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[BUF0]], %[[VIEW0]]) outs(%[[BUF1]]) on compute
  // CHECK-NEXT: ds.call matmul(%[[BUF1]], %[[X]], %[[W]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: return
  %e = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %t = ds.transpose %e perm [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %s = ds.add %e, %t : tensor<4x4xf32>
  %m = ds.matmul %s, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>
}

// The body transposes before it negates.
// CHECK-LABEL: func.func @never_writes_over_what_it_reads_elsewhere(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @never_writes_over_what_it_reads_elsewhere(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: %[[BUF1:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[BUF0]]) outs(%[[BUF1]]) on compute
  // CHECK-NEXT: ds.call matmul(%[[BUF1]], %[[X]], %[[W]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: return
  %e = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %s = ds.fused (%e) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %t = ds.transpose %a perm [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
    %n = ds.neg %t : tensor<4x4xf32>
    ds.yield %n : tensor<4x4xf32>
  }
  %m = ds.matmul %s, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @writes_over_an_operand_that_dies(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @writes_over_an_operand_that_dies(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[BUF0]]) outs(%[[BUF0]]) extent 16 on compute
  // CHECK-NEXT: ds.call matmul(%[[BUF0]], %[[X]], %[[W]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: return
  %e = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %n = ds.neg %e : tensor<4x4xf32>
  %m = ds.matmul %n, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>
}

// Two results, one operand that dies: the second has memory of its own.
// CHECK-LABEL: func.func @writes_one_result_over_an_operand(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @writes_one_result_over_an_operand(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: %[[BUF1:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[BUF0]]) outs(%[[BUF0]], %[[BUF1]]) extent 16 on compute
  // CHECK-NEXT: ds.call matmul(%[[BUF0]], %[[BUF1]], %[[W]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: return
  %e = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %n = ds.neg %e : tensor<4x4xf32>
  %c = ds.exp %n : tensor<4x4xf32>
  %m = ds.matmul %n, %c : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>
}

// Row 2 of the transposed x is its column 2: offset 2, strides (1, 4), every second one of 4: (1, 8). In rows of 8 the
// second piece starts at 6.
// CHECK-LABEL: func.func @makes_views(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @makes_views(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[X]] offset 2 : {{.*}} -> !ds.buffer<tensor<2x2xf32>, [1, 8], device>
  // CHECK-NEXT: %[[VIEW1:.*]] = ds.view %[[X]] offset 0 : {{.*}} -> !ds.buffer<tensor<2x6xf32>, [8, 1], device>
  // CHECK-NEXT: %[[VIEW2:.*]] = ds.view %[[X]] offset 6 : {{.*}} -> !ds.buffer<tensor<2x2xf32>, [8, 1], device>
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<2x2xf32>, [2, 1], device>
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[VIEW0]], %[[VIEW2]]) outs(%[[BUF0]]) on compute
  // CHECK-NEXT: %[[BUF1:.*]] = ds.alloc activations : !ds.buffer<tensor<2x6xf32>, [6, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[BUF0]], %[[VIEW1]], %[[BUF1]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: %[[BUF2:.*]] = ds.alloc activations : !ds.buffer<tensor<6x6xf32>, [6, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[BUF1]], %[[BUF1]], %[[BUF2]]) writes [2] params [1, 0, 0, 0] on compute
  // CHECK-NEXT: %[[VIEW3:.*]] = ds.view %[[BUF2]] offset 0 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [6, 1], device>
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[VIEW3]]) outs(%[[W]]) on compute
  // CHECK-NEXT: return
  %t = ds.transpose %x perm [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %s = ds.slice %t offsets [2, 0] strides [1, 2] : tensor<4x4xf32> -> tensor<2x2xf32>
  %r = ds.reshape %x : tensor<4x4xf32> -> tensor<2x8xf32>
  %p:2 = ds.split %r dim 1 : tensor<2x8xf32> -> tensor<2x6xf32>, tensor<2x2xf32>
  %a = ds.add %s, %p#1 : tensor<2x2xf32>
  %m = ds.matmul %a, %p#0 : tensor<2x2xf32>, tensor<2x6xf32> -> tensor<2x6xf32>
  %k = ds.matmul %m, %m transpose_lhs : tensor<2x6xf32>, tensor<2x6xf32> -> tensor<6x6xf32>
  %w = ds.slice %k offsets [0, 0] strides [1, 1] : tensor<6x6xf32> -> tensor<4x4xf32>
  %n = ds.neg %w : tensor<4x4xf32>
  return %n : tensor<4x4xf32>
}

// A copy of a split for each chunk of a loss has one piece that is read.
// CHECK-LABEL: func.func @leaves_out_pieces_that_nobody_reads(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @leaves_out_pieces_that_nobody_reads(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[X]] offset 8 : {{.*}} -> !ds.buffer<tensor<2x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[VIEW0]], %[[VIEW0]], %[[W]]) writes [2] params [1, 0, 0, 0] on compute
  // CHECK-NEXT: return
  %p:2 = ds.split %x dim 0 : tensor<4x4xf32> -> tensor<2x4xf32>, tensor<2x4xf32>
  %m = ds.matmul %p#1, %p#1 transpose_lhs : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>
}

// 16 consecutive elements of a transposed matrix have no one stride.
// CHECK-LABEL: func.func @packs_what_strides_cannot_say(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[V:arg[0-9]+]]:
func.func @packs_what_strides_cannot_say(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<16xf32> {ds.state = @v}) {
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[X]] offset 0 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [1, 4], device>
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call copy(%[[VIEW0]], %[[BUF0]]) writes [1] params [] on compute
  // CHECK-NEXT: %[[VIEW1:.*]] = ds.view %[[BUF0]] offset 0 : {{.*}} -> !ds.buffer<tensor<16xf32>, [1], device>
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[VIEW1]]) outs(%[[V]]) extent 16 on compute
  // CHECK-NEXT: return
  %t = ds.transpose %x perm [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %r = ds.reshape %t : tensor<4x4xf32> -> tensor<16xf32>
  %n = ds.neg %r : tensor<16xf32>
  return %n : tensor<16xf32>
}

// E3: the update reads w where it writes it.
// CHECK-LABEL: func.func @makes_a_state_in_place(
// CHECK-SAME: %[[W:arg[0-9]+]]:{{.*}} %[[X:arg[0-9]+]]:
func.func @makes_a_state_in_place(%w: tensor<4x4xf32> {ds.state = @w}, %x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[W]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[W]], %[[BUF0]]) outs(%[[W]]) extent 16 on compute
  // CHECK-NEXT: return
  %g = ds.matmul %x, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %n = ds.sub %w, %g : tensor<4x4xf32>
  return %n : tensor<4x4xf32>
}

// E3: the product reads the old w after the new one is made.
// CHECK-LABEL: func.func @copies_to_a_state_that_is_still_read(
// CHECK-SAME: %[[W:arg[0-9]+]]:{{.*}} %[[X:arg[0-9]+]]:{{.*}} %[[U:arg[0-9]+]]:
func.func @copies_to_a_state_that_is_still_read(%w: tensor<4x4xf32> {ds.state = @w}, %x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}, tensor<4x4xf32> {ds.state = @u}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[W]]) outs(%[[BUF0]]) extent 16 on compute
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[W]], %[[U]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: ds.call copy(%[[BUF0]], %[[W]]) writes [1] params [] on compute
  // CHECK-NEXT: return
  %n = ds.neg %w : tensor<4x4xf32>
  %m = ds.matmul %x, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %n, %m : tensor<4x4xf32>, tensor<4x4xf32>
}

// E3: a product may not write over what it multiplies.
// CHECK-LABEL: func.func @copies_to_a_state_that_a_product_reads(
// CHECK-SAME: %[[W:arg[0-9]+]]:{{.*}} %[[X:arg[0-9]+]]:
func.func @copies_to_a_state_that_a_product_reads(%w: tensor<4x4xf32> {ds.state = @w}, %x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[W]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: ds.call copy(%[[BUF0]], %[[W]]) writes [1] params [] on compute
  // CHECK-NEXT: return
  %m = ds.matmul %x, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>
}

// E3: both old values are put aside before either state is written.
// CHECK-LABEL: func.func @lets_states_change_places(
// CHECK-SAME: %[[W:arg[0-9]+]]:{{.*}} %[[U:arg[0-9]+]]:
func.func @lets_states_change_places(%w: tensor<4x4xf32> {ds.state = @w}, %u: tensor<4x4xf32> {ds.state = @u}) -> (tensor<4x4xf32> {ds.state = @w}, tensor<4x4xf32> {ds.state = @u}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call copy(%[[U]], %[[BUF0]]) writes [1] params [] on compute
  // CHECK-NEXT: %[[BUF1:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call copy(%[[W]], %[[BUF1]]) writes [1] params [] on compute
  // CHECK-NEXT: ds.call copy(%[[BUF0]], %[[W]]) writes [1] params [] on compute
  // CHECK-NEXT: ds.call copy(%[[BUF1]], %[[U]]) writes [1] params [] on compute
  // CHECK-NEXT: return
  return %u, %w : tensor<4x4xf32>, tensor<4x4xf32>
}

// E3: the product is made in v, seen as a matrix.
// CHECK-LABEL: func.func @makes_a_state_through_a_reshape(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[V:arg[0-9]+]]:
func.func @makes_a_state_through_a_reshape(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<16xf32> {ds.state = @v}) {
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[V]] offset 0 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[VIEW0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: return
  %m = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %r = ds.reshape %m : tensor<4x4xf32> -> tensor<16xf32>
  return %r : tensor<16xf32>
}

// Columns 0 to 3 and 8 to 11 of rows of 12 are made in place; x, which is not made here, is copied to column 4.
// CHECK-LABEL: func.func @makes_parts_in_place(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @makes_parts_in_place(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x12xf32>, [12, 1], device>
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[BUF0]] offset 0 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [12, 1], device>
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[X]]) outs(%[[VIEW0]]) on compute
  // CHECK-NEXT: %[[VIEW1:.*]] = ds.view %[[BUF0]] offset 8 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [12, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[VIEW1]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: %[[VIEW2:.*]] = ds.view %[[BUF0]] offset 4 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [12, 1], device>
  // CHECK-NEXT: ds.call copy(%[[X]], %[[VIEW2]]) writes [1] params [] on compute
  // CHECK-NEXT: ds.call matmul(%[[BUF0]], %[[BUF0]], %[[W]]) writes [2] params [0, 1, 0, 0] on compute
  // CHECK-NEXT: return
  %a = ds.neg %x : tensor<4x4xf32>
  %b = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %c = ds.concat %a, %x, %b dim 1 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x12xf32>
  %m = ds.matmul %c, %c transpose_rhs : tensor<4x12xf32>, tensor<4x12xf32> -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>
}

// The join of joins is the state: rows 4 and 5 at 4 * 4 = 16, rows 6 and 7 at 24.
// CHECK-LABEL: func.func @makes_parts_of_parts_in_place(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[T:arg[0-9]+]]:
func.func @makes_parts_of_parts_in_place(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<8x4xf32> {ds.state = @t}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[X]], %[[X]], %[[BUF0]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[BUF0]] offset 0 : {{.*}} -> !ds.buffer<tensor<2x4xf32>, [4, 1], device>
  // CHECK-NEXT: %[[VIEW1:.*]] = ds.view %[[BUF0]] offset 8 : {{.*}} -> !ds.buffer<tensor<2x4xf32>, [4, 1], device>
  // CHECK-NEXT: %[[VIEW2:.*]] = ds.view %[[T]] offset 16 : {{.*}} -> !ds.buffer<tensor<2x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[VIEW0]]) outs(%[[VIEW2]]) extent 8 on compute
  // CHECK-NEXT: %[[VIEW3:.*]] = ds.view %[[T]] offset 24 : {{.*}} -> !ds.buffer<tensor<2x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call matmul(%[[VIEW1]], %[[X]], %[[VIEW3]]) writes [2] params [0, 0, 0, 0] on compute
  // CHECK-NEXT: %[[VIEW4:.*]] = ds.view %[[T]] offset 0 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call copy(%[[X]], %[[VIEW4]]) writes [1] params [] on compute
  // CHECK-NEXT: return
  %a = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %p:2 = ds.split %a dim 0 : tensor<4x4xf32> -> tensor<2x4xf32>, tensor<2x4xf32>
  %n = ds.neg %p#0 : tensor<2x4xf32>
  %e = ds.matmul %p#1, %x : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %c = ds.concat %n, %e dim 0 : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<4x4xf32>
  %d = ds.concat %x, %c dim 0 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
  return %d : tensor<8x4xf32>
}

// One value cannot be made in two places.
// CHECK-LABEL: func.func @copies_a_part_that_stands_twice(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[T:arg[0-9]+]]:
func.func @copies_a_part_that_stands_twice(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<8x4xf32> {ds.state = @t}) {
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[X]]) outs(%[[BUF0]]) extent 16 on compute
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[T]] offset 0 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call copy(%[[BUF0]], %[[VIEW0]]) writes [1] params [] on compute
  // CHECK-NEXT: %[[VIEW1:.*]] = ds.view %[[T]] offset 16 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call copy(%[[BUF0]], %[[VIEW1]]) writes [1] params [] on compute
  // CHECK-NEXT: return
  %a = ds.neg %x : tensor<4x4xf32>
  %d = ds.concat %a, %a dim 0 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
  return %d : tensor<8x4xf32>
}

// E3: the first copy would overwrite rows of the old state that the next one may read.
// CHECK-LABEL: func.func @joins_elsewhere_what_reads_the_state(
// CHECK-SAME: %[[T:arg[0-9]+]]:{{.*}} %[[X:arg[0-9]+]]:
func.func @joins_elsewhere_what_reads_the_state(%t: tensor<8x4xf32> {ds.state = @t}, %x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<8x4xf32> {ds.state = @t}) {
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[T]] offset 16 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: %[[BUF0:.*]] = ds.alloc activations : !ds.buffer<tensor<8x4xf32>, [4, 1], device>
  // CHECK-NEXT: %[[VIEW1:.*]] = ds.view %[[BUF0]] offset 0 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call copy(%[[VIEW0]], %[[VIEW1]]) writes [1] params [] on compute
  // CHECK-NEXT: %[[VIEW2:.*]] = ds.view %[[BUF0]] offset 16 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [4, 1], device>
  // CHECK-NEXT: ds.call copy(%[[X]], %[[VIEW2]]) writes [1] params [] on compute
  // CHECK-NEXT: ds.call copy(%[[BUF0]], %[[T]]) writes [1] params [] on compute
  // CHECK-NEXT: return
  %old = ds.slice %t offsets [4, 0] strides [1, 1] : tensor<8x4xf32> -> tensor<4x4xf32>
  %d = ds.concat %old, %x dim 0 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
  return %d : tensor<8x4xf32>
}

// E4: one kernel for 16 and for 32 elements; the scalar stays a scalar.
// CHECK-LABEL: func.func @shares_kernels_of_any_size(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[Z:arg[0-9]+]]:{{.*}} %[[S:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:{{.*}} %[[T:arg[0-9]+]]:
func.func @shares_kernels_of_any_size(%x: tensor<4x4xf32> {ds.input = "x"}, %z: tensor<32xf32> {ds.input = "z"}, %s: tensor<f32> {ds.input = "s"}) -> (tensor<4x4xf32> {ds.state = @w}, tensor<8x4xf32> {ds.state = @t}) {
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[X]], %[[S]]) outs(%[[W]]) extent 16 on compute
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[T]] offset 0 : {{.*}} -> !ds.buffer<tensor<32xf32>, [1], device>
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[Z]], %[[S]]) outs(%[[VIEW0]]) extent 32 on compute
  // CHECK-NEXT: return
  %sx = ds.broadcast %s dims [] : tensor<f32> -> tensor<4x4xf32>
  %a = ds.mul %x, %sx : tensor<4x4xf32>
  %sz = ds.broadcast %s dims [] : tensor<f32> -> tensor<32xf32>
  %b = ds.mul %z, %sz : tensor<32xf32>
  %r = ds.reshape %b : tensor<32xf32> -> tensor<8x4xf32>
  return %a, %r : tensor<4x4xf32>, tensor<8x4xf32>
}

// E4: the same body on a transposed view is another kernel.
// CHECK-LABEL: func.func @keeps_kernels_of_strided_buffers(
// CHECK-SAME: %[[X:arg[0-9]+]]:{{.*}} %[[S:arg[0-9]+]]:{{.*}} %[[W:arg[0-9]+]]:
func.func @keeps_kernels_of_strided_buffers(%x: tensor<4x4xf32> {ds.input = "x"}, %s: tensor<f32> {ds.input = "s"}) -> (tensor<4x4xf32> {ds.state = @w}) {
  // CHECK-NEXT: %[[VIEW0:.*]] = ds.view %[[X]] offset 0 : {{.*}} -> !ds.buffer<tensor<4x4xf32>, [1, 4], device>
  // CHECK-NEXT: ds.launch @{{.*}} ins(%[[VIEW0]], %[[S]]) outs(%[[W]]) on compute
  // CHECK-NEXT: return
  %t = ds.transpose %x perm [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  %sx = ds.broadcast %s dims [] : tensor<f32> -> tensor<4x4xf32>
  %a = ds.mul %t, %sx : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}

// E4: as many kernels as there are bodies and layouts, each once: @kernel_0 negates 8 and 16 elements in many functions.
// KERNELS: ds.kernel @kernel_0 inputs
// KERNELS: ds.neg %{{.*}} : tensor<?xf32>
// KERNELS: ds.kernel @kernel_1 inputs
// KERNELS: ds.kernel @kernel_2 inputs
// KERNELS: ds.kernel @kernel_3 inputs
// KERNELS: ds.kernel @kernel_4 inputs
// KERNELS: ds.kernel @kernel_5 inputs
// KERNELS: ds.kernel @kernel_6 inputs
// KERNELS: ds.kernel @kernel_7 inputs
// KERNELS: ds.neg %{{.*}} : tensor<4x4xf32>
// KERNELS: ds.kernel @kernel_8 inputs
// KERNELS: ds.broadcast %{{.*}} dims [] : tensor<f32> -> tensor<?xf32>
// KERNELS: ds.kernel @kernel_9 inputs
