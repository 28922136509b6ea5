// RUN: ds-opt %s --ds-overlap-reductions | FileCheck %s
// RUN: ds-opt %s --ds-overlap-reductions --ds-insert-events --ds-verify-collectives
// RUN: ds-opt %s --ds-set-machine=memory=271581184 --ds-overlap-reductions | FileCheck %s --check-prefix=TIGHT
// RUN: ds-opt %s --ds-overlap-reductions=memory=271581184 | FileCheck %s --check-prefix=TIGHT

!part = !ds.buffer<tensor<262144xf32>, [1], device>
!long = !ds.buffer<tensor<67108864xf32>, [1], device>
!whole = !ds.buffer<tensor<524288xf32>, [1], device>

ds.mesh @mesh axes [dp = 2]
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<262144xf32>

// Without reductions nothing moves.
// CHECK-LABEL: @compute_alone
// CHECK: params [1.0
// CHECK: params [2.0
// CHECK-NOT: ds.wait
// CHECK: return
func.func @compute_alone(%x: !whole {ds.input = "x"}) {
  %a = ds.alloc activations : !whole
  ds.call fill(%a) writes [0] params [1.0] on compute : !whole
  ds.call fill(%a) writes [0] params [2.0] on compute : !whole
  return
}

// E1: the reduction goes up to where its operand is complete. E2: its reader comes behind what does not depend on it,
// and so does what depends on the reader. Nothing is left to compute when it is done: the segment's end waits.
// CHECK-LABEL: @beside_the_rest
// CHECK: params [1.0
// CHECK-NEXT: ds.alloc gradients
// CHECK-NEXT: ds.communicate reduce_scatter
// CHECK: params [2.0
// CHECK: params [3.0
// CHECK: ds.call copy
// CHECK: params [4.0
func.func @beside_the_rest(%w: !part {ds.state = @w}, %x: !whole {ds.input = "x"}) {
  %g = ds.alloc gradients : !whole
  ds.call fill(%g) writes [0] params [1.0] on compute : !whole
  %y = ds.alloc activations : !whole
  ds.call fill(%y) writes [0] params [2.0] on compute : !whole
  %s = ds.alloc gradients : !part
  ds.communicate reduce_scatter ins(%g) outs(%s) reduce sum along dp carries bucket on reduce : (!whole) -> !part
  ds.call copy(%s, %w) writes [1] params [] on compute : !part, !part
  ds.call fill(%w) writes [0] params [4.0] on compute : !part
  ds.call fill(%x) writes [0] params [3.0] on compute : !whole
  return
}

// E2: with longer commands beside it the reduction is done before the last of them. E3: there compute waits, although
// nothing reads the result yet: the gradient's memory is free.
// CHECK-LABEL: @done_before_the_end
// CHECK: ds.communicate reduce_scatter
// CHECK-NEXT: ds.record [[E:[0-9]+]] on reduce
// CHECK: params [2.0
// CHECK: ds.wait [[E]] on compute
// CHECK-NEXT: ds.call fill{{.*}} params [3.0
// CHECK: ds.call copy
//
// 256 MiB of input, 1 of the state and 1 of the result fit into 259, but the gradient's 2 beside them do not: compute
// waits at once.
// TIGHT-LABEL: @done_before_the_end
// TIGHT: ds.record [[E:[0-9]+]] on reduce
// TIGHT: ds.wait [[E]] on compute
// TIGHT-NEXT: ds.call fill{{.*}} params [2.0
func.func @done_before_the_end(%w: !part {ds.state = @w}, %x: !long {ds.input = "x"}) {
  %g = ds.alloc gradients : !whole
  ds.call fill(%g) writes [0] params [1.0] on compute : !whole
  %s = ds.alloc gradients : !part
  ds.communicate reduce_scatter ins(%g) outs(%s) reduce sum along dp carries bucket on reduce : (!whole) -> !part
  ds.call fill(%x) writes [0] params [2.0] on compute : !long
  ds.call fill(%x) writes [0] params [3.0] on compute : !long
  ds.call copy(%s, %w) writes [1] params [] on compute : !part, !part
  return
}

// A reduction stays behind what it depends on.
// CHECK-LABEL: @not_before_its_operand
// CHECK: params [1.0
// CHECK: params [2.0
// CHECK: ds.communicate
func.func @not_before_its_operand(%w: !part {ds.state = @w}) {
  %g = ds.alloc gradients : !whole
  ds.call fill(%g) writes [0] params [1.0] on compute : !whole
  ds.call fill(%g) writes [0] params [2.0] on compute : !whole
  ds.communicate reduce_scatter ins(%g) outs(%w) reduce sum along dp carries bucket on reduce : (!whole) -> !part
  return
}

// Reductions keep their order, though the second's operand is complete before the first's.
// CHECK-LABEL: @in_their_order
// CHECK: params [1.0
// CHECK: params [2.0
// CHECK: ds.communicate reduce_scatter {{.*}} reduce sum
// CHECK: ds.communicate reduce_scatter {{.*}} reduce max
func.func @in_their_order(%w: !part {ds.state = @w}, %v: !part {ds.input = "v"}) {
  %h = ds.alloc gradients : !whole
  ds.call fill(%h) writes [0] params [1.0] on compute : !whole
  %g = ds.alloc gradients : !whole
  ds.call fill(%g) writes [0] params [2.0] on compute : !whole
  ds.communicate reduce_scatter ins(%g) outs(%w) reduce sum along dp carries bucket on reduce : (!whole) -> !part
  ds.communicate reduce_scatter ins(%h) outs(%v) reduce max along dp carries bucket on reduce : (!whole) -> !part
  return
}

// A number frees no memory worth a wait.
// CHECK-LABEL: @number
// CHECK: ds.communicate all_reduce
// CHECK-NOT: ds.wait
// CHECK: return
func.func @number(%n: !ds.buffer<tensor<f32>, [], device> {ds.input = "n"}, %x: !long {ds.input = "x"}) {
  ds.communicate all_reduce ins(%n) outs(%n) reduce sum along dp carries statistic on reduce : (!ds.buffer<tensor<f32>, [], device>) -> !ds.buffer<tensor<f32>, [], device>
  ds.call fill(%x) writes [0] params [2.0] on compute : !long
  ds.call fill(%x) writes [0] params [3.0] on compute : !long
  return
}
